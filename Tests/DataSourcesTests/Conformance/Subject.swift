import DataSources
import Foundation
import SQLiteDataSource
import SecretDataSource
import Testing

/// A kind of source that the conformance suite is run against.
struct Subject: Sendable, CustomTestStringConvertible {
  let testDescription: String
  /// A source with a directory of its own, or the same source again over the same directory.
  let make: @Sendable (URL) throws -> AnyDataSource<Item>

  /// Runs a test with a new and empty source.
  func run(_ body: (AnyDataSource<Item>) async throws -> Void) async throws {
    let directory = try TemporaryDirectory()
    try await body(make(directory.url))
  }
}

extension Subject {
  private static let testKey = SecretKey()

  /// Everything that claims to be a whole key-value source.
  static let all: [Subject] = [
    Subject(testDescription: "InMemory") { _ in AnyDataSource(InMemoryDataSource()) },
    Subject(testDescription: "DeviceStorage, regular") { AnyDataSource(DeviceStorageDataSource(directory: $0)) },
    Subject(testDescription: "DeviceStorage, prefix") {
      AnyDataSource(DeviceStorageDataSource(directory: $0, .prefix("items")))
    },
    Subject(testDescription: "DeviceStorage, root key") {
      AnyDataSource(DeviceStorageDataSource(directory: $0, .rootKey("items")))
    },
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
    Subject(testDescription: "SQLite") {
      let database = try SQLiteDatabase(file: $0.appendingPathComponent("items.sqlite"))
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
}
