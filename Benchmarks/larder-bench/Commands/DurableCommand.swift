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
  @Option(help: ArgumentHelp("Measure only this part. Can be repeated.", valueName: "part"))
  private var only: [DurablePart] = []
  @OptionGroup private var options: BenchOptions

  func run() throws {
    let folder = URL(fileURLWithPath: directory ?? ".build").path
    try options.run(disk: folder) { (plan: inout DurablePlan) in
      if !only.isEmpty { plan.parts = DurablePart.allCases.filter(only.contains) }
    } measure: { plan, runner in
      if let mount = Mount(holding: runner.disk.path), mount.isMemory {
        throw BenchError("\(folder) is on a \(mount.kind), which is not durable; give --directory a folder on a disk")
      }
      if Contender.redis(fsync: "always") == nil {
        logLine("larder-bench: Redis is not installed; contrib/bench installs it")
      }
      var bench = DurableBench(plan, runner)
      return try bench.run()
    }
  }
}

extension DurablePart: ExpressibleByArgument {}
