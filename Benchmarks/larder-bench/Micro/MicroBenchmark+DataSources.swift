import DataSources
import Dispatch
import Larder
import LarderTesting

extension MicroBenchmark {
  /// Gets from data sources: in memory, with and without type erasure, and from a server in this process, through more
  /// and more layers.
  static var dataSources: [MicroBenchmark] {
    [
      MicroBenchmark(name: "data source in memory: get of its own type") { settings in
        gets(from: try populated(InMemoryDataSource<Document>(), settings), settings)
      },
      MicroBenchmark(
        name: "data source in memory: get through Any", baseline: "data source in memory: get of its own type"
      ) { settings in
        gets(from: AnyDataSource(try populated(InMemoryDataSource<Document>(), settings)), settings)
      },
      MicroBenchmark(name: "JSON codec: decode") { settings in
        let codec = JSONCodec<Document>()
        let bytes = try codec.encode(Document(settings))
        return { count in
          for _ in 0..<count { keep(try? codec.decode(bytes)) }
        }
      },
      MicroBenchmark(name: "remote: get of a store's bytes, 16 tasks") { settings in
        let server = try TestServer.start(stores: ["micro": "memory"])
        let keys = queries(settings).map(\.key)
        let store = try populated(server.client.dataSource(of: Document.self, store: "micro"), settings).store
        return concurrently { index in
          keep(try await store.get(keys[index & mask]))
          keep(server)
        }
      },
      remote("remote: get of a data source of bytes, 16 tasks", of: [UInt8].self),
      remote("remote: get of a data source of JSON, 16 tasks", of: Document.self),
    ]
  }

  private static func remote<T: Codable & Sendable>(_ name: String, of type: T.Type) -> MicroBenchmark {
    MicroBenchmark(name: name, baseline: "remote: get of a store's bytes, 16 tasks") { settings in
      let server = try TestServer.start(stores: ["micro": "memory"])
      _ = try populated(server.client.dataSource(of: Document.self, store: "micro"), settings)
      let source = server.client.dataSource(of: type, store: "micro")
      let queries = queries(settings)
      return concurrently { index in
        keep(try await source.get(queries[index & mask]))
        keep(server)
      }
    }
  }

  private struct Document: Codable, Sendable {
    let title: String
    let price: Int

    init(_ settings: MicroSettings) {
      title = String(decoding: BenchValue.bytes(size: settings.valueSize), as: UTF8.self)
      price = 995
    }
  }

  private static let mask = 0xFFF

  /// Returns queries made in advance, because a caller has its query.
  private static func queries(_ settings: MicroSettings) -> [IdQuery<String>] {
    var random = Random(seed: settings.seed)
    return (0...mask).map { _ in
      IdQuery(String(decoding: BenchKey.bytes(random.below(UInt64(entries(settings)))), as: UTF8.self))
    }
  }

  /// Returns a limited number of entries, because populating a larger source takes longer than measuring it.
  private static func entries(_ settings: MicroSettings) -> Int { min(settings.entries, 10_000) }

  private static func populated<S: PutDataSource<Document>>(_ source: S, _ settings: MicroSettings) throws -> S {
    let ids = (0..<entries(settings)).map { String(decoding: BenchKey.bytes(UInt64($0)), as: UTF8.self) }
    let values = Array(repeating: Document(settings), count: ids.count)
    try runBlocking { _ = try await source.putAll(values, forId: ids) }
    return source
  }

  private static func gets<S: GetDataSource<Document>>(
    from source: S, _ settings: MicroSettings
  ) -> (Int) -> Void {
    let queries = queries(settings)
    return { count in
      try? runBlocking {
        for index in 0..<count { keep(try await source.get(queries[index & mask])) }
      }
    }
  }

  /// Returns work that 16 concurrent tasks perform.
  private static func concurrently(_ work: @escaping @Sendable (Int) async throws -> Void) -> (Int) -> Void {
    { count in
      try? runBlocking {
        try await withThrowingTaskGroup { group in
          for task in 0..<16 {
            group.addTask {
              for index in stride(from: task, to: count, by: 16) { try await work(index) }
            }
          }
          try await group.waitForAll()
        }
      }
    }
  }

  /// Blocks until asynchronous work is done.
  private static func runBlocking(_ body: @escaping @Sendable () async throws -> Void) throws {
    let done = DispatchSemaphore(value: 0)
    let task = Task {
      defer { done.signal() }
      try await body()
    }
    done.wait()
    _ = task
  }
}
