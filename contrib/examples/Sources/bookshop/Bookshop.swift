import DataSources
import Larder

/// A service's books, which are kept by a Larder server. Reads ask the server, and fall back to what was read or written before when it is
/// away; writes need it.
struct Bookshop {
  private let books: CacheRepository<Book>

  init(server address: String) throws {
    var configuration = LarderClient.Configuration()
    configuration.timeout = .seconds(1)
    // A server that is away is told at once, rather than waited for.
    configuration.waitsForConnection = false
    let larder = try LarderClient(address, configuration: configuration)
    books = CacheRepository(
      main: larder.dataSource(store: "books", codec: JSONCodec(), creating: "log"),
      cache: InMemoryDataSource(),
      // What the cache has is never fresh enough to do without the server, and better than nothing.
      validity: Validation { _ in false },
      standard: .cacheSync(fallback: true))
  }

  func book(_ id: Int) async throws -> Book {
    try await books.get(id)
  }

  /// The server first: what isn't kept there isn't in the cache either.
  func keep(_ book: Book, as id: Int) async throws {
    try await books.put(book, forId: id, operation: .mainSync)
  }

  func firstBooks(_ count: Int) async throws -> [Book] {
    try await books.getAll(PaginationOffsetLimitQuery(offset: 0, limit: count), operation: .main)
  }
}

struct Book: Codable, Sendable {
  let title: String
  let cents: Int
}
