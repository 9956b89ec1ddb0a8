import DataSources
import Foundation
import SQLiteDataSource
import TestSupport
import Testing

@Suite struct PredicateTests {
  struct Author: Codable, Sendable { let name: String }
  struct Book: Codable, Sendable {
    let title: String
    var price: Double?
    var isLent = false
    var author: Author?
    var printed: Date?
  }

  private let directory: TemporaryFolder
  private let database: SQLiteDatabase
  private let books: SQLiteDataSource<Book, Book>

  init() async throws {
    directory = try TemporaryFolder()
    database = try SQLiteDatabase(file: directory.url.appendingPathComponent("books"))
    books = try SQLiteDataSource(database, store: "books", indexes: ["price", "author.name"])
    try await books.put(Book(title: "The Name of the Rose", price: 12, author: Author(name: "Eco")), forId: 1)
    try await books.put(
      Book(title: "Invisible Cities", price: 9.5, isLent: true, author: Author(name: "Calvino")), forId: 2)
    try await books.put(Book(title: "Ça ira", printed: Date(timeIntervalSinceReferenceDate: 1_000)), forId: 3)
    try await books.putAll(
      [Book(title: "50% [off]", price: 1), Book(title: "THE END", price: 30, author: Author(name: "O'Brien \"B\""))],
      forId: 4)
  }

  func titles(_ query: some PredicateQuery) async throws -> [String] { try await books.getAll(query).map(\.title) }
  func titles(_ format: String, _ arguments: any EntityField.Value...) async throws -> [String] {
    // Swift can't pass variadic arguments on.
    switch arguments.count {
    case 0: try await titles(EntityQuery(format))
    case 1: try await titles(EntityQuery(format, arguments[0]))
    default: try await titles(EntityQuery(format, arguments[0], arguments[1]))
    }
  }

