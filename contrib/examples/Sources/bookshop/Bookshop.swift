import DataSources
import Larder

/// The books of a service, stored on a Larder server. Reads use the server or, while it is unavailable, the values that
/// were read or written before. Writes require the server.
struct Bookshop {
  private let books: CacheRepository<Book>

  init(server address: String) throws {
    var configuration = LarderClient.Configuration()
    configuration.timeout = .seconds(1)
    // If the server is unavailable, fail immediately instead of waiting.
    configuration.waitsForConnection = false
    let larder = try LarderClient(address, configuration: configuration)
    books = CacheRepository(
      main: larder.dataSource(store: "books", codec: JSONCodec(), creating: "log"),
      cache: InMemoryDataSource(),
      // A cached value is never fresh enough to replace a read from the server, but better than nothing.
      validity: Validation { _ in false },
      defaultOperation: .cacheSync(fallback: true))
  }

  func book(_ id: Int) async throws -> Book {
    try await books.get(id)
  }

  /// Stores a book on the server, and then in the cache.
  func save(_ book: Book, as id: Int) async throws {
    try await books.put(book, forId: id)
  }

  func firstBooks(_ count: Int) async throws -> [Book] {
    try await books.getAll(PaginationOffsetLimitQuery(offset: 0, limit: count), operation: .main)
  }
}

struct Book: Codable, Sendable {
  let title: String
  let cents: Int
}
