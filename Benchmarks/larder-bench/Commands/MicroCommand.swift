import ArgumentParser
import Platform

struct MicroCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "micro",
    abstract: "Measures frame coding, the memory engine, data sources, documents and typed requests in this process.",
    discussion:
      "Prints nanoseconds of CPU time per operation. contrib/microbench counts instructions instead, which don't vary."
  )

  @Option(help: "Run only benchmarks whose names contain this.")
  private var only: String?
  @Option(help: "The number of entries in each store.")
  private var entries = 1_000_000
  @Option(help: "Perform exactly this many operations, once, and print no times; for counting instructions.")
  private var operations: Int?
  @Flag(help: "Print the names of the benchmarks and exit.")
  private var list = false
  @Flag(help: "Print the result as JSON.")
  private var json = false

  func validate() throws {
    guard (1...100_000_000).contains(entries) else { throw ValidationError("--entries takes 1 to 100000000.") }
    guard operations.map({ $0 > 0 }) ?? true else { throw ValidationError("--operations takes 1 or more.") }
  }

  func run() throws {
    let chosen = MicroBenchmark.all.filter { only == nil || $0.name.contains(only ?? "") }
    guard !chosen.isEmpty else {
      logLine("larder-bench: no benchmark's name contains '\(only ?? "")'; see --list")
      throw ExitCode(2)
    }
    if list { return print(chosen.map(\.name).joined(separator: "\n")) }
    let settings = MicroSettings(entries: entries)
    if let operations {
      for benchmark in chosen { try benchmark.perform(operations, settings) }
      return
    }
    var figures: [MeasuredFigure] = []
    for benchmark in chosen {
      let times = try benchmark.time(settings)
      let figure = MeasuredFigure(
        benchmark.name, Quantity("CPU time an operation", "ns"), of: Contender.larder, times)
      figures.append(figure)
      if !json {
        let name = benchmark.name.padded(to: 44)
        let base = figures.first { $0.work == benchmark.baseline }
        let overhead = base.map { ", \(grouped(figure.median - $0.median)) ns more" } ?? ""
        print("\(name) \(grouped(figure.median)) ns (\(grouped(figure.lowest))–\(grouped(figure.highest)))\(overhead)")
      }
    }
    if json { print(try JSON.encode(MicroReport(entries: entries, figures: figures))) }
  }
}

/// The result of `larder-bench micro`, as written to JSON.
private struct MicroReport: Encodable {
  private let surroundings = Surroundings()
  private let entries: Int
  private let figures: Figures

  init(entries: Int, figures: [MeasuredFigure]) {
    self.entries = entries
    self.figures = Figures(figures)
  }
}

extension String {
  func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
