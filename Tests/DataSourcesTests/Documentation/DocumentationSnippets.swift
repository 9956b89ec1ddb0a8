import DataSourceFutures
import DataSources
import Documents
import Foundation
import SQLiteDataSource
import SecretDataSource
import TestSupport
import Testing

struct Book: Codable, Sendable {
  let title: String
}

/// The snippets of the overview.
@Suite struct OverviewSnippets {
  @Test func overview() async throws {
    let books = InMemoryDataSource<Book>()
    try await books.put(Book(title: "Invisible Cities"), forId: 7)
    let book = try await books.get(7)
    let page = try await books.getAll(PaginationOffsetLimitQuery(offset: 0, limit: 20))
    #expect(book.title == "Invisible Cities" && page.count == 1)
  }
}

/// The snippets of "Getting Started".
@Suite struct GettingStartedSnippets {
  @Test func `the snippet with a source and its values runs`() async throws {
    let books = InMemoryDataSource<Book>()
    try await books.put(Book(title: "Invisible Cities"), forId: "cities")
    try await books.putAll([Book(title: "Cosmicomics"), Book(title: "t zero")], forId: "qfwfq")
    // The next snippet.
    let one = try await books.get("cities")
    let list = try await books.getAll("qfwfq")
    let everything = try await books.getAll(AllObjectsQuery())
    try await books.delete("cities")
    // End of the snippet.
    #expect(one.title == "Invisible Cities" && list.count == 2 && everything.count == 3)
  }

  @Test func `the snippet with several values and pages runs`() async throws {
    let books = InMemoryDataSource<Book>()
    try await books.putAll([Book(title: "Zeno's Conscience"), Book(title: "Senilità")], forId: [1, 2])
    let both = try await books.getAll([1, 2])
    let known = try await books.getAll([1, 2, 3], missing: .skip)
    // The next snippet.
    let second = try await books.getAll(PaginationOffsetLimitQuery(offset: 20, limit: 20))
    let next = try await books.getAll(PaginationCursorQuery(after: "cities", limit: 20))
    // End of the snippet.
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

  @Test func `the snippet with a custom query runs`() async throws {
    let books = InMemoryDataSource<Book>()
    let found = [Book(title: "Invisible Cities")]
    try await books.putAll(found, in: ShelfQuery(shelf: "novels"))
    let again = try await books.getAll(ShelfQuery(shelf: "novels"))
    #expect(again.count == 1)
  }
}

struct ShelfQuery: Query {
  let shelf: String
}

extension ShelfQuery: KeyQuery {
  var key: String { "shelf:" + shelf }
}

/// The snippets of "Composing Data Sources".
@Suite struct ComposingSnippets {
  @Test func `the snippet that composes sources runs`() async throws {
    let temporary = try TemporaryFolder()
    let directory = temporary.url
    let files = DeviceStorageDataSource<Book>(directory: directory, .prefix("books"))
    let cached = TimedCacheDataSource(files, lifetime: .seconds(60))
    let books = RetryDataSource(cached, RetryRule(retryCount: 2))
    // The next snippet.
    let quick = TimedCacheDataSource(files, lifetime: .seconds(60), staleWhileRevalidate: .seconds(600), limit: 1_000)
    // The next snippet.
    let titles = DataSourceMapper(books, toOut: { $0.title }, toIn: { Book(title: $0) })
    try await titles.put("The Baron in the Trees", forId: "baron")
    // The next snippet.
    let readOnly = DataSourceAssembler(get: AnyGetDataSource(files))
    // End of the snippet.
    #expect(try await readOnly.get("baron").title == "The Baron in the Trees")
    #expect(try await quick.get("baron").title == "The Baron in the Trees")
    #expect(await failure { try await readOnly.delete("baron") } == .notImplemented)
  }

  @Test func `the snippet with a main source and a cache runs`() async throws {
    let main = InMemoryDataSource<Book>()
    try await main.put(Book(title: "The Baron in the Trees"), forId: "baron")
    let disk = InMemoryDataSource<Book>()
    let repository = CacheRepository(
      main: main, cache: InMemoryDataSource<Book>(), validity: Validation { !$0.title.isEmpty })
    let book = try await repository.get("baron")
    let fresh = try await repository.get("baron", operation: .mainSync)
    let whatever = try await repository.get("baron", operation: .cacheSync(fallback: true))
    // The next snippet.
    let careful = CacheRepository(main: main, cache: disk) { error, operation, _ in
      print("the cache has failed in \(operation): \(error)")
    }
    // End of the snippet.
    #expect([book, fresh, whatever].allSatisfy { $0.title == "The Baron in the Trees" })
    #expect(try await careful.get("baron").title == book.title)
  }
}

/// The snippets of "The Sources".
@Suite struct SourcesSnippets {
  struct Product: Codable, Sendable, Equatable {
    let name: String
    let price: Int
  }

  @Test func `the snippet with a source of files runs`() async throws {
    let temporary = try TemporaryFolder()
    let directory = temporary.url
    let books = DeviceStorageDataSource<Book>(directory: directory)
    let lent = DeviceStorageDataSource<Book>(directory: directory, .prefix("lent"))
    let settings = DeviceStorageDataSource<Book>(directory: directory, .rootKey("settings"))
    for source in [books, lent, settings] {
      try await source.put(Book(title: "Marcovaldo"), forId: "a")
      #expect(try await source.keys() == ["a"])
    }
    let salvaged = DeviceStorageDataSource<Book>(
      directory: directory, damaged: .skip { entry in print("\(entry.key) is damaged: \(entry.error)") })
    #expect(try await salvaged.getAll(AllObjectsQuery()).count == 1)
  }

