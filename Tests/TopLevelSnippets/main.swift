import DataSources
import Documents
import Foundation
import Larder
import LarderTesting
import SQLiteDataSource
import SecretDataSource

// The snippets of the README and of the documentation of DataSources, as top-level code. TopLevelTests runs it, checks
// what it prints, and checks that no snippet is missing. With the argument "throw", it ends with an uncaught error.

// The overview, which is top-level code to the letter.
struct Book: Codable, Sendable {
  let title: String
}

let books = InMemoryDataSource<Book>()
try await books.put(Book(title: "Invisible Cities"), forId: 7)
let book = try await books.get(7)
let page = try await books.getAll(PaginationOffsetLimitQuery(offset: 0, limit: 20))
print("overview:", book.title, page.count)

if CommandLine.arguments.contains("throw") {
  try await VoidDataSource<Book>().put(book, forId: 7)
  print("the error was lost")
}

// Errors are seen even if nobody uses the result.
do {
  try await VoidDataSource<Book>().put(book, forId: 7)
  print("the error was lost")
} catch {
  print("put:", error)
}
let task = Task { try await VoidDataSource<Book>().put(book, forId: 7) }
print("task:", await task.result)

/// Deletes a directory at the end of its scope.
final class TemporaryDirectory: Sendable {
  let url = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
  init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }
  deinit { try? FileManager.default.removeItem(at: url) }
}

// MARK: - README

do {
  let server = try TestServer.start()
  let client = try LarderClient(server.address)
  try await client.createStore("items")
  let items = client.store("items")

  let revision = try await items.put("book:1", "The Name of the Rose".utf8)
  try await items.put("book:2", "Invisible Cities".utf8, expiresIn: .seconds(3_600))

  if let entry = try await items.get("book:1"), let bytes = entry.bytes {
    print(String(decoding: bytes, as: UTF8.self), entry.revision == revision)
  }
  for try await page in items.pages(of: 100, prefix: "book:") {
    for entry in page { print(entry.key) }
  }
  await client.shutdown()
}

do {
  let server = try TestServer.start()
  let client = server.client
  let books = CacheRepository(
    main: client.dataSource(of: Book.self, store: "books", creating: "memory"),
    cache: InMemoryDataSource())

  try await books.put(Book(title: "Invisible Cities"), forId: 7)
  let book = try await books.get(7)
  let asOfNow = try await books.get(7, operation: .mainSync)
  let page = try await books.getAll(PaginationOffsetLimitQuery(offset: 0, limit: 20), operation: .main)
  print("README:", ([book, asOfNow] + page).map(\.title))
}

do {
  let server = try TestServer.start(stores: ["books": "memory"])
  let books = server.client.dataSource(of: Book.self, store: "books")
  try await books.put(Book(title: "Palomar"), forId: 1)
  print("LarderTesting:", try await books.get(1).title)
}

// MARK: - Getting Started

struct ShelfQuery: Query {
  let shelf: String
}

extension ShelfQuery: KeyQuery {
  var key: String { "shelf:" + shelf }
}

do {
  let books = InMemoryDataSource<Book>()
  try await books.put(Book(title: "Invisible Cities"), forId: "cities")
  try await books.putAll([Book(title: "Cosmicomics"), Book(title: "t zero")], forId: "qfwfq")
  // The next snippet.
  let one = try await books.get("cities")
  let list = try await books.getAll("qfwfq")
  let everything = try await books.getAll(AllObjectsQuery())
  try await books.delete("cities")
  // End of the snippet.
  print("getting started:", one.title, list.map(\.title), everything.count, try await books.keys())
}

do {
  let books = InMemoryDataSource<Book>()
  try await books.putAll([Book(title: "Zeno's Conscience"), Book(title: "Senilità")], forId: [1, 2])
  let both = try await books.getAll([1, 2])
  let known = try await books.getAll([1, 2, 3], missing: .skip)
  // The next snippet.
  let second = try await books.getAll(PaginationOffsetLimitQuery(offset: 20, limit: 20))
  let next = try await books.getAll(PaginationCursorQuery(after: "cities", limit: 20))
  // The next snippet.
  do {
    let book = try await books.get("missing")
    print(book.title)
  } catch DataSourceError.notFound {
    print("no such book")
  }
  // The next snippet.
  let found = [Book(title: "Invisible Cities")]
  try await books.putAll(found, in: ShelfQuery(shelf: "novels"))
  let again = try await books.getAll(ShelfQuery(shelf: "novels"))
  // End of the snippet.
  print("several:", both.count, known.count, second.count, next.count, again.map(\.title))
}

// MARK: - Conditions, Batches and Changes

do {
  let (library, visits) = (InMemoryDataSource<Book>(), InMemoryDataSource<Int>())
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
  // The next snippet.
  var query: PaginationCursorQuery? = PaginationCursorQuery(limit: 100, prefix: "book:")
  while let next = query {
    let page = try await library.page(next)
    for entry in page.entries { print(entry.key) }
    query = page.next
  }
  // The next snippet.
  let books = try await library.getAll(PrefixQuery("book:"))
  let count = try await library.count(prefix: "book:")
  let isKnown = try await library.contains("book:1")
  let third = try await library.getIfPresent("book:3")
  try await library.delete(PrefixQuery("draft:"))
  // The next snippet.
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
  watcher.cancel()
  _ = await watcher.result
  print("conditions:", books.count, count, isKnown, third == nil, try await visits.get("home"))
}

// MARK: - Choosing a Source

