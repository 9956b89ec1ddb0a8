import DataSources
import Foundation
import GRDB
import SQLiteDataSource
import TestSupport
import Testing

/// Calls that wait for another process's write, and damaged values.
@Suite(.timeLimit(.minutes(5))) struct SQLiteWaitingTests {
  private let directory: TemporaryFolder
  private let file: URL
  private let source: SQLiteDataSource<Int, Int>
  /// A connection that the source doesn't know, as in another process.
  private let other: DatabaseQueue

  init() async throws {
    directory = try TemporaryFolder()
    file = directory.url.appendingPathComponent("items.sqlite")
    source = try SQLiteDataSource(SQLiteDatabase(file: file), store: "items", indexes: ["a"])
    try await source.put(0, forId: "a")
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    other = try DatabaseQueue(path: file.path, configuration: configuration)
  }

  private func lock() throws { try other.inDatabase { try $0.execute(sql: "BEGIN IMMEDIATE") } }
  private func unlock() throws { try other.inDatabase { try $0.execute(sql: "ROLLBACK") } }

  @Test func `waiting writes don't block other tasks and can be cancelled, however many they are`() async throws {
    try lock()
    let source = source
    let waiting = (0..<64).map { number in Task { try await source.put(number, forId: "a") } }
    for _ in 0..<8 {
      let value = try await source.get("a")
      #expect(value == 0)
    }
    for task in waiting.reversed() {
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    try unlock()
    try await source.put(1, forId: "a")
    #expect(try await source.keys() == ["a"])
  }

  @Test func `a write waits for a limited time`() async throws {
    let hasty = try SQLiteDataSource(
      SQLiteDatabase(file: file, lockTimeout: .milliseconds(10)), store: "items", of: Int.self)
    try lock()
    await #expect { try await hasty.put(1, forId: "a") } throws: { error in
      (error as? DataSourceError)?.kind == .failed && "\(error)".contains("lockTimeout")
    }
    try unlock()
    try await hasty.put(2, forId: "a")
    #expect(try await hasty.get("a") == 2)
  }

  @Test func `a store that exists is opened without waiting for another process's write`() async throws {
    try lock()
    let database = try SQLiteDatabase(file: file, lockTimeout: .zero)
    #expect(try await SQLiteDataSource(database, store: "items", of: Int.self, indexes: ["a"]).get("a") == 0)
    #expect(throws: DataSourceError.failed) { try SQLiteDataSource(database, store: "other", of: Int.self) }
    #expect(throws: DataSourceError.failed) {
      try SQLiteDataSource(database, store: "items", of: Int.self, indexes: ["b"])
    }
    try unlock()
    #expect(try await SQLiteDataSource(database, store: "other", of: Int.self).keys() == [])
  }

  @Test func `values of another type are skipped and reported on request`() async throws {
    let database = try SQLiteDatabase(file: file)
    let reported = Recorder<String>()
    let items = try SQLiteDataSource<Item, Item>(database, store: "items", damaged: .skip { reported.add($0.key) })
    try await items.put("x", forId: "b")
    #expect(try await items.getAll(AllObjectsQuery()) == ["x"])
    #expect(try await items.getAll(["a", "b"], missing: .skip) == ["x"])
    #expect(try await items.getAll(SelectorQuery(.all)) == ["x"])
    #expect(reported.events == ["a", "a"])
    #expect(await failure { try await items.get("a") } == .dataSerialization)
    #expect(await failure { try await source.getAll(AllObjectsQuery()) } == .dataSerialization)
  }
}
