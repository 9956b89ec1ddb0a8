import DataSourceFutures
import DataSources
import Testing

@testable import TopLevelFutures

/// The seeds' snippets do what their pages say.
@Suite struct SeedTests {
  @Test func `an extension makes a custom query a key query`() async throws {
    let network = InMemoryDataSource<Item>()
    let storage = InMemoryDataSource<Item>()
    try await network.putAll(["far"], in: Seed000.SearchQuery("lorem ipsum"))
    try await storage.putAll(["near", "too"], forId: "search:\"lorem ipsum\"")
    let found = Recorder<[Item]>()
    Seed000.search(network, storage) { found.add($0) }
    while found.events.count < 2 { try await Task.sleep(for: .milliseconds(1)) }
    #expect(Set(found.events) == [["far"], ["near", "too"]])
  }

  @Test func `the key of a custom query made by an extension is its text`() async throws {
    let network = ScriptedDataSource<Item>()
    let storage = ScriptedDataSource<Item>()
    Seed001.search(network, storage)
    while network.calls.isEmpty || storage.calls.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
    #expect(network.calls == [.getAll] && storage.calls == [.getAll])
    try await storage.putAll(["near"], in: Seed001.SearchQuery("lorem ipsum"))
    #expect(try await storage.getAll("lorem ipsum") == ["near"])
  }

  @Test func `a source that is written with futures can be awaited like any other`() async throws {
    let source = Seed000.MyCustomDataSource()
    #expect(try await source.get(IdQuery("a")) == Seed000.MyObject(name: "a"))
    #expect(try await source.get("a") == Seed000.MyObject(name: "a"))
    #expect(try await source.getAll(Seed000.MyCustomQuery()) == [Seed000.MyObject(name: "custom")])
    let erased: any GetDataSource<Seed001.MyObject> = Seed001.MyCustomDataSource()
    #expect(try await erased.get(Seed001.MyCustomQuery()) == Seed001.MyObject(name: "custom"))
  }

  @Test func `Harmony's fatalError ends the process`() async {
    await #expect(processExitsWith: .failure) {
      _ = try await Seed000.MyCustomDataSource().get(Seed000.AnotherQuery())
    }
  }

  @Test func `then receives the value, and fail receives the error`() async throws {
    let printed = Recorder<String>()
    Seed004.usage { printed.add($0) }
    while printed.events.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
    #expect(printed.events == ["Success: value of myKey"])
    let error = Future<DataSourceError?> { resolver in
      let source = Seed004.MyCustomGetDataSource()
      source.get(IdQuery("other")).fail { resolver.set(.success($0 as? DataSourceError)) }
    }
    #expect(try await error.value == .queryNotSupported)
  }

  @Test func `a call by id has the same result as its query`() async throws {
    for call in [Seed004.queries, Seed004.ids] as [@Sendable (ScriptedDataSource<String>, String) -> Void] {
      let source = ScriptedDataSource<String>()
      call(source, "mine")
      while source.calls.count < 3 { try await Task.sleep(for: .milliseconds(1)) }
      #expect(Set(source.calls) == [.get, .put, .delete])
    }
  }

  @Test func `sources conform to the seeds' protocols`() async throws {
    func put<S: Seed004.PutDataSource & Seed004.GetDataSource & Sendable>(_ source: S, _ value: S.T) -> Future<S.T> {
      source.put(value, in: IdQuery(1)).flatMap { _ in source.get(IdQuery("1")) }
    }
    #expect(try await put(InMemoryDataSource<Int>(), 7).value == 7)
    #expect(try await put(AnyDataSource(InMemoryDataSource<Int>()), 8).value == 8)
  }
}
