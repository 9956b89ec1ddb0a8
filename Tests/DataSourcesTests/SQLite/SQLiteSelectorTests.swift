import DataSources
import Documents
import Foundation
import GRDB
import TestSupport
import Testing

@testable import SQLiteDataSource

/// Selectors about values in a database. What they mean is tested for all sources, and for random requests.
@Suite struct SQLiteSelectorTests {
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
    let values = [
      Book(title: "The Name of the Rose", price: 12, author: Author(name: "Eco")),
      Book(title: "Invisible Cities", price: 9.5, isLent: true, author: Author(name: "Calvino")),
      Book(title: "Ça ira", printed: Date(timeIntervalSinceReferenceDate: 1_000)),
      Book(title: "50% [off]", price: 1), Book(title: "THE END", price: 30, author: Author(name: "O'Brien \"B\"")),
    ]
    try await books.putAll(values, forId: [1, 2, 3, 4, 5])
    try await books.putAll([Book(title: "in a list", price: 5)], forId: 6)
  }

  private func titles(_ query: any Query) async throws -> [String] { try await books.getAll(query).map(\.title) }
  private func titles(_ selector: Selector) async throws -> [String] { try await titles(SelectorQuery(selector)) }

  @Test func `conditions in SQL match what selectors match`() async throws {
    let rose = "The Name of the Rose"
    let cities = "Invisible Cities"
    let end = "THE END"
    let off = "50% [off]"
    let ira = "Ça ira"
    let noPrice: Selector = .field("price", .exists(false)) || .field("price", .equal(.null))
    let conditions: [(Selector, [String])] = [
      (.field("price", .less(10)), [cities, off]),
      (.field("price", .lessOrEqual(12) && .greater(1)), [rose, cities]),
      (.field("price", .greaterOrEqual(12)) || .field("isLent", .equal(true)), [rose, cities, end]),
      (noPrice, [ira]),
      (!noPrice, [rose, cities, off, end]),
      (!.field("price", .less(10)), [rose, ira, end]),
      (!.field("price", .equal(12)), [cities, ira, off, end]),
      (.field("price", .notEqual(12)), [cities, ira, off, end]),
      (.field("title", .beginsWith("The")), [rose]),
      (.field("title", .beginsWith("the", .ignoringCase)), [rose, end]),
      (.field("title", .endsWith("s")), [cities]),
      (.field("title", .contains("ÇA", .ignoringCase)), [ira]),
      (.field("title", .contains("")), [rose, cities, ira, off, end]),
      (.field("title", .equal("the end", .ignoringCase)), [end]),
      (.field("title", .like("*[o*")), [off]),
      (.field("title", .like("?a ira")), [ira]),
      (try .field("title", .regex("^.{7}$")), [end]),
      (.field("price", .in([1, 30])), [off, end]),
      (.field("price", .in([])), []),
      (.field("price", .in([1, .null])) || noPrice, [ira, off]),
      (.field("price", .greaterOrEqual(9.5) && .lessOrEqual(12)), [rose, cities]),
      (.field("author.name", .equal("Eco")), [rose]),
      (.field("author.name", .equal("O'Brien \"B\"")), [end]),
      (.field("author.name", .notIn(["Eco"])), [cities, ira, off, end]),
      (.compare(.field("price"), .greater, 10), [rose, end]),
      (.all, [rose, cities, ira, off, end]),
      (!.all, []),
      (.field("title", .less(5)) || .field("price", .greater("1")), []),
      (.field("_id", .greater("3")), [off, end]),
      (.field("_id", .in(["2", "6", "7"])), [cities]),
    ]
    for (selector, expected) in conditions {
      #expect(try await titles(selector) == expected, "\(selector)")
    }
  }

  @Test func `values and names are taken literally, whatever they contain`() async throws {
    #expect(try await titles(.field("author.name", .equal("O'Brien \"B\""))) == ["THE END"])
    #expect(try await titles(.field("printed", .less(1_001))) == ["Ça ira"])
    #expect(try await titles(.field("title", .equal("' OR 1=1 --"))) == [])
    let names = [
      "x') OR 1=1 --", "x'\u{301}) OR 1=1 --", "'\u{301}", "\"\u{301}", "a\"b", "a\\b", "a/b", "%", "?", "\u{0}", "$",
      "[0]", "*",
    ]
    for name in names {
      #expect(try await titles(.field(FieldPath(names: [name]), .equal(1))) == [], "\(name)")
      #expect(try await titles(.field(FieldPath(names: [name, name]), .notEqual(1))).count == 5, "\(name)")
    }
    let wild = try SQLiteDataSource(
      database, store: "wild", of: [String: Int].self, indexes: ["a'b", "'\u{301}", "%", "?"])
    try await wild.put(Dictionary(uniqueKeysWithValues: names.map { ($0, 1) }), forId: 1)
    for name in names {
      #expect(try await wild.getAll(SelectorQuery(.field(FieldPath(names: [name]), .equal(1)))).count == 1, "\(name)")
      #expect(try await wild.getAll(SelectorQuery(.field(FieldPath(names: [name]), .equal(2)))).isEmpty, "\(name)")
    }
  }

  /// Values that SQLite reads in another way, or doesn't tell apart, and their neighbors.
  private static let edges: [JSONValue] = [
    .null, false, true, 0, 1, -1, 0.5, 0.3, .double(0.1 + 0.2), .double(0x1p53), .integer(1 << 53 + 1), .integer(.max),
    .integer(.min), .integer(.max - 1), .double(0x1p63), .double(-0x1p63), 1e300, "", "a", "A", "a\0", "a\0b", "a\u{1}",
    "b", "[", "[1]", "{", "{}", "|", "1", "\u{FFFF}", "\u{1F600}", [], [1], ["a"], [[1]], [.null], [:], ["b": 1],
  ]

  @Test func `every comparison with every kind of value has the same result in SQL and in memory`() async throws {
    let source = try SQLiteDataSource(database, store: "edges", of: JSONValue.self, indexes: ["a", "a.b"])
    var values: [JSONValue] = [[:], ["a": [:]], ["a": []]]
    for edge in Self.edges { values += [["a": edge], ["a": ["b": edge]], ["a": [["b": edge], 1]]] }
    try await source.putAll(values, forId: values.indices.map { "\($0)" })
    let documents = try values.enumerated().map { number, value in
      Document([UInt8](try JSONEncoder().encode(value)), id: "\(number)")
    }
    var conditions: [Selector.Condition] = [.exists(), .exists(false), .size(0), .size(1), .beginsWith(""), .all([1])]
    conditions += JSONType.allCases.map { .type($0) }
    for edge in Self.edges {
      conditions += [
        .equal(edge), .less(edge), .lessOrEqual(edge), .greater(edge), .greaterOrEqual(edge), .notEqual(edge),
        .in([edge, "z"]), .in(Self.edges.filter { $0 != edge }), .type(.number) && .less(edge),
        .type(.string) && .greaterOrEqual(edge), .not(.greater(edge)), .equal(edge, .ignoringCase),
      ]
      if case .string(let text) = edge {
        conditions += [.beginsWith(text), .endsWith(text), .contains(text), .beginsWith(text, .ignoringCase)]
      }
    }
    // A thorough run tries all of them.
    var random = SeededGenerator.announced()
    conditions.shuffle(using: &random)
    for path: FieldPath in ["a", "a.b"] {
      for condition in conditions.prefix(SeededGenerator.isThorough ? .max : 60) {
        for selector in [Selector.field(path, condition), !.field(path, condition)] {
          let found = try await source.entries(matching: DocumentQuery(selector)).map(\.key)
          #expect(found == (try documents.find(selector).map { $0.id! }), "\(selector)")
        }
      }
    }
  }

  @Test func `fields that SQL can't express can't be indexed`() async throws {
    for path: FieldPath in ["a\"b", "a/b", "a\u{7}", FieldPath(names: Array(repeating: "a", count: 17))] {
      let error = #expect(throws: DataSourceError.self) {
        try SQLiteDataSource(database, store: "books", of: Book.self, indexes: [path])
      }
      #expect(error?.kind == .illegalArgument)
    }
  }

  @Test func `selectors of any size within the limits are answered`() async throws {
    func chain(_ count: Int) -> Selector { .or((1...count).map { .field("price", .equal(.integer(Int64($0)))) }) }
    #expect(try await titles(chain(1_000)).count == 3)
    #expect(try await titles(chain(9_000)).count == 3)
    #expect(await failure { try await titles(chain(10_001)) } == .illegalArgument)
    #expect(try await titles(.field("price", .in((0..<20_000).map { .integer($0) }))).count == 3)
    #expect(try await titles(.field("title", .in((0..<20_000).map { .string("\($0)") } + ["THE END"]))) == ["THE END"])
    #expect(try await titles(.field("_id", .in((2..<20_000).map { .string("\($0)") }))).count == 4)
    var nested: Selector = .field("price", .equal(1))
    for number in 0..<15 {
      nested = !(nested && .field("title", .notEqual(.string("\(number)"))) || .field("price", .equal(12)))
    }
    let selector = try CompiledSelector(nested)
    let expected = try await books.getAll([1, 2, 3, 4, 5]).filter {
      selector.matches(Document([UInt8](try JSONEncoder().encode($0))))
    }
    #expect(try await titles(nested) == expected.map(\.title))
  }

  @Test func `lists with more values than SQLite accepts as arguments are answered`() async throws {
    let all = ["The Name of the Rose", "Invisible Cities", "Ça ira", "50% [off]", "THE END"]
    let lists: [Selector] = (1...40).map { number in
      .field("title", .in((1...999).map { .string("\($0)") } + [.string(all[number % 5])]))
    }
    #expect(try await titles(.or(lists)) == all)
    #expect(try await titles(.nor(lists)) == [])
    #expect(try await titles(.and(lists)) == [])
    #expect(try await titles(.and(Array(repeating: .or([lists[0], lists[1]]), count: 20))) == [all[1], all[2]])
    #expect(try await titles(!.and(lists.map { !$0 })) == all)
    let keys: Selector = .field("_id", .in((3...1_002).map { .string("\($0)") }))
    #expect(try await titles(.and(Array(repeating: keys, count: 40))).count == 3)
  }

  @Test func `results are sorted and paged`() async throws {
    let byPrice = SortField.descending("price")
    #expect(try await titles(SelectorQuery(.all, sort: [byPrice], limit: 2)) == ["THE END", "The Name of the Rose"])
    #expect(try await titles(SelectorQuery(.all, sort: [byPrice], skip: 4)) == ["Ça ira"])
    #expect(try await titles(SelectorQuery(.all, limit: 0)) == [])
    #expect(try await titles(SelectorQuery(.all, sort: ["_id"], skip: 1, limit: 1)) == ["Invisible Cities"])
    #expect(try await titles(SelectorQuery(.all, sort: [.descending("_id")], skip: 1, limit: 1)) == ["50% [off]"])
    let unsure: Selector = .field("title", .contains("i", .ignoringCase))
    #expect(try await titles(SelectorQuery(unsure, skip: 1)) == ["Ça ira"])
    #expect(try await books.get(SelectorQuery(.all, sort: [byPrice])).title == "THE END")
    #expect(await failure { try await books.get(SelectorQuery(!.all)) } == .notFound)
  }

  @Test func `pages continue at bookmarks`() async throws {
    for sort: [SortField] in [[], ["_id"], [.descending("_id")], ["price"]] {
      var query = DocumentQuery(.field("isLent", .exists()), sort: sort)
      let all = try await books.entries(matching: query).map(\.key)
      var documents: [Document] = []
      for key in all {
        documents.append(Document([UInt8](try JSONEncoder().encode(try await books.get(key))), id: key))
      }
      query.limit = 2
      query.bookmark = try documents.find(query).bookmark
      #expect(try await books.entries(matching: query).map(\.key) == Array(all[2..<4]), "\(sort)")
    }
  }

  @Test func `a selector deletes the values that match it`() async throws {
    #expect(try await books.delete(where: .field("price", .less(10))) == 2)
    #expect(
      try await books.getAll(AllObjectsQuery()).map(\.title)
        == ["The Name of the Rose", "Ça ira", "THE END", "in a list"])
    #expect(await failure { try await books.get(2) } == .notFound)
    #expect(try await books.delete(where: .all) == 3)
    #expect(try await books.keys() == ["6"])
    #expect(await failure { try await books.delete(where: .text("a") && .text("b")) } == .illegalArgument)
    let texts = try SQLiteDataSource(database, store: "texts", of: String.self)
    #expect(await failure { try await texts.delete(where: .all) } == .queryNotSupported)
  }

  struct SearchQuery: Query {
    let text: String
    var keyValueAddress: KeyValueAddress { .documents(SelectorQuery(.field("title", .contains(text, .ignoringCase)))) }
  }

  @Test func `custom queries have selectors`() async throws {
    #expect(try await titles(SearchQuery(text: "cities")) == ["Invisible Cities"])
  }

  @Test func `only entities coded as objects are documents, and text that is one`() async throws {
    let numbers = try SQLiteDataSource(database, store: "numbers", of: Int.self)
    try await numbers.put(3, forId: "a")
    #expect(try await numbers.getAll(SelectorQuery(.all)) == [])
    let texts = try SQLiteDataSource(database, store: "texts", of: String.self)
    try await texts.putAll([#"{"n": 1}"#, "[]", "{", "plain"], forId: ["a", "b", "c", "d"])
    #expect(try await texts.getAll(SelectorQuery(.all)) == [#"{"n": 1}"#])
    #expect(try await texts.getAll(SelectorQuery(.field("n", .greater(1)))) == [])
  }

  // MARK: SQL

  /// How SQLite finds the documents of a query.
  private func plan(_ query: DocumentQuery) throws -> String {
    let selection = try SQLSelection(query)
    let queue = try DatabaseQueue(path: directory.url.appendingPathComponent("books").path)
    return try queue.read { database in
      let sql = "EXPLAIN QUERY PLAN " + selection.sql("entry_1", "element_1")
      return try Row.fetchAll(database, sql: sql, arguments: selection.arguments).map { $0["detail"] as String }
        .joined(separator: "\n")
    }
  }

  @Test func `a SQLite index serves equality, ranges and prefixes, also of nested fields`() throws {
    let (price, name): (FieldPath, FieldPath) = ("price", "author.name")
    let selectors: [Selector] = [
      .field(price, .equal(12)), .field(price, .in([1, 12, "a", .null])), .field(price, .less(3)),
      .field(price, .greaterOrEqual(3.5)), .field(price, .type(.number) && .greater(5)), .field(price, .equal(.null)),
      .field(price, .equal(true)), .field(price, .greater(3) && .less("a")),
      .field(name, .equal("Eco")), .field(name, .beginsWith("E")), .field(name, .greater("F")),
      .field(name, .equal("Eco")) && .field("title", .like("*a*")),
      .field(name, .equal("Eco")) || .field(price, .equal(12)),
      .field(price, .equal(12)) && !.field("title", .equal("a")),
    ]
    for selector in selectors {
      let plan = try plan(DocumentQuery(selector))
      #expect(plan.contains("USING INDEX element_1_") && !plan.contains("SCAN"), "\(selector): \(plan)")
    }
    #expect(try plan(DocumentQuery(.field("title", .equal("a")))).contains("SCAN"))
  }

  @Test func `SQL applies skip and limit only where its conditions are exact`() throws {
    let exact: [Selector] = [
      .all, .field("_id", .greater("a")), .field("price", .exists()), .field("price", .type(.number)),
      !.field("tags", .size(2)), .field("_id", .in(["a"])) || .field("price", .exists(false)),
    ]
    let others: [Selector] = [
      .field("price", .equal(1)), .field("a.b", .exists()), .field("title", .like("*")),
      .compare(.field("a"), .equal, .field("b")), .field("_id", .endsWith("a")),
    ]
    for (selectors, isExact) in [(exact, true), (others, false)] {
      for selector in selectors {
        for sort: [SortField] in [[], ["_id"], [.descending("_id")]] {
          let selection = try SQLSelection(DocumentQuery(selector, sort: sort, skip: 5, limit: 7))
          #expect((selection.rest.limit == nil && selection.rest.skip == 0) == isExact, "\(selector) \(sort)")
        }
        #expect(try SQLSelection(DocumentQuery(selector, sort: ["price"], limit: 7)).rest.limit == 7)
      }
    }
  }
}
