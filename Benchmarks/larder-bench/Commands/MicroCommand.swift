import ArgumentParser
import Platform

struct MicroCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "micro",
    abstract: "Measures frames, the memory engine and data sources in this process.",
    discussion:
      "Prints nanoseconds of CPU time an operation. contrib/microbench counts instructions instead, which are the same in every run."
  )

  @Option(help: "Only what has this in its name.")
  var only: String?
  @Option(help: "Entries of the stores.")
  var entries = 1_000_000
  @Option(help: "Do exactly so many operations of each, once, and tell no times; for counting instructions.")
  var operations: Int?
  @Flag(help: "Print the names and do nothing.")
  var list = false
  @Flag(help: "Print the result as JSON.")
  var json = false

  func validate() throws {
    guard (1...100_000_000).contains(entries) else { throw ValidationError("--entries takes 1 to 100000000.") }
    guard operations.map({ $0 > 0 }) ?? true else { throw ValidationError("--operations takes 1 or more.") }
  }

  func run() throws {
    let chosen = MicroBenchmark.all.filter { only == nil || $0.name.contains(only ?? "") }
    guard !chosen.isEmpty else {
      logLine("larder-bench: nothing has '\(only ?? "")' in its name; see --list")
      throw ExitCode(2)
    }
    if list { return print(chosen.map(\.name).joined(separator: "\n")) }
    let settings = MicroSettings(entries: entries)
    if let operations {
      for benchmark in chosen { try benchmark.prepare(settings)(operations) }
      return
    }
    var figures: [MeasuredFigure] = []
    for benchmark in chosen {
      let times = try benchmark.time(settings)
      let figure = MeasuredFigure(
        benchmark.name, "CPU time an operation", of: Contender.larder, unit: "ns", isBetterLower: true, times)
      figures.append(figure)
      if !json {
        let name = benchmark.name.padded(to: 44)
        let base = figures.first { $0.work == benchmark.beyond }
        let overhead = base.map { ", \(grouped(figure.median - $0.median)) ns more" } ?? ""
        print("\(name) \(grouped(figure.median)) ns (\(grouped(figure.lowest))–\(grouped(figure.highest)))\(overhead)")
      }
    }
    if json { print(try JSON.encode(MicroReport(surroundings: Surroundings(), entries: entries, figures: figures))) }
  }
}

struct MicroReport: Codable {
  var surroundings: Surroundings
  var entries: Int
  var figures: [MeasuredFigure]
}

extension MicroBenchmark {
  private static let rounds = 5
  private static let nanosecondsOfRound: UInt64 = 100_000_000

  /// Nanoseconds of this process's CPU time an operation in each round: what else the machine does hardly shows in them. A round does as
  /// many as take about a tenth of a second.
  func time(_ settings: MicroSettings) throws -> [Double] {
    let work = try prepare(settings)
    var count = 64
    while count < 1 << 40 {
      let start = Clocks.processCPU()
      work(count)
      let passed = Clocks.processCPU() - start
      if passed >= Self.nanosecondsOfRound / 2 { break }
      count *= passed < Self.nanosecondsOfRound / 20 ? 8 : 2
    }
    return (0..<Self.rounds).map { _ in
      let start = Clocks.processCPU()
      work(count)
      return Double(Clocks.processCPU() - start) / Double(count)
    }
  }
}

extension String {
  func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
