import DataSources
import Documents
import Foundation
import GRDB
import SQLiteDataSource
import TestSupport
import Testing

@Suite struct SQLiteTests {
  private let directory: TemporaryFolder
  private let file: URL

  init() throws {
    directory = try TemporaryFolder()
    file = directory.url.appendingPathComponent("items.sqlite")
  }

  func open() throws -> SQLiteDatabase { try SQLiteDatabase(file: file) }

  func source(_ store: String = "items") throws -> SQLiteDataSource<Item, Item> {
    try SQLiteDataSource(open(), store: store)
  }

  @Test func `entries outlive their source`() async throws {
    try await source().put(Item("one", price: 1), forId: "a")
    try await source().putAll(["x", "y"], forId: "l")
    #expect(try await source().get("a") == Item("one", price: 1))
    #expect(try await source().getAll("l") == ["x", "y"])
  }

  @Test func `45, 46: stores in one file share nothing`() async throws {
    let database = try open()
    let names = ["foo", "foobar", "foo.bar", "Foo", "", "é", "e\u{301}", "\u{0}", "'; DROP TABLE store; --", "sqlite_"]
    let stores = try names.map { try SQLiteDataSource(database, store: $0, of: Item.self) }
    for (name, store) in zip(names, stores) { try await store.put(Item(name), forId: "a") }
    try await stores[0].delete(AllObjectsQuery())
    #expect(await failure { try await stores[0].get("a") } == .notFound)
    for (name, store) in zip(names, stores).dropFirst() {
      let title = try await store.get("a").title
      #expect(title.utf8.elementsEqual(name.utf8))
    }
  }

  @Test func `48: another type is an error, never a default`() async throws {
    try await source().put("text", forId: "a")
    let numbers = try SQLiteDataSource(open(), store: "items", of: Int.self)
    #expect(await failure { try await numbers.get("a") } == .dataSerialization)
    #expect(await failure { try await numbers.getAll(AllObjectsQuery()) } == .dataSerialization)
  }

  @Test func `a value that can't be encoded is an error and changes nothing`() async throws {
    let source = try SQLiteDataSource(open(), store: "numbers", of: Double.self)
    try await source.put(1, forId: "a")
    #expect(await failure { try await source.putAll([2, .nan], forId: ["a", "b"]) } == .dataSerialization)
    #expect(try await source.getAll(AllObjectsQuery()) == [1])
  }

  @Test func `values are mapped to entities and back`() async throws {
    struct Entity: Codable { let name: String, pence: Int }
    let database = try open()
    let source = try SQLiteDataSource<Entity, Item>(
      database, store: "items", toDomain: { Item($0.name, price: $0.pence / 100) },
      toEntity: { Entity(name: $0.title, pence: ($0.price ?? 0) * 100) })
    try await source.put(Item("one", price: 2), forId: "a")
    #expect(try await source.get(SelectorQuery(.field("pence", .equal(200)))) == Item("one", price: 2))
    #expect(try await SQLiteDataSource(database, store: "items", of: Entity.self).get("a").pence == 200)
  }

  @Test func `the database is one file that only its owner can read`() async throws {
    let database = try open()
    try await SQLiteDataSource(database, store: "items").put(1, forId: "a")
    for name in try directory.subpaths() {
      let path = directory.url.appendingPathComponent(name).path
      let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
      #expect(mode == 0o600)
    }
  }

  @Test func `other applications' databases and later versions are rejected and left alone`() async throws {
    try await source().put("one", forId: "a")
    let queue = try DatabaseQueue(path: file.path)
    try await queue.write { try $0.execute(sql: "PRAGMA user_version = 3") }
    #expect(throws: DataSourceError.failed) { try open() }
    try await queue.write { try $0.execute(sql: "PRAGMA user_version = 2") }
    try queue.close()
    #expect(try await source().get("a") == "one")

    let other = directory.url.appendingPathComponent("other.sqlite")
    let otherQueue = try DatabaseQueue(path: other.path)
    try await otherQueue.write { try $0.execute(sql: "CREATE TABLE theirs (a)") }
    try otherQueue.close()
    #expect(throws: DataSourceError.failed) { try SQLiteDatabase(file: other) }

    let text = directory.url.appendingPathComponent("text")
    try Data(String(repeating: "no database ", count: 100).utf8).write(to: text)
    #expect(throws: DataSourceError.failed) { try SQLiteDatabase(file: text) }
    #expect(throws: DataSourceError.failed) { try SQLiteDatabase(file: directory.url) }
    #expect(throws: DataSourceError.failed) { try SQLiteDatabase(file: text.appendingPathComponent("in")) }
  }

  @Test func `a database of version 1 gets revisions and times to live`() async throws {
    let queue = try DatabaseQueue(path: file.path)
    try await queue.write { database in
      try database.execute(
        sql: """
          CREATE TABLE store (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);
          INSERT INTO store VALUES (1, X'6974656D73');
          CREATE TABLE entry_1 (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, isList INTEGER NOT NULL);
          INSERT INTO entry_1 VALUES (7, X'61', FALSE);
          CREATE TABLE element_1 (
            entry INTEGER NOT NULL REFERENCES entry_1(id) ON DELETE CASCADE, position INTEGER NOT NULL,
            value TEXT NOT NULL, PRIMARY KEY (entry, position)) WITHOUT ROWID;
          INSERT INTO element_1 VALUES (7, 0, '5');
          PRAGMA application_id = \(0x4C52_4453);
          PRAGMA user_version = 1;
          """)
    }
    try queue.close()
    for _ in 0..<2 {
      let source = try SQLiteDataSource(open(), store: "items", of: Int.self)
      #expect(try await source.entry(forId: "a") == KeyValueEntry(key: "a", value: .single(5), revision: 1))
      #expect(try await source.put(6, forId: "b", expiresIn: .seconds(60)) > 1)
    }
  }

  @Test func `38: a killed process leaves all of a write or none`() async throws {
    let path = file.path
    for _ in 0..<4 {
      await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
        let source = try SQLiteDataSource(SQLiteDatabase(file: URL(fileURLWithPath: path)), store: "n", of: Int.self)
        try await source.putAll([0, 0, 0], forId: ["a", "b", "c"])
        Task.detached {
          try await Task.sleep(for: .microseconds(Int.random(in: 0...20_000)))
          kill(getpid(), SIGKILL)
        }
        for round in 1... { try await source.putAll([round, round, round], forId: ["a", "b", "c"]) }
      }
      let source = try SQLiteDataSource(open(), store: "n", of: Int.self)
      #expect(try await Set(source.getAll(["a", "b", "c"])).count == 1)
    }
  }
}
