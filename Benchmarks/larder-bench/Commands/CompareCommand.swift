import ArgumentParser
import Foundation
import Platform

struct CompareCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compare",
    abstract: "Runs the same work on Larder, every installed peer and a bare echo server, in turns.",
    discussion: """
      Starts larderd, bench-echo and, if they are installed, redis-server, valkey-server and memcached. Checks that \
      each returns the values that were written. Writes tables, JSON and, if gnuplot is installed, plots. \
      contrib/bench installs what is missing.
      """)

  @Option(help: "The folder for compare.md, compare.json and plots. (default: only print the tables)")
  private var results: String?
  @Option(name: .customLong("repeat"), help: "The number of rounds. (default: 5, quick: 2)")
  private var repeats: Int?
  @Option(
    help: "How long each turn of a contender takes. (default: 1s, quick: 250ms)", transform: DurationArgument.init)
  private var turn: DurationArgument?
  @Option(help: "The seed of all random numbers.")
  private var seed: UInt64 = 1
  @Flag(help: "Take rough measurements in less than half a minute.")
  private var quick = false
  @Flag(help: "Print the result as JSON instead of tables.")
  private var json = false

  func validate() throws {
    guard repeats.map({ (1...100).contains($0) }) ?? true else { throw ValidationError("--repeat takes 1 to 100.") }
  }

  func run() throws {
    raiseDescriptorLimit()
    var plan = quick ? ComparisonPlan.quick : ComparisonPlan()
    if let repeats { plan.repeats = repeats }
    if let turn { plan.turn = turn.duration }
    plan.seed = seed
    plan.processors = (try? ProcessorSet.ofCurrentThread()).flatMap(ComparisonPlan.Processors.init(dividing:))
    do {
      let report = try compare(plan)
      if let results { try write(report, to: results) }
      print(json ? try JSON.encode(report) : report.markdown)
    } catch {
      logLine("larder-bench: \(error)")
      throw ExitCode.failure
    }
  }

  private func compare(_ plan: ComparisonPlan) throws -> ComparisonReport {
    let folder = try TemporaryFolder()
    let signalCleanup = SignalCleanup(folder)
    defer {
      signalCleanup.cancel()
      folder.remove()
    }
    let contenders = try Contender.installed()
    if !contenders.contains(where: \.isPeer) {
      logLine("larder-bench: no peer is installed; contrib/bench installs redis-server and memcached")
    }
    let display = LiveProgress()
    defer { display.clear() }
    var comparison = Comparison(plan, contenders, in: folder, display: display)
    return try comparison.run()
  }

  private func write(_ report: ComparisonReport, to folder: String) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try report.markdown.write(toFile: "\(folder)/compare.md", atomically: true, encoding: .utf8)
    try (JSON.encode(report) + "\n").write(toFile: "\(folder)/compare.json", atomically: true, encoding: .utf8)
    if Plots.isPossible {
      try Plots(report: report, folder: folder).write()
    } else {
      logLine("larder-bench: no plots, because gnuplot is not installed; contrib/bench installs it")
    }
  }
}
