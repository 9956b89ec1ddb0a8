import ArgumentParser
import Foundation
import Platform

struct DurableCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "durable",
    abstract: "Measures durable stores beside Redis, the bare disk and memory stores, by their goals.",
    discussion: """
      Starts larderd and, when it is installed, redis-server, with their data on one file system, and tells of each goal whether it is \
      reached. That is what it measures: a goal that is not reached is no failure of the command.
      """)

  @Option(
    help: "Where the servers keep their data: a folder on a disk. What is made in it is removed. (default: .build)")
  var directory: String?
  @Option(help: "The folder for durable.md and durable.json. (default: only print the table)")
  var results: String?
  @Option(help: ArgumentHelp("Only this part. Can be repeated.", valueName: "part"))
  var only: [DurablePart] = []
  @Option(name: .customLong("repeat"), help: "Rounds. (default: 5, quick: 2)")
  var repeats: Int?
  @Option(
    help: "How long each contender works at a time. (default: 2s, quick: 500ms)", transform: DurationArgument.init)
  var turn: DurationArgument?
  @Option(help: "What all random numbers begin with.")
  var seed: UInt64 = 1
  @Flag(help: "Rough figures with fewer keys, in less than a minute.")
  var quick = false
  @Flag(help: "Print the result as JSON instead of a table.")
  var json = false

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
    plan.processors = (try? ProcessorSet.ofThread()).flatMap(ComparisonPlan.Processors.init(dividing:))
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
    let interruption = Interruption(sockets, disk)
    defer {
      interruption.cancel()
      sockets.remove()
      disk.remove()
    }
    if let mount = Mount(holding: disk.path), mount.isMemory {
      throw BenchError("\(parent) is on a \(mount.kind), which keeps nothing; give --directory a folder on a disk")
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
