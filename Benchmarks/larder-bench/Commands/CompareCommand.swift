import ArgumentParser
import Dispatch
import Foundation
import Platform

struct CompareCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compare",
    abstract: "Does the same work with Larder, every peer that is installed and a bare echo, in turn.",
    discussion: """
      Starts larderd, redis-server, valkey-server, memcached and bench-echo, as far as they are there, on sockets of their own; checks that \
      values are read back equal; and writes tables, JSON and, with gnuplot, plots. contrib/bench installs what is missing.
      """)

  @Option(help: "The folder for compare.md, compare.json and the plots. (default: only print the tables)")
  var results: String?
  @Option(name: .customLong("repeat"), help: "Rounds. (default: 5, quick: 2)")
  var repeats: Int?
  @Option(
    help: "How long each contender works at a time. (default: 1s, quick: 250ms)", transform: DurationArgument.init)
  var turn: DurationArgument?
  @Option(help: "What all random numbers begin with.")
  var seed: UInt64 = 1
  @Flag(help: "Rough figures in less than half a minute.")
  var quick = false
  @Flag(help: "Print the result as JSON instead of tables.")
  var json = false

  func validate() throws {
    guard repeats.map({ (1...100).contains($0) }) ?? true else { throw ValidationError("--repeat takes 1 to 100.") }
  }

  func run() throws {
    raiseDescriptorLimit()
    var plan = quick ? ComparisonPlan.quick : ComparisonPlan()
    if let repeats { plan.repeats = repeats }
    if let turn { plan.turn = turn.duration }
    plan.seed = seed
    plan.processors = (try? ProcessorSet.ofThread()).flatMap(ComparisonPlan.Processors.init(dividing:))
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
    let interruption = Interruption(folder)
    defer {
      interruption.cancel()
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

/// Ends the servers and removes their folders when this process is asked to end.
struct Interruption {
  private let sources: [any DispatchSourceSignal]

  init(_ folders: TemporaryFolder...) {
    sources = [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler {
        RunningServer.killAll()
        for folder in folders { folder.remove() }
        exit(128 + number)
      }
      source.activate()
      return source
    }
  }

  func cancel() {
    for source in sources { source.cancel() }
    for number in [SIGINT, SIGTERM] { signal(number, SIG_DFL) }
  }
}
