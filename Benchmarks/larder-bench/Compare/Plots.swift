import Foundation

/// The plots of a comparison, which gnuplot draws.
struct Plots {
  private let result: BenchResult
  private let folder: String
  static let (percentiles, load, cpu) = ("percentiles", "load", "cpu")
  static let names = [percentiles, load, cpu].map { "\($0).svg" }

  init(_ result: BenchResult, folder: String) {
    self.result = result
    self.folder = folder
  }

  /// Whether gnuplot is installed.
  static var isPossible: Bool { Programs.find("gnuplot") != nil }

  func write() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    for (name, script) in zip(Self.names, [percentilePlot, loadPlot, cpuPlot]) {
      let path = "\(NSTemporaryDirectory())larder-bench-\(UUID().uuidString.prefix(8)).gnuplot"
      let settings = """
        set terminal svg size 900,520 dynamic enhanced font "sans-serif,13" background "white"
        set output "\(folder)/\(name)"
        set grid lc rgb "#dddddd"
        set border 3 lc rgb "#555555"
        set tics nomirror
        """
      try "\(settings)\n\(script)\n".write(toFile: path, atomically: true, encoding: .utf8)
      defer { try? FileManager.default.removeItem(atPath: path) }
      guard Programs.output("gnuplot", [path]) != nil else { throw BenchError("gnuplot failed to draw \(name)") }
    }
  }

  /// The contenders, without Larder's other setups.
  private var names: [String] { distinct(result.curves.map(\.contender)) }

  private func color(_ name: String) -> String {
    switch name {
    case Contender.larder: "#c2410c"
    case Contender.larderOverRESP: "#f59e0b"
    case Contender.echo: "#888888"
    case "redis": "#1d4ed8"
    case "valkey": "#7e22ce"
    default: "#15803d"
    }
  }

  /// Returns a data block with the points of each contender.
  private func data(_ plot: String) -> String {
    names.map { name in
      let points = result.curves.first { $0.plot == plot && $0.contender == name }?.points ?? []
      return "\(block(name)) << END\n" + points.map { "\($0[0]) \($0[1])" }.joined(separator: "\n") + "\nEND"
    }.joined(separator: "\n")
  }

  /// The name of a contender's data block, which has no spaces.
  private func block(_ name: String) -> String { "$" + name.filter { !$0.isWhitespace } }

  /// Returns plot commands that draw a line through each contender's points.
  private func lines(pointSize: Double) -> String {
    names.map {
      "\(block($0)) using 1:2 with linespoints pt 7 ps \(pointSize) lw 2 lc rgb \"\(color($0))\" title \"\($0)\""
    }.joined(separator: ", ")
  }

  /// Latency by percentile, on an axis on which each nine takes the same space.
  private var percentilePlot: String {
    """
    \(data(Self.percentiles))
    set title "Latency of get at \(percent(ComparisonPlan.comparedLoad)) of the best peer's peak, from the scheduled time"
    set logscale xy
    set format y "%.0f"
    set xlabel "percentile of requests"
    set ylabel "latency (µs)"
    set xtics ("0" 1, "90" 10, "99" 100, "99.9" 1000, "99.99" 10000, "99.999" 100000, "99.9999" 1000000)
    set key top left
    plot \(lines(pointSize: 0.3))
    """
  }

  /// The 99th percentile by scheduled rate, even where that rate was not reached.
  private var loadPlot: String {
    """
    \(data(Self.load))
    set title "Latency of get by scheduled rate: it rises where a server or the generator can't keep up"
    set logscale y
    set format y "%.0f"
    set xlabel "scheduled requests per second (thousands)"
    set ylabel "p99 latency from the scheduled time (µs)"
    set xrange [0:*]
    set key top left
    plot \(lines(pointSize: 0.6))
    """
  }

  /// CPU time per request as bars, with error bars from the lowest to the highest round.
  private var cpuPlot: String {
    let figures = result.figures
    let works = ComparisonPlan.works.map(\.name).filter { work in
      figures.find(work, .cpu) != nil && figures.bestPeer(work, .cpu, among: names) != nil
        && !work.hasPrefix("get-many")
    }
    let rows = works.map { work in
      "\"\(work)\" "
        + names.map { name in
          guard let figure = figures.find(work, .cpu, of: name) else { return "NaN NaN NaN" }
          return "\(figure.median) \(figure.lowest) \(figure.highest)"
        }.joined(separator: " ")
    }
    let bars = names.enumerated().map { index, name in
      let column = 2 + index * 3
      return
        "$cpu using \(column):\(column + 1):\(column + 2):xtic(1) title \"\(name)\" lc rgb \"\(color(name))\""
    }
    return """
      $cpu << END
      \(rows.joined(separator: "\n"))
      END
      set title "Server CPU per request: median, lowest and highest of the rounds"
      set style data histograms
      set style histogram errorbars gap 1.5 lw 1.2
      set errorbars 1 lc rgb "#222222"
      set style fill solid 0.9 noborder
      set xlabel "work"
      set ylabel "server CPU per request (µs)"
      set yrange [0:*]
      set key top right
      plot \(bars.joined(separator: ", "))
      """
  }
}
