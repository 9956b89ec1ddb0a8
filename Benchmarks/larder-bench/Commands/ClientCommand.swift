import ArgumentParser

struct ClientCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "client",
    abstract: """
      Measures the client library: many tasks call get over one connection, one observes documents, and \
      one reads a live cache.
      """,
    discussion: """
      Starts its own larderd. For comparison, as many connections as tasks, up to \(BareClient.maxConnections), call the \
      same server from one thread in C; and, if they are installed, redis-benchmark calls redis-server over one \
      connection.
      """)

  @Option(help: "Call this server instead, such as larder:unix:/run/larder.sock.", transform: TargetArgument.init)
  private var target: TargetArgument?
  @Option(help: "The numbers of concurrent tasks, such as 1,64,1024.", transform: TaskCounts.init)
  private var tasks: TaskCounts?
  @Option(help: "The number of keys.")
  private var keys = 200_000
  @Option(help: "The size of values, in bytes.")
  private var valueSize = 100
  @Option(help: "Make exactly this many calls, once, and print nothing; for counting instructions.")
  private var calls: Int?
  @OptionGroup private var options: BenchOptions

  func validate() throws {
    guard target.map({ $0.protocolName == .larder }) ?? true else {
      throw ValidationError("--target takes larder:ADDRESS.")
    }
    guard (1...100_000_000).contains(keys) else { throw ValidationError("--keys takes 1 to 100000000.") }
    guard (0...8 << 20).contains(valueSize) else { throw ValidationError("--value-size takes 0 to 8388608.") }
  }

  func run() throws {
    try options.run { (plan: inout ClientPlan) in
      if let tasks { plan.tasks = tasks.counts }
      plan.keys = keys
      plan.valueSize = valueSize
    } measure: { plan, runner in
      var comparison = ClientComparison(plan, runner)
      return try comparison.run(target: target?.address, calls: calls)
    }
  }
}
