import DataSources
import Foundation
import Testing

/// The code of the documentation's page, which is to be changed together with it.
@Suite struct DocumentationTests {
  struct Book: Codable, Sendable {
    let title: String
  }

  @Test func `the overview's code does what it says`() async throws {
    let books = InMemoryDataSource<Book>()
    try await books.put(Book(title: "Invisible Cities"), forId: 7)
    let book = try await books.get(7)
    let page = try await books.getAll(PaginationOffsetLimitQuery(offset: 0, limit: 20))
    #expect(book.title == "Invisible Cities" && page.count == 1)
    let printed = Recorder<String>()
    @Sendable func print(_ text: String) { printed.add(text) }
    func calls() {
      books.get(7).then { print($0.title) }.fail { print("\($0)") }
    }
    calls()
    while printed.events.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
    #expect(printed.events == ["Invisible Cities"])
  }

  @Test func `sources are made of sources`() async throws {
    let temporary = try TemporaryDirectory()
    let directory = temporary.url
    let files = DeviceStorageDataSource<Book>(directory: directory, .prefix("books"))
    let cached = TimedCacheDataSource(files, lifetime: .seconds(60))
    let books = RetryDataSource(cached, RetryRule(retryCount: 2))
    try await books.put(Book(title: "The Name of the Rose"), forId: "rose")
    #expect(try await books.get("rose").title == "The Name of the Rose")
  }

  @Test func `five requirements are a whole source`() async throws {
    let source = OneEntryDataSource()
    try await source.put(5, forId: "only")
    #expect(try await source.get("only") == 5)
    #expect(try await source.getAll(AllObjectsQuery()) == [5])
    #expect(await failure { try await source.get(VoidQuery()) } == .queryNotSupported)
  }

  /// A source of a user's own, that has room for one entry.
  actor OneEntryDataSource: KeyValueDataSource {
    private var kept: KeyValueEntry<Int>?

    func entries(of keys: [String]) -> [StoredValue<Int>?] { keys.map { $0 == kept?.key ? kept?.value : nil } }
    func entries(in range: EntryRange) -> [KeyValueEntry<Int>] { kept.map { [$0] } ?? [] }
    func store(_ entries: [KeyValueEntry<Int>]) { kept = entries.last }
    func remove(_ keys: [String]) { if let kept, keys.contains(kept.key) { self.kept = nil } }
    func removeAll() { kept = nil }
  }
}
