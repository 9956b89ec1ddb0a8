import ArgumentParser
import Platform

struct RunCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Generates load on one server and reports latency, throughput and CPU cost.",
    discussion: """
      A TARGET is larder:, resp: (Redis, Valkey), memcached: or echo:, followed by unix:/path or tcp:HOST:PORT.
      A WORKLOAD is get, put, mixed:N (N percent gets), get-many:N, put-many:N, apply:N (N puts and N checks), page, \
      or one of ycsb-a to ycsb-f. Keys are drawn uniformly; for YCSB A, B, C, E and F from a Zipf distribution; YCSB \
      D prefers the latest inserts.

      Without --rate, each connection sends its next requests after the replies to the previous ones. With --rate, \
      requests are scheduled at a constant rate, and latency counts from the scheduled time, so that a server can't \
      hide a stall.
      """)

  @Option(help: "The server, such as larder:unix:/run/larder.sock.", transform: TargetArgument.init)
  private var target: TargetArgument
  @Option(help: "The mix of requests.", transform: Workload.init)
  private var workload: Workload
  @Option(help: "The number of connections.")
  private var connections = 50
  @Option(help: "The number of requests in flight per connection.")
  private var pipeline = 1
  @Option(help: "The number of generator threads, which share the connections.")
  private var threads = 1
  @Option(help: "The number of keys.")
  private var keys = 200_000
  @Option(help: "The size of values, in bytes.")
  private var valueSize = 100
  @Option(help: "Stop after this many requests.")
  private var requests: Int?
  @Option(help: "Stop after this time, such as 500ms, 10s or 2m. (default: 10s)", transform: DurationArgument.init)
  private var duration: DurationArgument?
  @Option(
    help: "Ignore latencies for this long at the start. (default: 100ms; none with --requests)",
    transform: DurationArgument.init)
  private var warmUp: DurationArgument?
  @Option(help: "The total number of requests per second. (default: as many as the server answers)")
  private var rate: Double?
  @Option(help: "The distribution of keys: uniform or zipf. (default: the workload's)")
  private var distribution: Distribution?
  @Option(help: "The seed of all random numbers.")
  private var seed: UInt64 = 1
  @Option(help: "The Larder store, which is created if it doesn't exist.")
  private var store = "bench"
  @Option(help: "The server's process ID, to report CPU time, memory and context switches.")
  private var serverPid: Int32?
  @Option(help: "Give up if the server is silent for this long. (default: 10s)", transform: DurationArgument.init)
  private var timeout: DurationArgument?
  @Flag(inversion: .prefixedNo, help: "Write all keys before the run starts.")
  private var load = true
  @Flag(help: "Print the result as JSON.")
  private var json = false

  func validate() throws {
    guard (1...10_000).contains(connections) else { throw ValidationError("--connections takes 1 to 10000.") }
    guard (1...4_096).contains(pipeline) else { throw ValidationError("--pipeline takes 1 to 4096.") }
    guard (1...64).contains(threads), threads <= connections else {
      throw ValidationError("--threads takes 1 to 64, but no more than --connections.")
    }
    guard (1...1_000_000_000).contains(keys) else { throw ValidationError("--keys takes 1 to 1000000000.") }
    guard (0...8 << 20).contains(valueSize) else { throw ValidationError("--value-size takes 0 to 8388608.") }
    guard requests == nil || duration == nil else { throw ValidationError("Give --requests or --duration, not both.") }
    guard (warmUp?.duration ?? .zero) < (duration?.duration ?? .seconds(10)) else {
      throw ValidationError("--warm-up must be shorter than the run.")
    }
    guard requests.map({ $0 > 0 }) ?? true else { throw ValidationError("--requests takes 1 or more.") }
    guard rate.map({ $0 > 0 && $0 <= 1e8 }) ?? true else { throw ValidationError("--rate takes up to 100000000.") }
    guard distribution != .latest else {
      throw ValidationError("--distribution takes uniform or zipf; only ycsb-d uses latest.")
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
    plan.timeout = timeout?.duration ?? .seconds(10)
    let surroundings = Surroundings()
    let outcome: LoadOutcome
    do {
      let probe = try serverPid.map(ServerUsageProbe.init(process:))
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
