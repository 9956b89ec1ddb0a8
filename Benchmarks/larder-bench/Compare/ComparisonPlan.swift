import Platform

/// What a comparison measures, and for how long.
struct ComparisonPlan: Sendable {
  var repeats = 5
  /// How long each contender works at a time.
  var turn: Duration = .seconds(1)
  /// Which processors the generator and the servers keep to, so that neither takes the other's; nil where there is but one.
  var processors: Processors?
  /// The part of each turn that is left out of its latencies.
  var warmUp: Duration { min(.milliseconds(100), turn / 5) }
  var connections = 50
  var keys = 200_000
  var valueSize = 100
  /// Entries of the servers whose memory is measured.
  var entriesInMemory = 1_000_000
  /// Rates of the load curve, as parts of the best peer's peak.
  var loadSteps = [0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.6]
  var seed: UInt64 = 1
  /// Turns at the rate at which latencies are compared, for each turn of other work: many short ones, because what the machine does to
  /// one of them says nothing of the server.
  static let latencyTurns = 3
  var works = [
    Work("get", pipeline: 1), Work("put", pipeline: 1), Work("get", pipeline: 16), Work("put", pipeline: 16),
    Work("get-many:100", pipeline: 1), Work("page", pipeline: 1),
  ]

  /// Latencies are compared at this part of the best peer's peak.
  static let comparedLoad = 0.7
  /// How many workers serve how many stores, to see that a second one costs nothing.
  static let workerSetups = [(workers: 1, stores: 1), (workers: 2, stores: 1), (workers: 2, stores: 2)]
  /// What they do: the works with one key each.
  var workerWorks: [Work] { Array(works.prefix(4)) }

  struct Processors: Sendable {
    var generator: ProcessorSet
    var servers: ProcessorSet

    /// The last one for the generator, all others for the servers.
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

  /// Rough figures in a fraction of the time.
  static var quick: ComparisonPlan {
    var plan = ComparisonPlan()
    plan.repeats = 2
    plan.turn = .milliseconds(250)
    plan.entriesInMemory = 200_000
    plan.loadSteps = [0.4, 0.7, 1.0]
    return plan
  }

  func load(_ work: Work, on contender: Contender, at address: Address, turn number: Int) throws -> LoadPlan {
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