  @Test func `closures and texts express the same conditions`() async throws {
    let rose = "The Name of the Rose"
    let cities = "Invisible Cities"
    let end = "THE END"
    let off = "50% [off]"
    let ira = "Ça ira"
    let pairs: [(EntityQuery, String, [String])] = [
      (EntityQuery { $0.price < 10 }, "price < 10", [cities, off]),
      (EntityQuery { $0.price <= 12 && $0.price > 1 }, "price <= 12 AND price > 1.0", [rose, cities]),
      (EntityQuery { $0.price >= 12 || $0.isLent == true }, "price >= 12 || isLent = YES", [rose, cities, end]),
      (EntityQuery { $0.price == nil }, "price == NULL", [ira]),
      (EntityQuery { $0.price != nil }, "price != nil", [rose, cities, off, end]),
      (EntityQuery { !($0.price < 10) }, "NOT (price < 10)", [rose, ira, end]),
      (EntityQuery { $0.price != 12 }, "price <> 12", [cities, ira, off, end]),
      (EntityQuery { $0.title.hasPrefix("The") }, "title BEGINSWITH 'The'", [rose]),
      (EntityQuery { $0.title.hasPrefix("the", ignoringCase: true) }, "title beginswith[c] \"the\"", [rose, end]),
      (EntityQuery { $0.title.hasSuffix("s") }, "title ENDSWITH 's'", [cities]),
      (EntityQuery { $0.title.contains("ÇA", ignoringCase: true) }, "title CONTAINS[c] 'ÇA'", [ira]),
      (EntityQuery { $0.title.contains("") }, "title CONTAINS ''", [rose, cities, ira, off, end]),
      (EntityQuery { $0.title.equals("the end", ignoringCase: true) }, "title ==[c] 'the end'", [end]),
      (EntityQuery { $0.title.isLike("*[o*") }, "title LIKE '*[o*'", [off]),
      (EntityQuery { $0.title.isLike("?a ira") }, "title LIKE '?a ira'", [ira]),
      (EntityQuery { $0.price.isOne(of: [1, 30]) }, "price IN {1, 30}", [off, end]),
      (EntityQuery { $0.price.isOne(of: [Int]()) }, "price IN {}", []),
      (EntityQuery { $0.price.isOne(of: [1, nil]) }, "price IN {1, nil}", [ira, off]),
      (EntityQuery { $0.price.isBetween(9.5, and: 12) }, "price BETWEEN {9.5, 12}", [rose, cities]),
      (EntityQuery { $0.author.name == "Eco" }, "author.name == 'Eco'", [rose]),
      (EntityQuery { $0.author.name == "O'Brien \"B\"" }, #"author.name == "O'Brien \"B\"""#, [end]),
      (EntityQuery(.all), "TRUEPREDICATE", [rose, cities, ira, off, end]),
      (EntityQuery(!.all), "FALSEPREDICATE", []),
      (EntityQuery { $0.title < 5 || $0.price > "1" }, "title < 5 OR price > '1'", []),
    ]
    for (query, text, expected) in pairs {
      let (found, foundByText) = (try await titles(query), try await titles(text))
      #expect(found == expected, "\(text)")
      #expect(foundByText == expected, "\(text)")
    }
  }

  @Test func `values are taken literally, whatever they contain`() async throws {
    #expect(try await titles("price == %@", 12) == ["The Name of the Rose"])
    #expect(try await titles("price == %f AND isLent == %@", 9.5, true) == ["Invisible Cities"])
    #expect(try await titles("%K == %@", "author.name", "O'Brien \"B\"") == ["THE END"])
    #expect(try await titles("price IN %@", [1, 30]) == ["50% [off]", "THE END"])
    #expect(try await titles("printed < %@", Date(timeIntervalSinceReferenceDate: 1_001)) == ["Ça ira"])
    #expect(try await titles("title == %@", "' OR 1=1 --") == [])
    #expect(try await titles(EntityQuery { $0["x') OR 1=1 --"] == 1 }) == [])
    let author: String? = nil
    #expect(try await titles(EntityQuery { $0.author.name == author }).count == 2)
  }

  @Test(arguments: [
    "", "price", "price <", "price < <", "price < 1 AND", "(price < 1", "price < 1)", "price < 1 2", "price ~ 1",
    "price MATCHES 'a'",
    "price == %@", "price == %x", "title == 'a", "title CONTAINS 5", "title CONTAINS[d] 'a'", "price IN 5",
    "price IN {1 2}",
    "price BETWEEN {1}", "price < NULL", "price == 1e999", "price == 1x", "a..b == 1", "%K == 1", "\u{0}", "NOT",
    "price == --1",
  ])
  func `text that is not a condition is an error`(_ text: String) async throws {
    await #expect(throws: DataSourceError.illegalArgument) { _ = try await titles(text) }
  }

  @Test func `too many arguments and invalid names are errors`() async throws {
    #expect(await failure { try await titles("price == 1", 2) } == .illegalArgument)
    #expect(await failure { try await titles("price == %@", Author(name: "x")) } == .illegalArgument)
    #expect(await failure { try await titles(EntityQuery { $0["a\"b"] == 1 }) } == .illegalArgument)
    #expect(await failure { try await titles(EntityQuery { $0.price == Double.nan }) } == .illegalArgument)
    #expect(await failure { try await titles(EntityQuery(.all, limit: -1)) } == .illegalArgument)
    let deep = String(repeating: "(", count: 100_000)
    #expect(await failure { try await titles(deep) } == .illegalArgument)
  }

  @Test func `conditions of any size are answered or rejected`() async throws {
    func chain(_ count: Int) -> EntityQuery {
      EntityQuery((1..<count).map { number in EntityPredicate { $0.price == number } }.reduce(!.all) { $0 || $1 })
    }
    #expect(try await titles(chain(1_000)).count == 3)
    #expect(await failure { try await titles(chain(1_001)) } == .illegalArgument)
    let longText = try EntityQuery(Array(repeating: "price == 1", count: 1_000).joined(separator: " AND "))
    #expect(try await titles(longText) == ["50% [off]"])
    #expect(try await titles(EntityQuery { $0.price.isOne(of: Array(0..<20_000)) }).count == 3)
    var deep = EntityPredicate { $0.price == 1 }
    for _ in 0..<5_000 { deep = !deep }
    let query = EntityQuery(deep)
    #expect(await failure { try await titles(query) } == .illegalArgument)
    #expect(try await titles("price == 1") == ["50% [off]"])
  }

  @Test func `results are sorted and paged`() async throws {
    let byPrice = try EntityOrder("price", descending: true)
    #expect(try await titles(EntityQuery(.all, order: [byPrice], limit: 2)) == ["THE END", "The Name of the Rose"])
    #expect(try await titles(EntityQuery(.all, order: [byPrice], offset: 4)) == ["Ça ira"])
    #expect(try await titles(EntityQuery(.all, limit: 0)) == [])
    #expect(try await books.get(EntityQuery(.all, order: [byPrice])).title == "THE END")
    #expect(await failure { try await books.get(EntityQuery(!.all)) } == .notFound)
  }

  @Test func `a predicate deletes the values that satisfy it`() async throws {
    try await books.delete(EntityQuery { $0.price < 10 })
    #expect(try await books.getAll(AllObjectsQuery()).map(\.title) == ["The Name of the Rose", "Ça ira", "THE END"])
    #expect(await failure { try await books.get(2) } == .notFound)
    #expect(try await books.getAll(4).count == 1)
    try await books.deleteAll(EntityQuery(.all))
    #expect(try await books.getAll(4).isEmpty)
    #expect(try await books.keys() == ["4"])
  }

  @Test func `a put needs a key`() async throws {
    let query = EntityQuery(.all)
    #expect(await failure { try await books.put(nil, in: query) } == .queryNotSupported)
    #expect(await failure { try await books.putAll([], in: query) } == .queryNotSupported)
    let others: [AnyDataSource<Book>] = [AnyDataSource(InMemoryDataSource())]
    #expect(await failure { try await others[0].getAll(query) } == .queryNotSupported)
  }

  struct SearchQuery: PredicateQuery {
    let text: String
    var predicate: EntityPredicate { EntityPredicate { $0.title.contains(text, ignoringCase: true) } }
  }

  @Test func `custom queries have predicates`() async throws {
    #expect(try await titles(SearchQuery(text: "cities")) == ["Invisible Cities"])
  }

  @Test func `SELF is an entity that is a plain value`() async throws {
    let numbers = try SQLiteDataSource(database, store: "numbers", of: Int.self)
    try await numbers.putAll([3, 1, 2], forId: "l")
    #expect(try await numbers.getAll(EntityQuery("SELF >= 2")) == [3, 2])
    #expect(try await numbers.getAll(EntityQuery(order: [EntityOrder("SELF")]) { $0 != 2 }) == [1, 3])
  }
}