  @Test func `the snippet with a source of plain files runs`() async throws {
    let temporary = try TemporaryFolder()
    let (directory, png) = (temporary.url, Data([0x89, 0x50]))
    let pictures = FileSystemDataSource(directory: directory)
    try await pictures.put(png, forId: "cover.png")
    #expect(try Data(contentsOf: directory.appendingPathComponent("cover.png")) == png)
  }

  @Test func secrets() async throws {
    let temporary = try TemporaryFolder()
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
    #expect(try await SecretDataSource<String>(directory: directory, key: newKey).get("database") == "correct horse")
  }

  @Test func `the snippet with a database runs`() async throws {
    let temporary = try TemporaryFolder()
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
    #expect(products == [Product(name: "Lamp", price: 40)])
    #expect(try await names.put("Lamp", forId: 1) == "Lamp")
  }
}

/// The snippets of DataSourceFutures.
@Suite struct FutureSnippets {
  @Test func `the snippet without await runs`() async throws {
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

  @Test func `the snippet that makes a future of an async call runs`() async throws {
    let books = InMemoryDataSource<Book>()
    try await books.put(Book(title: "Zeno's Conscience"), forId: "zeno")
    func titleOfZeno() async throws -> String {
      let book = try await books.get("zeno")
      return book.title
    }
    // The next snippet.
    let zeno = Future { try await books.get("zeno") }
    // End of the snippet.
    #expect(try await zeno.value.title == titleOfZeno())
  }
}

/// The snippets of "Writing Your Own Source".
@Suite struct WritingYourOwnSnippets {
  @Test func `five requirements make a complete source`() async throws {
    let source = OneEntryDataSource()
    try await source.put(5, forId: "only")
    #expect(try await source.get("only") == 5)
    #expect(try await source.getAll(AllObjectsQuery()) == [5])
    #expect(await failure { try await source.get(VoidQuery()) } == .queryNotSupported)
  }

  @Test func `any other source throws for unknown queries`() async throws {
    #expect(try await GreetingDataSource().get("you") == "Hello, you!")
    #expect(await failure { try await GreetingDataSource().get(VoidQuery()) } == .queryNotSupported)
  }

  @Test func `a source of futures can be awaited`() async throws {
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
      Future { resolver in
        readSomewhere { resolver.set($0) }
      }
    }

    func getAll(_ query: any Query) -> Future<[String]> {
      Future(query.notSupported(.getAll, self))
    }
  }
}

private func readSomewhere(_ done: @escaping @Sendable (String) -> Void) {
  Task.detached { done("called back") }
}

/// The snippets of "Migrating from Harmony".
@Suite struct MigratingFromHarmonySnippets {
  @Test func `the snippet with then and fail of a future runs`() async throws {
    let (source, item) = (InMemoryDataSource<Item>(), Item("x"))
    let printed = Recorder<String>()
    @Sendable func print(_ text: String) { printed.add(text) }
    func calls() {
      source.put(item, forId: "myKey").then { stored in
        print("Success: \(stored)")
      }.fail { error in
        print("Failure: \(error)")
      }
    }
    calls()
    while printed.events.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
    #expect(printed.events[0].hasPrefix("Success"))
    func moreCalls() {
      let repository = CacheRepository(
        main: source, cache: InMemoryDataSource<Item>(), validator: DefaultObjectValidation())
      repository.get("myKey", operation: CacheSyncOperation(fallback: true)).then { found in
        print("Found: \(found)")
      }
    }
    moreCalls()
    while printed.events.count < 2 { try await Task.sleep(for: .milliseconds(1)) }
    #expect(printed.events[1].hasPrefix("Found"))
    // The next snippet.
    func itemOfMyKey() throws -> Item {
      try source.get("myKey").result.get()
    }
    #expect(throws: Never.self) { try itemOfMyKey() }
    // The next snippet.
    let stored = try await source.put(item, forId: "myKey")
    #expect(stored == item)
  }

  @Test func `the snippet with a Realm query runs`() async throws {
    let temporary = try TemporaryFolder()
    let database = try SQLiteDatabase(file: temporary.url.appendingPathComponent("items"))
    let items = try SQLiteDataSource(database, store: "items", of: Item.self)
    try await items.put(Item("Desk lamp", price: 15), forId: 1)
    let cheap = try await items.getAll(ItemsCheaperThan(price: 20))
    let lamps = try await items.getAll(SelectorQuery(.field("title", .contains("lamp", .ignoringCase))))
    #expect(cheap.count == 1 && lamps == cheap)
  }

  @Test func `the snippet with custom ids runs`() {
    #expect(IdQuery(Shelf.poems).key == "poems" && IdQuery(Place(row: 1, column: 2)).key == "1:2")
  }

  struct ItemsCheaperThan: Query {
    let price: Int64
    var keyValueAddress: KeyValueAddress { .documents(SelectorQuery(.field("price", .less(.integer(price))))) }
  }

  enum Shelf: String, StableKey {
    case novels, poems
  }

  struct Place: StableKey {
    let row: Int
    let column: Int
    var stableKey: String { "\(row):\(column)" }
  }
}
