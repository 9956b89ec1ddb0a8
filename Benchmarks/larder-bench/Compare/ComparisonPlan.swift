import Platform

/// The works that a comparison measures, and their parameters.
struct ComparisonPlan: Sendable {
  var repeats = 5
  /// The duration of each turn of a contender.
  var turn: Duration = .seconds(1)
  /// The separate processors of the generator and of the servers; nil on a machine with one processor.
  var processors: Processors?
  /// The start of each turn, in which latencies are ignored.
  var warmUp: Duration { min(.milliseconds(100), turn / 5) }
  var connections = 50
  var keys = 200_000
  var valueSize = 100
  /// The number of entries for which memory is measured.
  var entriesInMemory = 1_000_000
  /// The rates of the load curve, as fractions of the best peer's peak.
  var loadSteps = [0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.6]
  var seed: UInt64 = 1
  /// The number of latency turns per turn of other work. Many short turns keep a disturbance by the machine in one of
  /// them.
  static let latencyTurns = 3
  var works = [
    Work("get", pipeline: 1), Work("put", pipeline: 1), Work("get", pipeline: 16), Work("put", pipeline: 16),
    Work("get-many:100", pipeline: 1), Work("page", pipeline: 1),
  ]

  /// The rate at which latencies are compared, as a fraction of the best peer's peak.
  static let comparedLoad = 0.7
  /// The setups that show whether a second worker costs anything.
  static let workerSetups = [(workers: 1, stores: 1), (workers: 2, stores: 1), (workers: 2, stores: 2)]
  /// The works of these setups: those with one key per request.
  var workerWorks: [Work] { Array(works.prefix(4)) }

  struct Processors: Sendable {
    let generator: ProcessorSet
    let servers: ProcessorSet

    /// Assigns the last processor to the generator and all others to the servers.
    init?(dividing processors: ProcessorSet) {
      guard processors.numbers.count > 1 else { return nil }
      generator = ProcessorSet(processors.numbers.suffix(1))
      servers = ProcessorSet(processors.numbers.dropLast())
    }
  }

  struct Work: Sendable {
    let workload: String
    let pipeline: Int
    var name: String { pipeline == 1 ? "\(workload), no pipelining" : "\(workload), \(pipeline) pipelined" }

    init(_ workload: String, pipeline: Int) {
      self.workload = workload
      self.pipeline = pipeline
    }
  }

  /// A plan for rough measurements in a fraction of the time.
  static var quick: ComparisonPlan {
    var plan = ComparisonPlan()
    plan.repeats = 2
    plan.turn = .milliseconds(250)
    plan.entriesInMemory = 200_000
    plan.loadSteps = [0.4, 0.7, 1.0]
    return plan
  }

  func load(_ work: Work, on contender: Contender, at address: Address, number: Int) throws -> LoadPlan {
    var plan = LoadPlan(
      address: address, protocolName: contender.protocolName, workload: try Workload(work.workload))
    plan.connections = connections
    plan.pipeline = work.pipeline
    plan.stores = contender.stores
    plan.keys = keys
    plan.valueSize = valueSize
    plan.duration = turn
    plan.processors = processors?.generator
    plan.warmUp = warmUp
    plan.seed = seed &+ UInt64(number)
    return plan
  }
}
