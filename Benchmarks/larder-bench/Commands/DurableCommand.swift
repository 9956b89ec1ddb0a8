import ArgumentParser
import Foundation
import Platform

struct DurableCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "durable",
    abstract: "Compares durable stores with Redis, the bare disk and memory stores, and with their goals.",
    discussion: """
      Starts larderd and, if it is installed, redis-server, with their data on the same file system, and reports whether \
      each goal is reached. A goal that is not reached does not make the command fail.
      """)

  @Option(
    help: "The folder, on a disk, for the servers' data. The data is removed afterwards. (default: .build)")
  private var directory: String?
  @Option(help: "The folder for durable.md and durable.json. (default: only print the table)")
  private var results: String?
  @Option(help: ArgumentHelp("Measure only this part. Can be repeated.", valueName: "part"))
  private var only: [DurablePart] = []
  @Option(name: .customLong("repeat"), help: "The number of rounds. (default: 5, quick: 2)")
  private var repeats: Int?
  @Option(
    help: "How long each turn of a contender takes. (default: 2s, quick: 500ms)", transform: DurationArgument.init)
  private var turn: DurationArgument?
  @Option(help: "The seed of all random numbers.")
  private var seed: UInt64 = 1
  @Flag(help: "Take rough measurements with fewer keys, in less than a minute.")
  private var quick = false
  @Flag(help: "Print the result as JSON instead of a table.")
  private var json = false

  func validate() throws {
    guard repeats.map({ (1...100).contains($0) }) ?? true else { throw ValidationError("--repeat takes 1 to 100.") }
  }

  func run() throws {
    raiseDescriptorLimit()
    var plan = quick ? DurablePlan.quick : DurablePlan()
    if !only.isEmpty { plan.parts = DurablePart.allCases.filter(only.contains) }
    if let repeats { plan.repeats = repeats }
    if let turn { plan.turn = turn.duration }
    plan.seed = seed
    plan.processors = (try? ProcessorSet.ofCurrentThread()).flatMap(ComparisonPlan.Processors.init(dividing:))
    do {
      let report = try measure(plan)
      if let results { try write(report, to: results) }
      print(json ? try JSON.encode(report) : report.markdown)
    } catch {
      logLine("larder-bench: \(error)")
      throw ExitCode.failure
    }
  }

  private func measure(_ plan: DurablePlan) throws -> DurableReport {
    let parent = URL(fileURLWithPath: directory ?? ".build").path
    let sockets = try TemporaryFolder()
    let disk = try TemporaryFolder(in: parent)
    let signalCleanup = SignalCleanup(sockets, disk)
    defer {
      signalCleanup.cancel()
      sockets.remove()
      disk.remove()
    }
    if let mount = Mount(holding: disk.path), mount.isMemory {
      throw BenchError("\(parent) is on a \(mount.kind), which is not durable; give --directory a folder on a disk")
    }
    if Contender.redis(fsync: "always") == nil {
      logLine("larder-bench: Redis is not installed; contrib/bench installs it")
    }
    let display = LiveProgress()
    defer { display.clear() }
    var bench = DurableBench(plan, sockets: sockets, disk: disk, display: display)
    return try bench.run()
  }

  private func write(_ report: DurableReport, to folder: String) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try report.markdown.write(toFile: "\(folder)/durable.md", atomically: true, encoding: .utf8)
    try (JSON.encode(report) + "\n").write(toFile: "\(folder)/durable.json", atomically: true, encoding: .utf8)
  }
}

extension DurablePart: ExpressibleByArgument {}
