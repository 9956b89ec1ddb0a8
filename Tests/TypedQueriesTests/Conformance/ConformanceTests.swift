import Foundation
import Testing
import TypedQueries

/// The facts that every back end has in common.
@Suite struct ConformanceTests {
  @Test(arguments: Backend.allCases)
  func `typed queries compare, combine and count numbers`(_ backend: Backend) async throws {
    let rows = [(10, 20), (30, 40), (50, 60), (70, 80), (90, 100)].map { Row(a: $0.0, b: $0.1) }
    let runner = try await Runner<Row>.make(rows, on: backend)
    let first: Filter<Row> = \Row.a < 50 && \Row.b > 20 || \Row.b >= 100
    #expect(try await runner.a(first) == [30, 90])
    #expect(try await runner.a(first && \Row.b != 40) == [90])
    #expect(try await runner.a(\Row.a === []) == [])
    #expect(try await runner.a(!(\Row.a === [])) == [10, 30, 50, 70, 90])
    #expect(try await runner.a(\Row.a === 30...70) == [30, 50, 70])
    #expect(try await runner.a(\Row.a === 30..<70) == [30, 50])
    #expect(try await runner.a(\Row.a === 70...) == [70, 90])
    #expect(try await runner.a(\Row.a === ...30) == [10, 30])
    #expect(try await runner.a(\Row.a === ..<30) == [10])
    #expect(try await runner.fetch(Row.all, \.a) == [10, 30, 50, 70, 90])
    #expect(try await runner.count(of: Row.all) == 5)
    #expect(try await runner.fetch(Row.all.limit(0)) == [])
    #expect(try await runner.count(of: Row.all.limit(0)) == 0)
    #expect(try await runner.fetchOne(Row.all.limit(0)) == nil)
    #expect(try await runner.fetch(Row.all.offset(9)) == [])
    #expect(try await runner.count(of: Row.all.offset(9)) == 0)
    #expect(try await runner.count(of: Row.all.offset(1).limit(3)) == 3)
    let chained = Row.all.where(\Row.a > 10).where(\Row.b < 100)
    #expect(try await runner.fetch(chained, \.a) == [30, 50, 70])
    #expect(try await runner.fetch(chained.replacingWhere(\Row.a <= 10), \.a) == [10])
    #expect(try await runner.a(\Row.a < \Row.b) == [10, 30, 50, 70, 90])
    #expect(try await runner.a(\Row.a >= \Row.b) == [])
    #expect(try await runner.a(\Row.a == \Row.b) == [])
    #expect(try await runner.a(\Row.a != \Row.b) == [10, 30, 50, 70, 90])
  }

  @Test(arguments: Backend.allCases)
  func `nil is null and missing, and matches no comparison`(_ backend: Backend) async throws {
    let rows = [(10, nil), (30, "foo"), (50, nil), (70, "bar")].map { Row(a: $0.0, c: $0.1) }
    let runner = try await Runner<Row>.make(rows, on: backend)
    #expect(try await runner.a(\Row.c != nil && \Row.a > 30) == [70])
    #expect(try await runner.a(\Row.c == nil && \Row.a < 50) == [10])
    #expect(try await runner.a(\Row.c != "foo") == [10, 50, 70])
    #expect(try await runner.a(!(\Row.c == "foo")) == [10, 50, 70])
    #expect(try await runner.a(\Row.c > "a") == [30, 70])
    #expect(try await runner.a(\Row.c >= \Row.c) == [30, 70])
    #expect(try await runner.a(\Row.c < \Row.c) == [])
    #expect(try await runner.a(\Row.c < "z") == [30, 70])
    #expect(try await runner.a(!(\Row.c < "z")) == [10, 50])
    #expect(try await runner.a(\Row.c === ["foo", nil]) == [10, 30, 50])
    #expect(try await runner.a(\Row.c === "a"..."c") == [70])
  }

