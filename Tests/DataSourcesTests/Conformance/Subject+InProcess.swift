import DataSources
import Foundation
import SQLiteDataSource
import SecretDataSource

extension Subject {
  private static let testKey = SecretKey()

  /// Sources of this process, and compositions of them.
  static let inProcess: [Subject] = [
    Subject(testDescription: "InMemory") { _ in AnyDataSource(InMemoryDataSource()) },
    deviceStorage("regular") { _ in .regular },
    deviceStorage("prefix") { .prefix($0) },
    deviceStorage("root key") { .rootKey($0) },
    Subject(testDescription: "FileSystem, mapped") {
      AnyDataSource(
        DataSourceMapper(
          FileSystemDataSource(directory: $0),
          toOut: { try JSONDecoder().decode(Item.self, from: $0) }, toIn: { try JSONEncoder().encode($0) }))
    },
    Subject(testDescription: "Secret in memory") { _ in
      AnyDataSource(SecretDataSource(InMemoryDataSource(), key: SecretKey()))
    },
    Subject(testDescription: "Secret in a folder") { AnyDataSource(SecretDataSource(directory: $0, key: testKey)) },
    Subject(testDescription: "SQLite") { directory in
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
      let database = try SQLiteDatabase(file: directory.appendingPathComponent("items.sqlite"))
      return AnyDataSource(try SQLiteDataSource<Item, Item>(database, store: "items"))
    },
    Subject(testDescription: "Any in Any") { _ in AnyDataSource(AnyDataSource(InMemoryDataSource())) },
    Subject(testDescription: "assembled of Any halves") { _ in
      let source = InMemoryDataSource<Item>()
      return AnyDataSource(
        DataSourceAssembler(
          get: AnyGetDataSource(source), put: AnyPutDataSource(source), delete: AnyDeleteDataSource(source)))
    },
    Subject(testDescription: "mapped") { _ in
      AnyDataSource(
        DataSourceMapper(
          InMemoryDataSource<[String]>(), toOut: { Item($0[0], price: Int($0[1])) },
          toIn: { [$0.title, $0.price.map(String.init) ?? ""] }))
    },
    Subject(testDescription: "validated") { _ in
      AnyDataSource(DataSourceValidator(InMemoryDataSource(), .always))
    },
    Subject(testDescription: "retried") { _ in
      AnyDataSource(RetryDataSource(InMemoryDataSource(), RetryRule(retryCount: 1, pause: .zero)))
    },
    Subject(testDescription: "timed cache") { _ in
      AnyDataSource(TimedCacheDataSource(InMemoryDataSource(), lifetime: .seconds(60)))
    },
    Subject(testDescription: "debugged") { _ in AnyDataSource(DebugDataSource(InMemoryDataSource())) },
    Subject(testDescription: "repository of one") { _ in
      AnyDataSource(SingleDataSourceRepository(InMemoryDataSource()))
    },
    Subject(testDescription: "cache repository, main") { _ in
      AnyDataSource(CacheRepository(main: InMemoryDataSource(), cache: InMemoryDataSource(), standard: .main))
    },
  ]

  /// All names share one directory, except in the regular part, which has none.
  private static func deviceStorage(
    _ description: String, _ kind: @escaping @Sendable (String) -> DeviceStorageKind
  ) -> Subject {
    @Sendable func directory(_ place: Place, _ name: String) -> URL {
      kind(name) == .regular ? place.url.appendingPathComponent(name) : place.url
    }
    return Subject(
      testDescription: "DeviceStorage, " + description,
      make: { AnyDataSource(DeviceStorageDataSource(directory: directory($0, $1), kind($1))) },
      misread: { AnyDataSource(DeviceStorageDataSource(directory: directory($0, $1), kind($1))) })
  }
}
