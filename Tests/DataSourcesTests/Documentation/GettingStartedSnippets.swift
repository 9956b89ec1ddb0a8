import DataSources
import Testing

/// The code of "Getting started".
@Suite struct GettingStartedSnippets {
  @Test func `a source and its values`() async throws {
    let books = InMemoryDataSource<Book>()
    try await books.put(Book(title: "Invisible Cities"), forId: "cities")
    try await books.putAll([Book(title: "Cosmicomics"), Book(title: "t zero")], forId: "qfwfq")
    // The next snippet.
    let one = try await books.get("cities")
    let list = try await books.getAll("qfwfq")
    let everything = try await books.getAll(AllObjectsQuery())
    try await books.delete("cities")
    // The page goes on.
    #expect(one.title == "Invisible Cities" && list.count == 2 && everything.count == 3)
  }

  @Test func `several at once, and pages`() async throws {
    let books = InMemoryDataSource<Book>()
    try await books.putAll([Book(title: "Zeno's Conscience"), Book(title: "Senilità")], forId: [1, 2])
    let both = try await books.getAll([1, 2])
    let known = try await books.getAll([1, 2, 3], missing: .skip)
    // The next snippet.
    let second = try await books.getAll(PaginationOffsetLimitQuery(offset: 20, limit: 20))
    let next = try await books.getAll(PaginationCursorQuery(after: "cities", limit: 20))
    // The page goes on.
    #expect(both.count == 2 && known.count == 2 && second.isEmpty && next.isEmpty)
  }

  @Test func errors() async throws {
    let books = InMemoryDataSource<Book>()
    var printed: [String] = []
    func print(_ text: String) { printed.append(text) }
    do {
      let book = try await books.get("missing")
      print(book.title)
    } catch DataSourceError.notFound {
      print("no such book")
    }
    #expect(printed == ["no such book"])
  }

  @Test func `a query of one's own`() async throws {
    let books = InMemoryDataSource<Book>()
    let found = [Book(title: "Invisible Cities")]
    try await books.putAll(found, in: ShelfQuery(shelf: "novels"))
    let again = try await books.getAll(ShelfQuery(shelf: "novels"))
    #expect(again.count == 1)
  }

  @Test func `without await`() async throws {
    let books = InMemoryDataSource<Book>()
    try await books.put(Book(title: "Zeno's Conscience"), forId: "zeno")
    let printed = Recorder<String>()
    @Sendable func print(_ text: String) { printed.add(text) }
    func calls() {
      books.get("zeno").then { print($0.title) }.fail { print("\($0)") }
    }
    calls()
    while printed.events.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
    #expect(printed.events == ["Zeno's Conscience"])
  }
}

struct ShelfQuery: Query {
  let shelf: String
}

extension ShelfQuery: KeyQuery {
  var key: String { "shelf:" + shelf }
}
