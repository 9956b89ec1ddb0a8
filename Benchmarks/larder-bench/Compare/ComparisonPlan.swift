/// The works that a comparison measures, and their parameters.
struct ComparisonPlan: BenchPlan {
  var repeats = 5
  var turn: Duration = .seconds(1)
  var connections = 50
  var keys = 200_000
  /// The number of entries for which memory is measured.
  var entriesInMemory = 1_000_000
  /// The rates of the load curve, as fractions of the best peer's peak.
  var loadSteps = [0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.6]
  var seed: UInt64 = 1
  /// The number of latency turns per turn of other work. Many short turns keep a disturbance by the machine in one of
  /// them.
  static let latencyTurns = 3
  static let works = [
    Work("get", pipeline: 1), Work("put", pipeline: 1), Work("get", pipeline: 16), Work("put", pipeline: 16),
    Work("get-many:100", pipeline: 1), Work("page", pipeline: 1),
  ]

  /// The rate at which latencies are compared, as a fraction of the best peer's peak.
  static let comparedLoad = 0.7
  /// The setups that show whether a second worker costs anything.
  static let workerSetups = [(workers: 1, stores: 1), (workers: 2, stores: 1), (workers: 2, stores: 2)]
  /// The works of these setups: those with one key per request.
  static let workerWorks = Array(works.prefix(4))

  struct Work: Sendable {
    let workload: String
    let pipeline: Int
    var name: String { pipeline == 1 ? "\(workload), no pipelining" : "\(workload), \(pipeline) pipelined" }

    init(_ workload: String, pipeline: Int) {
      self.workload = workload
      self.pipeline = pipeline
    }
  }

  static var quick: ComparisonPlan {
    var plan = ComparisonPlan()
    plan.repeats = 2
    plan.turn = .milliseconds(250)
    plan.entriesInMemory = 200_000
    plan.loadSteps = [0.4, 0.7, 1.0]
    return plan
  }
}
