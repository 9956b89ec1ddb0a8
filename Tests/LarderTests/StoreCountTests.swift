import Testing
import Wire

@testable import Larder

/// Clients that use more stores than 16 bits can number, and than a server lets a connection open.
@Suite(.serialized) struct StoreCountTests {
  @Test func `a client can use 70,000 store names`() async throws {
    try await withServer { client, _ in
      for number in 0..<70_000 { #expect(client.store("store-\(number)").name == "store-\(number)") }
      let items = client.store("items")
      try await items.put("a", [1])
      #expect(try await items.get("a")?.bytes == [1])
    }
  }

  @Test func `more stores than a connection may open can be used in turn`() async throws {
    try await withServer {
      $0.limits.maxOpenStores = 4
    } _: { client, _ in
      for number in 0..<20 { try await client.createStore("s\(number)") }
      for round in 0..<3 {
        for number in 0..<20 {
          let store = client.store("s\(number)")
          if round > 0 { #expect(try await store.get("key")?.bytes == [UInt8(number), UInt8(round - 1)]) }
          try await store.put("key", [UInt8(number), UInt8(round)])
        }
      }
      #expect(try await client.store("s7").stats()["entries"] == 1)
    }
  }

  @Test func `more stores than a connection may open can be used at the same time`() async throws {
    try await withServer {
      $0.limits.maxOpenStores = 4
    } _: { client, _ in
      for number in 0..<20 { try await client.createStore("s\(number)") }
      try await withThrowingTaskGroup { group in
        for task in 0..<40 {
          group.addTask {
            for round in 0..<25 {
              let store = client.store("s\((task + round) % 20)")
              try await store.put("\(task)", [UInt8(round)])
              #expect(try await store.get("\(task)")?.bytes == [UInt8(round)])
            }
          }
        }
        try await group.waitForAll()
      }
    }
  }

  @Test func `a watched store does not keep others from being opened`() async throws {
    try await withServer {
      $0.limits.maxOpenStores = 1
    } _: { client, _ in
      try await client.createStore("other")
      let items = client.store("items")
      var watch = items.watch().makeAsyncIterator()
      _ = try await watch.start()
      try await client.store("other").put("a", [1])
      try await items.put("b", [2])
      #expect(try await watch.next()?.changes.count == 1)
      #expect(try await client.store("other").get("a")?.bytes == [1])
    }
  }

  @Test func `a dropped store's handle is closed like any other`() async throws {
    try await withServer {
      $0.limits.maxOpenStores = 2
    } _: { client, _ in
      for number in 0..<10 {
        try await client.createStore("s\(number)")
        let store = client.store("s\(number)")
        try await store.put("a", [1])
        try await client.dropStore("s\(number)")
        await #expect(throws: LarderError.self) { try await store.get("a") }
        try await client.store("items").put("\(number)", [])
      }
      #expect(try await client.store("items").count() == 10)
    }
  }

  @Test func `calls on too many busy stores fail with an error that says so`() async throws {
    let server = try FakeServer(openStores: 2) { $0.operation == .get ? .silence : .answer }
    let client = try LarderClient(server.address)
    let calls = (0..<2).map { number in
      Task { await failure { () async throws(LarderError) in try await client.store("s\(number)").get("key") } }
    }
    while server.count(of: .get) < 2 { try await Task.sleep(for: .milliseconds(1)) }
    let third = client.store("third").with(timeout: .milliseconds(100))
    let (error, took) = await failure { () async throws(LarderError) in try await third.get("key") }
    #expect(error?.kind == .tooManyStores && error?.outcome == .notExecuted)
    #expect(error?.message.contains("2 stores") == true)
    #expect(took >= .milliseconds(100))
    client.close()
    for call in calls { #expect(await call.value.error?.kind == .closed) }
  }
}
