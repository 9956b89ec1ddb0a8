import DataSources
import Foundation
import Larder
import SQLiteDataSource
import SecretDataSource
import Testing

/// A kind of key-value source to run the suite of key-value sources against.
struct KeyValueSubject: Sendable, CustomTestStringConvertible {
  let testDescription: String
  /// The first cell of the source's row in the table of the documentation.
  let documentation: String
  /// Whether the source has revisions, conditions, batches and times to live.
  var hasRevisions = true
  /// Whether the source can be watched.
  var canBeWatched = false
  /// Creates the source at a place.
  let make: @Sendable (Place) throws -> any KeyValueDataSource<Item>

  /// Runs a test with a new, empty source.
  func run(_ body: (any KeyValueDataSource<Item>) async throws -> Void) async throws {
    let place = try Place()
    let result: Result<Void, any Error>
    do { result = .success(try await body(make(place))) } catch { result = .failure(error) }
    await place.close()
    try result.get()
  }
}

extension KeyValueSubject {
  static let all = local + remote

  private static let local: [KeyValueSubject] = [
    KeyValueSubject(testDescription: "InMemory", documentation: "`InMemoryDataSource`", canBeWatched: true) { _ in
      InMemoryDataSource()
    },
    KeyValueSubject(testDescription: "DeviceStorage", documentation: "`DeviceStorageDataSource`") {
      DeviceStorageDataSource(directory: $0.url)
    },
    KeyValueSubject(
      testDescription: "DeviceStorage, root key", documentation: "`DeviceStorageDataSource` with a root key",
      hasRevisions: false
    ) { DeviceStorageDataSource(directory: $0.url, .rootKey("items")) },
    KeyValueSubject(testDescription: "FileSystem", documentation: "`FileSystemDataSource`", hasRevisions: false) {
      JSONFiles(files: FileSystemDataSource(directory: $0.url))
    },
    KeyValueSubject(testDescription: "Secret", documentation: "`SecretDataSource`", hasRevisions: false) {
      SecretDataSource(directory: $0.url, key: SecretKey())
    },
    KeyValueSubject(testDescription: "SQLite", documentation: "`SQLiteDataSource`") {
      let database = try SQLiteDatabase(file: $0.url.appendingPathComponent("items.sqlite"))
      return try SQLiteDataSource<Item, Item>(database, store: "items")
    },
  ]

  private static let remote =
    ["memory", "log", "directory"].map { engine in
      KeyValueSubject(
        testDescription: "Remote, " + engine, documentation: "`RemoteDataSource`", canBeWatched: true
      ) { try $0.server.client.dataSource(of: Item.self, store: "items", creating: engine) }
    } + [
      KeyValueSubject(
        testDescription: "Remote, replicated", documentation: "`RemoteDataSource`", canBeWatched: true
      ) { try $0.clientOfSharedStores.dataSource(of: Item.self, store: "items", creating: "replicated") }
    ]
}

/// Items in a source of files.
private struct JSONFiles: KeyValueDataSource {
  let files: FileSystemDataSource

  func entries(of keys: [String]) async throws -> [StoredValue<Item>?] {
    try await files.entries(of: keys).map { try $0.map(item) }
  }

  func entries(in range: EntryRange) async throws -> [KeyValueEntry<Item>] {
    try await files.entries(in: range).map { KeyValueEntry(key: $0.key, value: try item($0.value)) }
  }

  func store(_ entries: [KeyValueEntry<Item>]) async throws {
    try await files.store(
      entries.map { entry in
        let values = try entry.value.elements.map { try JSONEncoder().encode($0) }
        return KeyValueEntry(key: entry.key, value: entry.value.list == nil ? .single(values[0]) : .list(values))
      })
  }

  func remove(_ keys: [String]) async throws { try await files.remove(keys) }
  func removeAll() async throws { try await files.removeAll() }

  private func item(_ value: StoredValue<Data>) throws -> StoredValue<Item> {
    let items = try value.elements.map { try JSONDecoder().decode(Item.self, from: $0) }
    return value.list == nil ? .single(items[0]) : .list(items)
  }
}