  @Test(arguments: Backend.allCases)
  func `a missing member is nil, and isMissing tells it from null`(_ backend: Backend) async throws {
    struct Loose: Codable, Queryable {
      var a: Int
      var c: String?
      var isNull = false

      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(a, forKey: .a)
        try container.encode(isNull, forKey: .isNull)
        if c == nil, isNull {
          try container.encodeNil(forKey: .c)
        } else {
          try container.encodeIfPresent(c, forKey: .c)
        }
      }
    }
    let rows = [Loose(a: 1), Loose(a: 2, isNull: true), Loose(a: 3, c: "x")]
    let runner = try await Runner(rows, on: backend, indexing: ["c"])
    func a(_ filter: Filter<Loose>) async throws -> [Int] { try await runner.fetch(Loose.all.where(filter), \.a) }
    #expect(try await a(\Loose.c == nil) == [1, 2])
    #expect(try await a(Query.isMissing(\Loose.c)) == [1])
    #expect(try await a(!Query.isMissing(\Loose.c)) == [2, 3])
    #expect(try await a("c = nil") == [1, 2])
  }

  @Test(arguments: Backend.allCases)
  func `enums are compared and sorted by their raw values`(_ backend: Backend) async throws {
    let rows = [(1, .foo), (2, .bar), (3, .bar), (4, nil)].map { Row(a: $0.0, d: $0.1 as Row.Kind?) }
    let runner = try await Runner<Row>.make(rows, on: backend)
    #expect(try await runner.a(\Row.d == .bar) == [2, 3])
    #expect(try await runner.a(\Row.d != .bar || \Row.d == nil) == [1, 4])
    #expect(try await runner.fetch(Row.all.sort(\.d).sort(\.a), \.a) == [4, 2, 3, 1])
    #expect(try await runner.fetch(Row.all.sort(\.d, ascending: false).sort(\.a), \.a) == [1, 2, 3, 4])
  }

  @Test(arguments: Backend.allCases)
  func `typed queries find values in lists`(_ backend: Backend) async throws {
    let rows = ["a", "b", "c", "d"].enumerated().map { Row(a: $0 + 1, c: $1) }
    let runner = try await Runner<Row>.make(rows, on: backend)
    #expect(try await runner.a(\Row.c === ["a", "d"]) == [1, 4])
    #expect(try await runner.a(\Row.c === ["a", "d"] || \Row.a === [1, 2]) == [1, 2, 4])
    #expect(try await runner.a(Query.in(\Row.a, Set([2, 3]))) == [2, 3])
  }

  @Test(arguments: Backend.allCases)
  func `identifiers and addresses are found as they are encoded`(_ backend: Backend) async throws {
    let rows = (0..<200).map { Row(a: $0, url: URL(string: "https://example.org/\($0)?q=a/b")) }
    let runner = try await Runner<Row>.make(rows, on: backend)
    let wanted = stride(from: 0, to: 200, by: 2).map { rows[$0] }
    #expect(try await runner.fetch(Row.all.where(\Row.id === wanted.map(\.id))) == wanted)
    #expect(try await runner.fetch(Row.all.where(\Row.url == rows[0].url)) == [rows[0]])
  }

  @Test(arguments: Backend.allCases)
  func `strings are compared with and without case and diacritics`(_ backend: Backend) async throws {
    let names = ["fOo1baR", "foO2bAr", "BaR1Foo", "Bar2fOO"]
    let rows =
      names.enumerated().map { Row(a: $0 + 1, name: $1) }
      + [Row(a: 5, c: "Café", name: "x"), Row(a: 6, name: "x")]
    let runner = try await Runner<Row>.make(rows, on: backend)
    #expect(try await runner.a(Query.beginsWith(\Row.name, "foo")) == [1, 2])
    #expect(try await runner.a(Query.endsWith(\Row.name, "foo")) == [3, 4])
    #expect(try await runner.a(Query.contains(\Row.name, "1")) == [1, 3])
    #expect(try await runner.a(Query.beginsWith(\Row.name, "foo", caseInsensitive: false)) == [])
    #expect(try await runner.a(Query.contains(\Row.c, "cafe", diacriticInsensitive: true)) == [5])
    #expect(try await runner.a(Query.contains(\Row.c, "cafe")) == [])
    #expect(try await runner.a("c CONTAINS[cd] 'cafe'") == [5])
    #expect(try await runner.a("c CONTAINS[c] 'cafe'") == [])
    #expect(try await runner.a(\Row.name == "FOO1BAR") == [])
    #expect(try await runner.a("name ==[c] 'FOO1BAR'") == [1])
    for filter in [
      Query.contains(\Row.c, ""), Query.beginsWith(\Row.c, ""), Query.endsWith(\Row.c, ""), "c CONTAINS ''",
    ] as [Filter<Row>] {
      #expect(try await runner.a(filter) == [5])
    }
    #expect(try await runner.a(Query.like(\Row.name, "foo?bar")) == [1, 2])
    #expect(try await runner.a(Query.like(\Row.name, "foo")) == [])
    #expect(try await runner.a("name LIKE[c] '*1*'") == [1, 3])
    #expect(try await runner.a(Query.matches(\Row.name, "foo.bar", caseInsensitive: true)) == [1, 2])
    #expect(try await runner.a(Query.matches(\Row.name, "foo", caseInsensitive: true)) == [])
    #expect(try await runner.a(Query.matches(\Row.name, "x|y")) == [5, 6])
    #expect(try await runner.a("name MATCHES '(?i)BAR\\\\d.*'") == [3, 4])
  }

  @Test(arguments: Backend.allCases)
  func `raw predicates count, quantify and group`(_ backend: Backend) async throws {
    let rows = [
      Row(a: 1, b: 2, tags: ["x"], subs: [.init(price: 3), .init(price: 9)]), Row(a: 2, b: 2, tags: ["x", "y"]),
      Row(a: 3, b: 1, tags: [], subs: [.init(price: 9)]),
    ]
    let runner = try await Runner<Row>.make(rows, on: backend)
    #expect(try await runner.a("subs.@count > 0") == [1, 3])
    #expect(try await runner.a("other.@count = 0") == [1, 2, 3])
    #expect(try await runner.a("NONE tags = 'y'") == [1, 3])
    #expect(try await runner.a("NOT ANY tags = 'y'") == [1, 3])
    #expect(try await runner.a("ANY tags = 'y'") == [2])
    #expect(try await runner.a("ALL tags = 'x'") == [1, 3])
    #expect(try await runner.a("ANY subs.price < 5") == [1])
    #expect(try await runner.a("ALL subs.price > 5") == [2, 3])
    #expect(try await runner.a("NONE subs.price > 5") == [2])
    #expect(try await runner.a("a BETWEEN {1, 2}") == [1, 2])
    #expect(try await runner.a("a BETWEEN {2, 3}") == [2, 3])
    #expect(try await runner.a("'x' IN tags") == [1, 2])
    #expect(try await runner.a("tags CONTAINS 'x'") == [1, 2])
    #expect(try await runner.a("a = 1 OR b = 2 AND a = 2") == [1, 2])
    #expect(try await runner.a("(a = 1 OR b = 2) AND a = 2") == [2])
    #expect(try await runner.a("a + b = 4 || a * 2 - b = 0") == [1, 2, 3])
    #expect(try await runner.a("subs.@sum.price >= 12") == [1])
    #expect(try await runner.a("subs.@max.price = subs.@min.price") == [3])
    #expect(try await runner.a("SUBQUERY(subs, $s, $s.price > 2 AND $s.price < 5).@count = 1") == [1])
    #expect(try await runner.a("tags[0] = 'x' AND tags[SIZE] = 2") == [2])
    #expect(try await runner.a(Query.contains(\Row.tags, "y")) == [2])
    #expect(try await runner.a(Query.any(\Row.subs) { \Row.Sub.price > 2 && \Row.Sub.price < 5 }) == [1])
    #expect(try await runner.a(Query.all(\Row.subs) { \Row.Sub.price > 5 }) == [2, 3])
    #expect(try await runner.a(Query.none(\Row.tags) { \String.self == "y" }) == [1, 3])
  }

  @Test(arguments: Backend.allCases)
  func `sorting comes before offset and limit`(_ backend: Backend) async throws {
    struct Book: Codable, Queryable {
      var name: Int
      var year: Int
    }
    let books = (1...10).reversed().map { Book(name: $0, year: $0.isMultiple(of: 2) ? 2010 : 2020) }
    let runner = try await Runner(books, on: backend, indexing: ["year", "name"])
    let request = Book.all.sort(\.year).sort(\.name).limit(8).offset(1)
    #expect(try await runner.fetch(request, \.name) == [4, 6, 8, 10, 1, 3, 5, 7])
    #expect(try await runner.fetch(request.offset(0), \.name) == [2, 4, 6, 8, 10, 1, 3, 5])
  }

  @Test(arguments: Backend.allCases)
  func `a typed query returns one field as its type, and computed values`(_ backend: Backend) async throws {
    let rows = [(10, "x"), (30, nil), (50, "y")].map { Row(a: $0.0, c: $0.1, name: "n\($0.0)") }
    let runner = try await Runner<Row>.make(rows, on: backend)
    let names: [String] = try await runner.fetch(Row.all.where(\Row.a > 10), \.name)
    #expect(names == ["n30", "n50"])
    #expect(try await runner.fetch(Row.all, \.c) == ["x", nil, "y"])
    #expect(try await runner.fetch(Row.all, \.id) == rows.map(\.id))
    #expect(try await runner.fetch(Row.all.min(\.a)) == 10)
    #expect(try await runner.fetch(Row.all.max(\.c)) == "y")
    #expect(try await runner.fetch(Row.all.sum(\.a)) == 90)
    #expect(try await runner.fetch(Row.all.where(\Row.a > 10).average(\.a)) == 40)
    #expect(try await runner.fetch(Row.all.where(\Row.a > 99).max(\.a)) == nil)
    #expect(try await runner.fetch(Row.all.where(\Row.a > 99).sum(\.a)) == 0)
    #expect(try await runner.fetch(Row.all.sort(\.a, ascending: false).limit(2).sum(\.a)) == 80)
    #expect(try await runner.fetchOne(Row.all.sort(\.a, ascending: false))?.a == 50)
  }
}
