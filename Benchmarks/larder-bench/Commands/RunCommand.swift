import ArgumentParser
import Platform

struct RunCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Puts a load on one server, and tells its latencies, throughput and cost.",
    discussion: """
      A TARGET is larder:, resp: (Redis, Valkey), memcached: or echo:, and unix:/path or tcp:HOST:PORT.
      A WORKLOAD is get, put, mixed:N (N percent gets), get-many:N, page, or one of ycsb-a to ycsb-f. Keys are uniform, for YCSB A, B, C, E \
      and F Zipf's; YCSB D reads what was inserted last.

      Without --rate, each connection sends its next requests when the last ones are answered. With it, requests are planned at a constant \
      rate, and latency counts from the planned time: a server that stalls can't hide it.
      """)

  @Option(help: "The server, as larder:unix:/run/larder.sock.", transform: TargetArgument.init)
  var target: TargetArgument
  @Option(help: "What to ask of it.", transform: Workload.init)
  var workload: Workload
  @Option(help: "Connections in all.")
  var connections = 50
  @Option(help: "Requests under way on a connection.")
  var pipeline = 1
  @Option(help: "Threads of the generator; the connections are divided among them.")
  var threads = 1
  @Option(help: "How many keys there are.")
  var keys = 200_000
  @Option(help: "The size of values, in bytes.")
  var valueSize = 100
  @Option(help: "End after so many requests.")
  var requests: Int?
  @Option(help: "End after so long, as 500ms, 10s, 2m. (default: 10s)", transform: DurationArgument.init)
  var duration: DurationArgument?
  @Option(
    help: "Leave so much of the beginning out of the latencies. (default: 100ms, with --requests nothing)",
    transform: DurationArgument.init)
  var warmUp: DurationArgument?
  @Option(help: "Requests a second in all. (default: as many as the server answers)")
  var rate: Double?
  @Option(help: "How keys are drawn: uniform or zipf. (default: the workload's)")
  var distribution: Distribution?
  @Option(help: "What all random numbers begin with.")
  var seed: UInt64 = 1
  @Option(help: "The Larder store; it is made if it is missing.")
  var store = "bench"
  @Option(help: "The server's process, to tell its CPU time, memory and context switches.")
  var serverPid: Int32?
  @Option(help: "Give up when the server is silent for so long. (default: 10s)", transform: DurationArgument.init)
  var timeout: DurationArgument?
  @Flag(inversion: .prefixedNo, help: "Write all keys before the run.")
  var load = true
  @Flag(help: "Print the result as JSON.")
  var json = false

  func validate() throws {
    guard (1...10_000).contains(connections) else { throw ValidationError("--connections takes 1 to 10000.") }
    guard (1...4_096).contains(pipeline) else { throw ValidationError("--pipeline takes 1 to 4096.") }
    guard (1...64).contains(threads), threads <= connections else {
      throw ValidationError("--threads takes 1 to 64, and no more than there are connections.")
    }
    guard (1...1_000_000_000).contains(keys) else { throw ValidationError("--keys takes 1 to 1000000000.") }
    guard (0...8 << 20).contains(valueSize) else { throw ValidationError("--value-size takes 0 to 8388608.") }
    guard requests == nil || duration == nil else { throw ValidationError("Give --requests or --duration, not both.") }
    guard (warmUp?.duration ?? .zero) < (duration?.duration ?? .seconds(10)) else {
      throw ValidationError("--warm-up has to be shorter than the run.")
    }
    guard requests.map({ $0 > 0 }) ?? true else { throw ValidationError("--requests takes 1 or more.") }
    guard rate.map({ $0 > 0 && $0 <= 1e8 }) ?? true else { throw ValidationError("--rate takes up to 100000000.") }
    guard distribution != .latest else {
      throw ValidationError("--distribution takes uniform or zipf; ycsb-d has its own.")
    }
  }

  func run() throws {
    raiseDescriptorLimit()
    var plan = LoadPlan(address: target.address, protocolName: target.protocolName, workload: workload)
    plan.stores = [store]
    plan.connections = connections
    plan.pipeline = pipeline
    plan.threads = threads
    plan.keys = keys
    plan.valueSize = valueSize
    plan.requests = requests
    plan.duration = duration?.duration ?? .seconds(10)
    plan.warmUp = warmUp?.duration ?? (requests == nil ? min(.milliseconds(100), plan.duration / 5) : .zero)
    plan.rate = rate
    plan.distribution = distribution
    plan.seed = seed
    plan.patience = timeout?.duration ?? .seconds(10)
    let surroundings = Surroundings()
    let outcome: LoadOutcome
    do {
      let probe = try serverPid.map(ServerProbe.init(process:))
      let display = LiveProgress()
      if load { try plan.loadKeys { display.show("loading", $0) } }
      outcome = try plan.run(probe: probe) { display.show(workload.name, $0) }
      display.clear()
    } catch {
      logLine("larder-bench: \(error)")
      throw ExitCode(4)
    }
    let report = RunReport(plan, outcome, surroundings: surroundings)
    print(json ? try JSON.encode(report) : report.text)
    if outcome.tally.hasFailures { throw ExitCode.failure }
  }
}
