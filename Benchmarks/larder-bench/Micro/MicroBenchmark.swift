/// A piece of work in this process that is done again and again.
struct MicroBenchmark {
  let name: String
  /// The name of an earlier one that does the same with less in between.
  var beyond: String?
  /// Makes what the work needs; what it returns does so many operations.
  let prepare: (MicroSettings) throws -> (Int) -> Void

  static var all: [MicroBenchmark] { wire + storage + dataSources }
}

/// What micro-benchmarks work on.
struct MicroSettings {
  /// Entries of the stores.
  var entries = 1_000_000
  var valueSize = 100
  var seed: UInt64 = 1
}

/// Keeps the compiler from leaving out work whose result nobody reads.
@inline(never)
@_optimize(none)
func keep<T>(_ value: T) {}
