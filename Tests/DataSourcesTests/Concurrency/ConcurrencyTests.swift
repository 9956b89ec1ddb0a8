import DataSourceFutures
import DataSources
import Documents
import Foundation
import SQLiteDataSource
import SecretDataSource
import TestSupport
import Testing

/// Many concurrent tasks, for the thread sanitizer, with expectations that hold in any order.
@Suite struct ConcurrencyTests {
  @Test(arguments: Subject.all)
  func `tasks that use different keys don't affect each other`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await withThrowingTaskGroup { group in
        for task in 0..<6 {
          group.addTask {
            for round in 0..<8 {
              let item = Item("\(task)", price: round)
              try await source.put(item, forId: task)
              let got = try await source.get(task)
              #expect(got == item)
              _ = try await source.getAll(AllObjectsQuery())
              try await source.putAll([item, item], forId: "list\(task)")
              try await source.delete("list\(task)")
            }
          }
        }
        try await group.waitForAll()
      }
      let left = try await source.getAll(AllObjectsQuery())
      #expect(left == (0..<6).map { Item("\($0)", price: 7) })
    }
  }

  @Test(arguments: ["files", "secrets", "database"])
  func `two sources over one directory are one store`(_ kind: String) async throws {
    let directory = try TemporaryFolder()
    let key = SecretKey()
    let sources = try (0..<2).map { _ in
      switch kind {
      case "files": AnyDataSource(DeviceStorageDataSource<Int>(directory: directory.url))
      case "secrets": AnyDataSource(SecretDataSource<Int>(directory: directory.url, key: key))
      default:
        AnyDataSource(
          try SQLiteDataSource(
            SQLiteDatabase(file: directory.url.appendingPathComponent("d")), store: "n", of: Int.self))
      }
    }
    try await withThrowingTaskGroup { group in
      for (number, source) in sources.enumerated() {
        group.addTask {
          for round in 1...30 { try await source.putAll([round, round], forId: ["a", "b"]) }
          try await source.put(1, forId: "done\(number)")
        }
        group.addTask {
          for _ in 0..<60 {
            let pair = try await source.getAll(["a", "b"], missing: .skip)
            #expect(pair.isEmpty || pair.count == 2 && pair[0] == pair[1])
          }
        }
      }
      try await group.waitForAll()
    }
    let left = try await sources[0].getAll(["a", "b"])
    #expect(left == [30, 30])
  }

  @Test func `a selector query sees all of a write or nothing`() async throws {
    let directory = try TemporaryFolder()
    let database = try SQLiteDatabase(file: directory.url.appendingPathComponent("d"))
    let source = try SQLiteDataSource(database, store: "n", of: [String: Int].self)
    try await withThrowingTaskGroup { group in
      group.addTask {
        for round in 1...50 {
          try await source.putAll(Array(repeating: ["n": round], count: 3), forId: ["a", "b", "c"])
        }
        try await source.delete(where: .all)
      }
      for _ in 0..<3 {
        group.addTask {
          for _ in 0..<50 {
            let values = try await source.getAll(SelectorQuery(.field("n", .greater(0))))
            #expect(values.isEmpty || values.count == 3 && Set(values).count == 1)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await source.keys() == [])
  }

  @Test func `a timed cache never returns a value older than the writer's own`() async throws {
    let cache = TimedCacheDataSource(InMemoryDataSource<Int>(), lifetime: .seconds(60))
    try await cache.put(0, forId: "a")
    try await withThrowingTaskGroup { group in
      group.addTask {
        for round in 1...2_000 {
          try await cache.put(round, forId: "a")
          let got = try await cache.get("a")
          #expect(got == round)
        }
      }
      for _ in 0..<3 {
        group.addTask {
          var last = 0
          for _ in 0..<2_000 {
            let got = try await cache.get("a")
            #expect(got >= last)
            last = got
          }
        }
      }
      try await group.waitForAll()
    }
  }

  @Test func `many threads can subscribe to and resolve futures`() async throws {
    let source = InMemoryDataSource<Int>()
    func call(_ number: Int) -> Future<Int> { source.put(number, forId: number) }
    let calls = (0..<500).map(call)
    let received = Recorder<Int>()
    for call in calls { call.then { received.add($0) } }
    let values = try await Future.batch(calls).value
    #expect(values == Array(0..<500))
    #expect(received.events.sorted() == values)
  }
}
