import DataSources
import Foundation
import Larder

extension Subject {
  /// Sources behind a server in this process, over each engine, and compositions of them.
  static let remote: [Subject] = [
    remote("Remote, memory", engine: "memory"),
    remote("Remote, log", engine: "log"),
    remote("Remote, directory", engine: "directory"),
    remote("Remote in Any in Any") { AnyDataSource(AnyDataSource($0)) },
    Subject(testDescription: "Remote, mapped") { place, name in
      let source = try place.server.client.dataSource(of: Data.self, store: name, creating: "memory")
      return AnyDataSource(
        DataSourceMapper(
          source, toOut: { try JSONDecoder().decode(Item.self, from: $0) }, toIn: { try JSONEncoder().encode($0) }))
    },
    remote("Remote, validated") { AnyDataSource(DataSourceValidator($0, .always)) },
    remote("Remote, timed cache") { AnyDataSource(TimedCacheDataSource($0, lifetime: .seconds(60))) },
    remote("cache repository over Remote") {
      AnyDataSource(CacheRepository(main: $0, cache: InMemoryDataSource(), standard: .mainSync))
    },
  ]

  private static func remote(
    _ description: String, engine: String = "memory",
    _ compose: @escaping @Sendable (RemoteDataSource<Item>) -> AnyDataSource<Item> = { AnyDataSource($0) }
  ) -> Subject {
    Subject(
      testDescription: description,
      make: { try compose($0.server.client.dataSource(store: $1, creating: engine)) },
      misread: { AnyDataSource(try $0.server.client.dataSource(store: $1, creating: engine)) })
  }
}
