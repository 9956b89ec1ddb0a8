import Documents
import Larder
import Platform

/// A benchmark of live results: how long after the beginning of a put its change arrives, while nothing else happens.
struct ObservationBench: Sendable {
  /// The number of documents that match.
  static let documentCount = 1_000
  private static let selector = Selector.field("observed", .equal(true))

  private let store: RemoteStore

  /// The delays of one turn.
  struct Outcome: Sendable {
    private let microseconds: [Double]

    /// - Precondition: `delays` is not empty.
    init(delays: [Duration]) { microseconds = delays.map { $0.seconds * 1e6 }.sorted() }

    var median: Double { microseconds[microseconds.count / 2] }
    var longest: Double { microseconds[microseconds.count - 1] }
  }

  init(_ store: RemoteStore) { self.store = store }

  /// Writes the documents, and changes as many of them as asked for, one after the other.
  /// - Throws: `LarderError` if a call fails, `BenchError` if something else arrives than the changes.
  func run(changes: Int) async throws -> Outcome {
    try await store.putMany((0..<Self.documentCount).map { Write(Self.key($0), Self.document(version: 0)) })
    var observation = store.observe(Self.selector).makeAsyncIterator()
    guard case .initial(let documents) = try await observation.next(), documents.count == Self.documentCount else {
      throw BenchError("not all documents are observed")
    }
    var delays: [Duration] = []
    for number in 0..<changes {
      let start = ContinuousClock.now
      let revision = try await store.put(Self.key(number % Self.documentCount), Self.document(version: number + 1))
      guard case .updated(let document) = try await observation.next(), document.revision == revision else {
        throw BenchError("something else than the change arrives")
      }
      delays.append(start.duration(to: .now))
    }
    return Outcome(delays: delays)
  }

  private static func key(_ number: Int) -> String { "observed-\(number)" }

  private static func document(version: Int) -> [UInt8] {
    Array(#"{"observed":true,"version":\#(version)}"#.utf8)
  }
}
