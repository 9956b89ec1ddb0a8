import DataSources
import TestSupport
import Testing

/// The snippets of "Conditions, Batches and Changes".
@Suite struct KeyValueSnippets {
  private let library = InMemoryDataSource<Book>()

  init() async throws {
    for number in 1...3 { try await library.put(Book(title: "\(number)"), forId: "book:\(number)") }
  }

  @Test func `the snippets with pages, prefixes and counts run`() async throws {
    var printed: [String] = []
    func print(_ text: String) { printed.append(text) }
    var query: PaginationCursorQuery? = PaginationCursorQuery(limit: 100, prefix: "book:")
    while let next = query {
      let page = try await library.page(next)
      for entry in page.entries { print(entry.key) }
      query = page.next
    }
    #expect(printed == ["book:1", "book:2", "book:3"])
    // The next snippet.
    let books = try await library.getAll(PrefixQuery("book:"))
    let count = try await library.count(prefix: "book:")
    let isKnown = try await library.contains("book:1")
    let third = try await library.getIfPresent("book:3")
    try await library.delete(PrefixQuery("draft:"))
    // End of the snippet.
    #expect(books.count == 3 && count == 3 && isKnown && third?.title == "3")
  }

  @Test func `the snippets with conditions, batches and time to live run`() async throws {
    var printed: [String] = []
    func print(_ text: String) { printed.append(text) }
    let visits = InMemoryDataSource<Int>()
    let revision = try await library.put(Book(title: "Marcovaldo"), forId: "book:4", if: .absent)
    do {
      try await library.put(Book(title: "Palomar"), forId: "book:4", if: .absent)
    } catch DataSourceError.conflict {
      print("book 4 exists")
    }
    try await library.put(Book(title: "Palomar"), forId: "book:4", if: .revision(revision))
    // The next snippet.
    try await visits.update("home") { count in count = (count ?? 0) + 1 }
    // The next snippet.
    let shelf = try await library.entry(forId: "shelf")
    try await library.apply { batch in
      if let shelf { batch.check("shelf", hasRevision: shelf.revision) }
      batch.put(Book(title: "Palomar"), forId: "book:5", if: .absent)
      batch.delete("draft:5")
    }
    // The next snippet.
    try await library.put(Book(title: "Difficult Loves"), forId: "lent:6", expiresIn: .seconds(3_600))
    // End of the snippet.
    #expect(printed == ["book 4 exists"])
    #expect(try await library.keys().count == 6)
    #expect(try await visits.get("home") == 1)
  }

  @Test func changes() async throws {
    let printed = Recorder<String>()
    @Sendable func print(_ text: String, _ key: String = "") { printed.add(text + " " + key) }
    let changes = try await library.changes(prefix: "book:")
    let watcher = Task {
      for try await change in changes {
        switch change {
        case .put(let entry): print("put", entry.key)
        case .delete(let key): print("deleted", key)
        case .deleteAll: print("deleted everything")
        }
      }
    }
    // End of the snippet.
    try await library.put(Book(title: "Palomar"), forId: "book:1")
    try await library.delete("book:2")
    while printed.events.count < 2 { await Task.yield() }
    watcher.cancel()
    #expect(printed.events == ["put book:1", "deleted book:2"])
  }

  @Test func `the table of sources lists what each source does`() throws {
    let page = try DocumentationPage("Sources/DataSources/DataSources.docc/ConditionsAndChanges.md")
    let rows = page.rows("Source")
    for subject in KeyValueSubject.all {
      let row = try #require(rows.first { $0[0] == subject.documentation })
      #expect(row[1] == "yes")
      #expect(row[2] == (subject.hasRevisions ? "yes" : "no"))
      #expect(row[3].hasPrefix(subject.canBeWatched ? "yes" : "no"))
    }
    #expect(Set(rows.map { $0[0] }) == Set(KeyValueSubject.all.map(\.documentation)))
  }
}