struct Product: Codable, Sendable, Equatable {
  let name: String
  let price: Int
}

do {
  let temporary = try TemporaryDirectory()
  let directory = temporary.url
  let books = DeviceStorageDataSource<Book>(directory: directory)
  let lent = DeviceStorageDataSource<Book>(directory: directory, .prefix("lent"))
  let settings = DeviceStorageDataSource<Book>(directory: directory, .rootKey("settings"))
  try await lent.put(Book(title: "Marcovaldo"), forId: "a")
  print("device storage:", try await books.keys(), try await lent.keys(), try await settings.keys())
  let salvaged = DeviceStorageDataSource<Book>(
    directory: directory, damaged: .skip { entry in print("\(entry.key) is damaged: \(entry.error)") })
  print("salvaged:", try await salvaged.getAll(AllObjectsQuery()).count)
}

do {
  let temporary = try TemporaryDirectory()
  let (directory, png) = (temporary.url, Data([0x89, 0x50]))
  let pictures = FileSystemDataSource(directory: directory)
  try await pictures.put(png, forId: "cover.png")
  print("file:", try Data(contentsOf: directory.appendingPathComponent("cover.png")) == png)
}

do {
  let temporary = try TemporaryDirectory()
  let directory = temporary.url.appendingPathComponent("secrets")
  let keyFile = temporary.url.appendingPathComponent("key")
  let newKey = SecretKey()
  let key = try SecretKey.make(file: keyFile)
  let secrets = SecretDataSource<String>(directory: directory, key: key)
  try await secrets.put("correct horse", forId: "database")
  // The next snippet.
  let rotated = SecretDataSource<String>(directory: directory, key: newKey, older: [key])
  try await rotated.sealAgain()
  // End of the snippet.
  print("secret:", try await SecretDataSource<String>(directory: directory, key: newKey).get("database"))
}

do {
  let temporary = try TemporaryDirectory()
  let file = temporary.url.appendingPathComponent("stock.sqlite")
  let database = try SQLiteDatabase(file: file)
  let stock = try SQLiteDataSource(database, store: "stock", of: Product.self, indexes: ["price"])
  try await stock.put(Product(name: "Lamp", price: 40), forId: "lamp")
  let cheap = SelectorQuery(.field("price", .less(50)) && .field("name", .beginsWith("La")), sort: ["price"])
  let products = try await stock.getAll(cheap)
  // The next snippet.
  let names = try SQLiteDataSource<Product, String>(
    database, store: "names", toDomain: { $0.name }, toEntity: { Product(name: $0, price: 0) })
  // End of the snippet.
  print("database:", products.map(\.name), try await names.put("Chair", forId: 1))
}

// MARK: - Composing Sources

do {
  let temporary = try TemporaryDirectory()
  let directory = temporary.url
  let files = DeviceStorageDataSource<Book>(directory: directory, .prefix("books"))
  let cached = TimedCacheDataSource(files, lifetime: .seconds(60))
  let books = RetryDataSource(cached, RetryRule(retryCount: 2))
  // The next snippet.
  let titles = DataSourceMapper(books, toOut: { $0.title }, toIn: { Book(title: $0) })
  try await titles.put("The Baron in the Trees", forId: "baron")
  // The next snippet.
  let readOnly = DataSourceAssembler(get: AnyGetDataSource(files))
  // End of the snippet.
  print("composed:", try await readOnly.get("baron").title)
}

do {
  let main = InMemoryDataSource<Book>()
  try await main.put(Book(title: "The Baron in the Trees"), forId: "baron")
  let repository = CacheRepository(
    main: main, cache: InMemoryDataSource<Book>(), validity: Validation { !$0.title.isEmpty })
  let book = try await repository.get("baron")
  let fresh = try await repository.get("baron", operation: .mainSync)
  let whatever = try await repository.get("baron", operation: .cacheSync(fallback: true))
  // End of the snippet.
  print("repository:", Set([book, fresh, whatever].map(\.title)))
}

// MARK: - Writing Your Own Source

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

do {
  let source = OneEntryDataSource()
  try await source.put(5, forId: "only")
  print("one entry:", try await source.get("only"))
  print(try await GreetingDataSource().get("you"))
}

// MARK: - Migrating from Harmony

struct ItemsCheaperThan: Query {
  let price: Int64
  var keyValueAddress: KeyValueAddress { .documents(SelectorQuery(.field("price", .less(.integer(price))))) }
}

struct Item: Codable, Sendable {
  let title: String
  let price: Int
}

enum Shelf: String, StableKey {
  case novels, poems
}

struct Place: StableKey {
  let row: Int
  let column: Int
  var stableKey: String { "\(row):\(column)" }
}

do {
  let (source, item) = (InMemoryDataSource<Item>(), Item(title: "Desk lamp", price: 15))
  let stored = try await source.put(item, forId: "myKey")
  // End of the snippet.
  print("migrated:", stored.title, IdQuery(Shelf.poems).key, IdQuery(Place(row: 1, column: 2)).key)

  let temporary = try TemporaryDirectory()
  let items = try SQLiteDataSource(
    SQLiteDatabase(file: temporary.url.appendingPathComponent("items")), store: "items", of: Item.self)
  try await items.put(item, forId: 1)
  let cheap = try await items.getAll(ItemsCheaperThan(price: 20))
  let lamps = try await items.getAll(SelectorQuery(.field("title", .contains("lamp", .ignoringCase))))
  // End of the snippet.
  print("selectors:", cheap.count, lamps.count)
}
