import Documents
import Foundation
import Testing
import TypedQueries

/// Requests as values: their text, their JSON, and their errors.
@Suite struct RequestTests {
  private let rows = (1...9).map { Row(a: $0, b: $0 % 3, c: $0 % 2 == 0 ? nil : "c\($0)", name: "n\($0)") }

  private static var requests: [Request<Row>] {
    [
      Row.all, Row.all.limit(0), Row.all.offset(3), Row.all.limit(2).offset(1),
      Row.all.where(\Row.a > 3).sort(\.b).sort(\.a, ascending: false),
      Row.all.where(\Row.c == nil || Query.endsWith(\Row.name, "1")), Row.all.where(!(\Row.a === [1, 2])).sort(\.c),
      Row.all.where(raw: "a + b > 5 AND name MATCHES %@", "n[0-9]"), Row.all.where(\Row.a < \Row.b || \Row.a != \Row.b),
      Row.all.where(Query.any(\Row.subs) { \Row.Sub.price > 3 }), Row.all.where(\Row.a === 3...5).where(\Row.b == 1),
    ]
  }

  @Test(arguments: requests)
  func `a decoded request gives the results of the encoded one`(_ request: Request<Row>) throws {
    let decoded = try JSONDecoder().decode(Request<Row>.self, from: JSONEncoder().encode(request))
    #expect(try rows.fetch(decoded) == rows.fetch(request))
    #expect(decoded.description == request.description)
    #expect(try decoded.query == request.query)
  }

  @Test func `the description of a request has its parts`() {
    let request = Row.all.where(\Row.a > 3 && \Row.name == "x").sort(\.b).sort(\.a, ascending: false).limit(5).offset(1)
    #expect(
      request.description
        == #"Row.all.where({"$and":[{"a":{"$gt":3}},{"a":{"$type":"number"}},{"name":"x"}]})"#
        + ".sort(b asc).sort(a desc).limit(5).offset(1)")
    #expect(
      Row.all.where(raw: "a =").description == "Row.all.where(<the predicate needs a field or a value at offset 3>)")
  }

  @Test func `the JSON of a request is documented`() throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let request = Row.all.where(\Row.a == 3).sort(\.name).limit(20).offset(40)
    #expect(
      String(decoding: try encoder.encode(request), as: UTF8.self)
        == #"{"limit":20,"offset":40,"sort":[{"name":"asc"}],"where":{"a":3}}"#)
    #expect(String(decoding: try encoder.encode(Row.all), as: UTF8.self) == "{}")
  }

  @Test func `a request that can't be lowered isn't encoded or run`() {
    for request in [
      Row.all.where(raw: "a ="), Row.all.where(\Row.name.count == 3), Row.all.limit(-1), Row.all.offset(-1),
    ] {
      #expect(throws: (any Error).self) { try JSONEncoder().encode(request) }
      #expect(throws: (any Error).self) { try rows.fetch(request) }
      #expect(throws: (any Error).self) { try rows.count(of: request) }
    }
    #expect(throws: FilterError.self) { try rows.fetch(Row.all.sort(\.name.count)) }
    #expect(throws: FilterError.self) { try rows.fetch(Row.all.max(\.name.count)) }
  }

  @Test func `a filter is evaluated on values and on documents`() throws {
    let filter: Filter<Row> = \Row.a > 3 && \Row.c == nil
    #expect(try rows.map { try filter.matches($0) } == rows.map { $0.a > 3 && $0.c == nil })
    #expect(try filter.matches(Document(#"{"a":4}"#)))
    #expect(try !filter.matches(Document(#"{"a":"4"}"#)))
    #expect(try !filter.matches(Document("[4]")))
  }

  @Test func `a filter about an element itself can't be run on documents`() throws {
    let filter: Filter<Row> = \Row.self == rows[0]
    #expect(throws: SelectorError.self) { try filter.matches(Document("{}")) }
    #expect(throws: PredicateSyntaxError.self) { try Filter<Row>(raw: "SELF = 1").matches(Document("{}")) }
  }

  @Test func `a sort keeps the order of equal values`() throws {
    #expect(try rows.fetch(Row.all.sort(\.b), \.a) == [3, 6, 9, 1, 4, 7, 2, 5, 8])
    #expect(try rows.reversed().fetch(Row.all.sort(\.b, ascending: false), \.a) == [8, 5, 2, 7, 4, 1, 9, 6, 3])
  }

  @Test func `find(id:) on an array returns the value with that id`() {
    struct Item: Codable, Queryable, Identifiable { var id: Int }
    #expect([Item(id: 1), Item(id: 2)].find(id: 2)?.id == 2)
    #expect([Item(id: 1)].find(id: 3) == nil)
  }

  @Test func `filters and requests can be sent between tasks`() async throws {
    let request = Row.all.where(\Row.a > 8)
    let rows = rows
    #expect(try await Task.detached { try rows.fetch(request, \.a) }.value == [9])
  }
}
