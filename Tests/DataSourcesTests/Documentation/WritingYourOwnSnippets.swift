import DataSources
import Testing

/// The code of "Writing one's own".
@Suite struct WritingYourOwnSnippets {
  @Test func `five requirements are a whole source`() async throws {
    let source = OneEntryDataSource()
    try await source.put(5, forId: "only")
    #expect(try await source.get("only") == 5)
    #expect(try await source.getAll(AllObjectsQuery()) == [5])
    #expect(await failure { try await source.get(VoidQuery()) } == .queryNotSupported)
  }

  @Test func `any other source throws for what it doesn't know`() async throws {
    #expect(try await GreetingDataSource().get("you") == "Hello, you!")
    #expect(await failure { try await GreetingDataSource().get(VoidQuery()) } == .queryNotSupported)
  }

  @Test func `a source of futures is awaited`() async throws {
    #expect(try await CallbackDataSource().get("a") == "called back")
    #expect(await failure { try await CallbackDataSource().getAll("a") } == .queryNotSupported)
  }

  actor OneEntryDataSource: KeyValueDataSource {
    private var kept: KeyValueEntry<Int>?

    func entries(of keys: [String]) -> [StoredValue<Int>?] { keys.map { $0 == kept?.key ? kept?.value : nil } }
    func entries(in range: EntryRange) -> [KeyValueEntry<Int>] { kept.map { [$0] } ?? [] }
    func store(_ entries: [KeyValueEntry<Int>]) { kept = entries.last }
    func remove(_ keys: [String]) { if let kept, keys.contains(kept.key) { self.kept = nil } }
    func removeAll() { kept = nil }
  }

  struct GreetingDataSource: GetDataSource {
    func get(_ query: any Query) async throws -> String {
      switch query {
      case let query as IdQuery<String>: return "Hello, \(query.id)!"
      default: throw query.notSupported(.get, self)
      }
    }

    func getAll(_ query: any Query) async throws -> [String] {
      throw query.notSupported(.getAll, self)
    }
  }

  struct CallbackDataSource: FutureGetDataSource {
    func get(_ query: any Query) -> Future<String> {
      Future(resolving: { resolver in
        readSomewhere { resolver.set($0) }
      })
    }

    func getAll(_ query: any Query) -> Future<[String]> {
      Future(failing: query.notSupported(.getAll, self))
    }
  }
}

private func readSomewhere(_ done: @escaping @Sendable (String) -> Void) {
  Task.detached { done("called back") }
}
