import ArgumentParser
import Platform

struct GateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "gate",
    abstract: "Compares two JSON results and fails if a figure got worse by more than the threshold.",
    discussion: """
      Reads the results of run, compare, durable and client, written with --json or --results. Of comparisons, it checks \
      only Larder's figures unless --all is given. Exit status: 0 no figure exceeds the threshold, 1 a figure does, \
      2 the files can't be compared.
      """)

  @Argument(help: "The baseline result.")
  private var old: String
  @Argument(help: "The result to check.")
  private var new: String
  @Option(help: "By how much a figure may get worse.", transform: PercentArgument.init)
  private var threshold: PercentArgument
  @Flag(help: "Check the figures of peers, too.")
  private var all = false

  func run() throws {
    let gate: Gate
    do {
      gate = Gate(
        old: try JSON.decode(Gate.Result.self, from: old), new: try JSON.decode(Gate.Result.self, from: new),
        threshold: threshold.fraction, includesPeers: all)
    } catch {
      logLine("larder-bench: \(error)")
      throw ExitCode(2)
    }
    guard !gate.lines.isEmpty else {
      logLine("larder-bench: \(old) contains no figures")
      throw ExitCode(2)
    }
    print(gate.text)
    if gate.hasFailed {
      let count = gate.lines.count(where: \.exceedsThreshold)
      logLine(
        "larder-bench: \(count) of \(gate.lines.count) figures exceed the threshold of \(percent(threshold.fraction))")
      throw ExitCode.failure
    }
  }
}

/// A comparison of two results, figure by figure.
struct Gate {
  struct Line: Equatable {
    var name: String
    var unit: String
    var old: Double
    /// Nil if the new result lacks the figure.
    var new: Double?
    /// By how much the new value is worse, as a fraction of the old one; negative if it is better.
    var regression: Double
    var exceedsThreshold: Bool
  }

  /// The part of a result file that all commands write.
  struct Result: Decodable {
    var figures: [MeasuredFigure]
  }

  let lines: [Line]
  var hasFailed: Bool { lines.contains(where: \.exceedsThreshold) }

  /// - Parameters:
  ///   - threshold: By how much a figure may get worse, as a fraction of the old value.
  ///   - includesPeers: Whether figures of peers count, too. They say more about the machine than about Larder.
  init(old: Result, new: Result, threshold: Double, includesPeers: Bool) {
    let hasLarder = old.figures.contains { $0.contender == Contender.larder }
    let relevant = old.figures.filter { includesPeers || !hasLarder || $0.contender == Contender.larder }
    lines = relevant.map { old in
      let new = new.figures.first { $0.name == old.name }?.median
      guard let new else {
        return Line(name: old.name, unit: old.unit, old: old.median, new: nil, regression: 0, exceedsThreshold: true)
      }
      let scale = max(abs(old.median), 1e-9)
      let regression = (old.isBetterLower ? new - old.median : old.median - new) / scale
      return Line(
        name: old.name, unit: old.unit, old: old.median, new: new, regression: regression,
        exceedsThreshold: regression > threshold)
    }
  }

  var text: String {
    lines.map { line in
      let mark = line.exceedsThreshold ? "FAIL" : "ok  "
      guard let new = line.new else { return "\(mark)  \(line.name): missing from the new result" }
      let change = "\(line.regression > 0 ? "worse" : "better") by \(decimal(abs(line.regression) * 100, 1))%"
      return "\(mark)  \(line.name): \(grouped(line.old)) → \(grouped(new)) \(line.unit), \(change)"
    }.joined(separator: "\n")
  }
}
