/// A piece of work in this process that is repeated and timed.
struct MicroBenchmark {
  let name: String
  /// The name of an earlier benchmark that does the same work through fewer layers.
  let baseline: String?
  private let prepare: (MicroSettings) throws -> (Int) -> Void

  /// - Parameter prepare: Prepares the work and returns a function that performs a given number of operations.
  init(name: String, baseline: String? = nil, prepare: @escaping (MicroSettings) throws -> (Int) -> Void) {
    self.name = name
    self.baseline = baseline
    self.prepare = prepare
  }

  static var all: [MicroBenchmark] { wire + storage + dataSources + documents + typedQueries }
}

/// The parameters of microbenchmarks.
struct MicroSettings {
  /// The number of entries in each store.
  var entries = 1_000_000
  var valueSize = 100
  var seed: UInt64 = 1
}

/// Keeps the compiler from removing work whose result is unused.
@inline(never)
@_optimize(none)
func keep<T>(_ value: T) {}

extension MicroBenchmark {
  /// Performs a number of operations once, without measuring them.
  func perform(_ operations: Int, _ settings: MicroSettings) throws { try prepare(settings)(operations) }

  private static let rounds = 5
  private static let roundNanoseconds: UInt64 = 100_000_000

  /// Returns the CPU time per operation in each round, in nanoseconds. CPU time of this process hardly depends on what
  /// else the machine does. A round takes about a tenth of a second.
  func time(_ settings: MicroSettings) throws -> [Double] {
    let work = try prepare(settings)
    var count = 64
    while count < 1 << 40 {
      let start = Clocks.processCPU()
      work(count)
      let elapsed = Clocks.processCPU() - start
      if elapsed >= Self.roundNanoseconds / 2 { break }
      count *= elapsed < Self.roundNanoseconds / 20 ? 8 : 2
    }
    return (0..<Self.rounds).map { _ in
      let start = Clocks.processCPU()
      work(count)
      return Double(Clocks.processCPU() - start) / Double(count)
    }
  }
}
