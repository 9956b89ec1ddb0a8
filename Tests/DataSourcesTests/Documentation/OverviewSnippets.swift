import DataSources
import Testing

struct Book: Codable, Sendable {
  let title: String
}

/// The code of the catalogue's first page.
@Suite struct OverviewSnippets {
  @Test func overview() async throws {
    let books = InMemoryDataSource<Book>()
    try await books.put(Book(title: "Invisible Cities"), forId: 7)
    let book = try await books.get(7)
    let page = try await books.getAll(PaginationOffsetLimitQuery(offset: 0, limit: 20))
    #expect(book.title == "Invisible Cities" && page.count == 1)
  }
}
