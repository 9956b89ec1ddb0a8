import ArgumentParser
import Platform

/// The options of all families of benchmarks.
struct BenchOptions: ParsableArguments {
  @Option(help: "The folder for the tables, and for the figures as JSON. (default: only print the tables)")
  private var results: String?
  @Option(name: .customLong("repeat"), help: "The number of rounds. (default: 5, or 15 of documents; quick: 2)")
  private(set) var repeats: Int?
  @Option(
    help: "The time slice of a contender in each round. (default: 1s or 2s; quick: less)",
    transform: DurationArgument.init)
  private(set) var slice: DurationArgument?
  @Option(help: "The seed of all random numbers.")
  private var seed: UInt64 = 1
  @Flag(help: "Take rough measurements in less than a minute.")
  private var quick = false
  @Flag(help: "Print the result as JSON instead of tables.")
  private var json = false

  func validate() throws {
    guard repeats.map({ (1...100).contains($0) }) ?? true else { throw ValidationError("--repeat takes 1 to 100.") }
  }

  /// Measures a family, writes its results and prints them.
  /// - Parameters:
  ///   - folder: The parent folder of the servers' data; nil for the system's temporary folder.
  ///   - configure: Changes the plan by the options of a command.
  ///   - measure: Returns nil if there is nothing to print.
  ///   - conclude: Called at the end; what it throws makes the command fail.
  func run<Plan: BenchPlan>(
    disk folder: String? = nil, _ configure: (inout Plan) throws -> Void = { _ in },
    measure: (Plan, BenchRunner) throws -> BenchReport?, conclude: (BenchReport) throws -> Void = { _ in }
  ) throws {
    raiseDescriptorLimit()
    var plan = quick ? Plan.quick : Plan()
    if let repeats { plan.repeats = repeats }
    if let slice { plan.turn = slice.duration }
    plan.seed = seed
    do {
      try configure(&plan)
      let display = LiveProgress()
      let runner = try BenchRunner(plan, disk: folder, isPinned: true, display: display)
      let signalCleanup = SignalCleanup(runner.sockets, runner.disk)
      defer {
        display.clear()
        signalCleanup.cancel()
        runner.sockets.remove()
        runner.disk.remove()
      }
      guard let report = try measure(plan, runner) else { return }
      display.clear()
      if let results { try report.write(to: results) }
      print(json ? try JSON.encode(report.result) : report.markdown)
      try conclude(report)
    } catch {
      logLine("larder-bench: \(error)")
      throw ExitCode.failure
    }
  }
}
