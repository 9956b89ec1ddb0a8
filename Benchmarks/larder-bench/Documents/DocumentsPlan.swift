/// The sizes of the samples of `larder-bench documents`, and how often each work is repeated.
struct DocumentsPlan: BenchPlan {
  var repeats = 15
  /// The number of rounds of work that takes about a second or more.
  var longRepeats = 5
  /// How long the latencies of gets are measured in each round.
  var turn: Duration = .seconds(2)
  var seed: UInt64 = 1
  /// The number of documents of 1 KiB.
  var orders = DocumentsBench.orders
  /// The number of small documents that are searched, sorted and put.
  var persons = DocumentsBench.persons
  /// The numbers of small documents whose indexes are also built by SQLite, at most `persons`.
  var indexedPersons = [1_000, 10_000, 50_000, 100_000]
  /// The number of small documents of a large store.
  var manyPersons = 1_000_000

  static var quick: DocumentsPlan {
    var plan = DocumentsPlan()
    plan.repeats = 2
    plan.longRepeats = 1
    plan.manyPersons = 200_000
    plan.turn = .milliseconds(500)
    return plan
  }
}
