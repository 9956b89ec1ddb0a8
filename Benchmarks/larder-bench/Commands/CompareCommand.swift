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

      The works: small, requests with values of 100 bytes; large, gets and puts of 64 KiB and 1 MiB; isolation, small \
      gets beside gets of 10 MB; memory, what stays resident after bursts; stall, gets while the disk of another store \
      stalls, which requires root. The others than small compare Larder with Redis and Valkey over TCP and with goals; \
      they are written to large.md and large.json. A goal that is not reached does not make the command fail, except \
      with --check.
      """)

  @Option(
    parsing: .upToNextOption,
    help: "What to measure: small, or one or more of large, isolation, memory and stall. (default: small)")
  private var work: [ComparedWork] = []
  @Option(help: "The folder for tables, JSON and plots. (default: only print the tables)")
  private var results: String?
  @Option(name: .customLong("repeat"), help: "The number of rounds. (default: 5, quick: 2)")
  private var repeats: Int?
  @Option(
    help:
      "How long each turn of a contender takes. (default: 1s, quick: 250ms; twice that for latencies beside other work)",
    transform: DurationArgument.init)
  private var turn: DurationArgument?
  @Option(help: "The seed of all random numbers.")
  private var seed: UInt64 = 1
  @Flag(help: "Take rough measurements in less than half a minute.")
  private var quick = false
  @Flag(help: "Measure Larder alone, and fail if it misses a goal of isolation, memory or stall.")
  private var check = false
  @Flag(help: "Print the result as JSON instead of tables.")
  private var json = false

  func validate() throws {
    guard repeats.map({ (1...100).contains($0) }) ?? true else { throw ValidationError("--repeat takes 1 to 100.") }
    guard !work.contains(.small) || Set(work) == [.small] else {
      throw ValidationError("--work small can't be combined with other works.")
    }
    // The goals of the other works are relative to peers.
    guard !check || (!work.isEmpty && !work.contains { $0 == .small || $0 == .large }) else {
      throw ValidationError("--check takes --work isolation, memory or stall.")
    }
  }

  func run() throws {
    raiseDescriptorLimit()
    let parts = LargePart.allCases.filter { part in work.contains { $0.part == part } }
    do { try parts.isEmpty ? compareSmall() : compareLarge(parts) } catch {
      logLine("larder-bench: \(error)")
      throw ExitCode.failure
    }
  }

  private var processors: ComparisonPlan.Processors? {
    (try? ProcessorSet.ofCurrentThread()).flatMap(ComparisonPlan.Processors.init(dividing:))
  }

  private func compareSmall() throws {
    var plan = quick ? ComparisonPlan.quick : ComparisonPlan()
    if let repeats { plan.repeats = repeats }
    if let turn { plan.turn = turn.duration }
    plan.seed = seed
    plan.processors = processors
    let report = try compare(plan)
    if let results { try write(report, to: results) }
    print(json ? try JSON.encode(report) : report.markdown)
  }

  private func compareLarge(_ parts: [LargePart]) throws {
    var plan = quick ? LargePlan.quick : LargePlan()
    plan.parts = parts
    plan.includesPeers = !check
    if let repeats { plan.repeats = repeats }
    if let turn { (plan.turn, plan.pacedTurn) = (turn.duration, turn.duration * 2) }
    plan.seed = seed
    plan.processors = processors
    // The disk of the stores that stall or don't.
    let (sockets, disk) = (try TemporaryFolder(), try TemporaryFolder(in: Programs.folder))
    let signalCleanup = SignalCleanup(sockets, disk)
    defer {
      signalCleanup.cancel()
      sockets.remove()
      disk.remove()
    }
    let display = LiveProgress()
    defer { display.clear() }
    var bench = LargeBench(plan, sockets: sockets, disk: disk, display: display)
    let report = try bench.run()
    display.clear()
    if let results {
      try FileManager.default.createDirectory(atPath: results, withIntermediateDirectories: true)
      try report.markdown.write(toFile: "\(results)/large.md", atomically: true, encoding: .utf8)
      try (JSON.encode(report) + "\n").write(toFile: "\(results)/large.json", atomically: true, encoding: .utf8)
    }
    print(json ? try JSON.encode(report) : report.markdown)
    let missed = report.rows.filter { $0.isReached == false }.map(\.title)
    if check, !missed.isEmpty { throw BenchError("missed goals: \(missed.joined(separator: "; "))") }
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
      logLine("larder-bench: no peer is installed; contrib/bench installs redis-server, valkey-server and memcached")
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

/// A group of works of `larder-bench compare`.
private enum ComparedWork: String, CaseIterable, ExpressibleByArgument {
  case small
  case large
  case isolation
  case memory
  case stall

  /// The part of the comparison of large requests; nil for small ones.
  var part: LargePart? { LargePart(rawValue: rawValue) }
}
