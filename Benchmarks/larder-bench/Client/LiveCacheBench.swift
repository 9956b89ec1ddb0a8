import DataSources
import Larder
import Platform

/// A benchmark of a live cache: what a hit costs beside one of a bare cache, and how long a change takes to be seen, while
/// nothing else happens.
struct LiveCacheBench: Sendable {
  /// The number of cached values.
  static let valueCount = 1_000
  /// The time between two reads of a value that is about to change.
  static let pause = Duration.microseconds(50)
  private static let value = [UInt8](repeating: 7, count: 100)

  private let client: LarderClient
  private let writer: RemoteStore
  private let cached: LiveCacheRepository<[UInt8]>
  private let bare = InMemoryDataSource<[UInt8]>()
  private let queries = (0..<valueCount).map { IdQuery("cached-\($0)") }

  /// The figures of one turn.
  struct Outcome: Sendable {
    /// The time of a hit, in nanoseconds.
    let hit: Double
    let bareHit: Double
    /// How long after the beginning of a put of another client the old value was last returned, in microseconds, in
    /// ascending order.
    private let delays: [Double]

    init(hit: Double, bareHit: Double, delays: [Duration]) {
      self.hit = hit
      self.bareHit = bareHit
      self.delays = delays.map { $0.seconds * 1e6 }.sorted()
    }

    var medianDelay: Double { delays[delays.count / 2] }
    var p99Delay: Double { delays[delays.count * 99 / 100] }
  }

  /// - Parameter address: The address of the server, for a client that is nobody else's.
  init(address: Address) throws {
    client = try LarderClient("\(address)")
    writer = try LarderClient("\(address)").store("bench")
    cached = LiveCacheRepository(main: client.dataSource(store: "bench"), prefix: "cached-")
  }

  func close() { client.close() }

  /// - Throws: What calls throw, and `BenchError` if the cache doesn't work.
  func run(hits: Int, changes: Int) async throws -> Outcome {
    for query in queries {
      try await cached.put(Self.value, in: query)
      try await bare.put(Self.value, in: query)
    }
    while !cached.isLive { try await Task.sleep(for: .milliseconds(1)) }
    for query in queries { _ = try await cached.get(query) }
    let bareHit = try await time(of: hits, bare)
    let hit = try await time(of: hits, cached)
    var delays: [Duration] = []
    for number in 0..<changes {
      // As in a service that has other things to do in between.
      try await Task.sleep(for: .milliseconds(1))
      delays.append(try await delay(of: queries[number % queries.count], to: Array("\(number)".utf8)))
    }
    return Outcome(hit: hit, bareHit: bareHit, delays: delays)
  }

  /// Returns the time of a hit, in nanoseconds.
  @inline(never)
  private func time<Source: GetDataSource>(of hits: Int, _ source: Source) async throws -> Double
  where Source.T == [UInt8] {
    let start = Clocks.now()
    for number in 0..<hits {
      guard try await source.get(queries[number % queries.count]).count == Self.value.count else {
        throw BenchError("a value is wrong")
      }
    }
    return Double(Clocks.now() - start) / Double(hits)
  }

  /// Changes a cached value with another client.
  /// - Returns: The time from the beginning of the put to the first read that returns the new value.
  private func delay(of query: IdQuery<String>, to value: [UInt8]) async throws -> Duration {
    guard try await cached.get(query, operation: .cache) != value else { throw BenchError("a value is not cached") }
    let start = ContinuousClock.now
    try await writer.put(query.key, value)
    // A reader that never sleeps would take the time of the server and the connection.
    while try await cached.get(query) != value { try await Task.sleep(for: Self.pause) }
    return start.duration(to: .now)
  }
}
