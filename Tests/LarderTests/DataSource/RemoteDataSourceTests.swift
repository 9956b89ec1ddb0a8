import DataSources
import Larder
import LarderTesting
import Testing

/// What is particular to a data source behind a server. What it has in common with all others is in the conformance suite.
@Suite struct RemoteDataSourceTests {
  struct Item: Codable, Hashable, Sendable {
    var title: String
  }

  @Test func `values are documents, and lists are lists of them`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"])
    let items = server.client.dataSource(of: Item.self, store: "items")
    try await items.put(Item(title: "a/b"), forId: "single")
    try await items.putAll([Item(title: "x"), Item(title: "y")], forId: "list")
    #expect(try await items.store.get("single")?.bytes == Array(#"{"title":"a/b"}"#.utf8))
    #expect(
      try await items.store.get("list")?.value
        == .list([Array(#"{"title":"x"}"#.utf8), Array(#"{"title":"y"}"#.utf8)]))
  }

  @Test func `a store that isn't there is an error that says what to do`() async throws {
    let server = try TestServer.start()
    let items = server.client.dataSource(of: Item.self, store: "items")
    let error = await #expect(throws: LarderError.self) { try await items.get("a") }
    #expect(error?.kind == .storeUnknown)
    #expect(error?.description.contains("creating:") == true)
    #expect(try await server.client.stores().isEmpty)
  }

  @Test func `many callers at once make a missing store once`() async throws {
    let server = try TestServer.start()
    let items = server.client.dataSource(of: Int.self, store: "items", creating: "log?durability=none")
    try await withThrowingTaskGroup { group in
      for number in 0..<50 { group.addTask { try await items.put(number, forId: number) } }
      try await group.waitForAll()
    }
    #expect(try await items.getAll(AllObjectsQuery()).sorted() == Array(0..<50))
    #expect(try await server.client.stores().map(\.engine) == ["log"])
  }

  @Test func `a store that can't be made is an error`() async throws {
    let server = try TestServer.start()
    let items = server.client.dataSource(of: Int.self, store: "items", creating: "marble")
    let error = await #expect(throws: DataSourceError.self) { try await items.get("a") }
    #expect(error?.kind == .illegalArgument && error?.message.contains("marble") == true)
  }

  @Test func `a store larger than an answer's frames is streamed`() async throws {
    let server = try TestServer.start()
    let texts = server.client.dataSource(of: String.self, store: "texts", creating: "memory")
    var none = 0
    for try await _ in texts.all { none += 1 }
    #expect(none == 0)
    let text = String(repeating: "text ", count: 2_000)
    let ids = (0..<200).map { 1_000 + $0 }
    try await texts.putAll(ids.map { "\($0) \(text)" }, forId: ids)
    var keys: [String] = []
    for try await entry in texts.all {
      #expect(entry.value == .single("\(entry.key) \(text)"))
      keys.append(entry.key)
    }
    #expect(keys == ids.map(String.init))
    #expect(try await texts.getAll(AllObjectsQuery()).count == 200)
  }

  @Test func `more ids than the server takes are refused`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"])
    let items = server.client.dataSource(of: Int.self, store: "items")
    let ids = Array(0..<70_000)
    let error = await #expect(throws: DataSourceError.self) { try await items.putAll(ids, forId: ids) }
    #expect(error?.kind == .illegalArgument && error?.message.contains("split") == true)
    #expect(try await items.getAll(AllObjectsQuery()) == [])
  }
}
