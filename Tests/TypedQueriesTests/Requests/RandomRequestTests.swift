import DataSources
import Documents
import Foundation
import Larder
import LarderTesting
import SQLiteDataSource
import TestSupport
import Testing
import TypedQueries

/// Random conditions, written as typed filters, as selectors in JSON and as raw predicates, and evaluated in the
/// plainest way: all of them find the same documents, in memory and on the server.
@Suite struct RandomRequestTests {
  struct Thing: Codable, Queryable {
    var n: Int
    var m: Double?
    var s: String
    var t: String?
    var tags: [String]
    var parts: [Part]

    struct Part: Codable {
      var n: Int
      var s: String
    }
  }

  /// A condition in all of its forms.
  struct Form<Root> {
    var typed: Filter<Root>
    var json: String
    /// With `%` in place of the variable of a SUBQUERY and its dot.
    var raw: String
    var holds: (JSONValue) -> Bool
  }

  private struct Generator {
    var random: SeededGenerator

    mutating func number(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[number(elements.count)] }
    mutating func string() -> String { pick(["", "a", "A", "ab", "ba", "bab", "é", "É", "x'y", "\u{1F600}"]) }
    mutating func integer() -> Int { number(6) - 1 }

    // MARK: Documents

    mutating func scalar() -> JSONValue {
      switch number(10) {
      case 0: .null
      case 1: .bool(number(2) == 0)
      case 2...5: .integer(Int64(integer()))
      case 6: .double(Double(number(8)) / 2)
      default: .string(string())
      }
    }

    mutating func document() -> JSONValue {
      var object = JSONObject()
      for name in ["n", "m", "s", "t"] where number(6) > 0 { object[name] = scalar() }
      object["tags"] = .array((0..<number(3)).map { _ in scalar() })
      if number(5) > 0 {
        object["parts"] = .array((0..<number(3)).map { _ in ["n": scalar(), "s": scalar()] })
      }
      return .object(object)
    }

    // MARK: Conditions

    mutating func condition(depth: Int) -> Form<Thing> {
      switch number(depth > 0 ? 12 : 7) {
      case 7:
        let (left, right) = (condition(depth: depth - 1), condition(depth: depth - 1))
        return Form(
          typed: left.typed && right.typed, json: #"{"$and":[\#(left.json),\#(right.json)]}"#,
          raw: "(\(left.raw)) AND (\(right.raw))", holds: { left.holds($0) && right.holds($0) })
      case 8:
        let (left, right) = (condition(depth: depth - 1), condition(depth: depth - 1))
        return Form(
          typed: left.typed || right.typed, json: #"{"$or":[\#(left.json),\#(right.json)]}"#,
          raw: "(\(left.raw)) OR (\(right.raw))", holds: { left.holds($0) || right.holds($0) })
      case 9:
        let part = condition(depth: depth - 1)
        return Form(
          typed: !part.typed, json: #"{"$nor":[\#(part.json)]}"#, raw: "NOT (\(part.raw))", holds: { !part.holds($0) })
      case 10: return elements()
      case 11: return fields()
      case 0...1: return order("n", \Thing.n, prefix: "")
      case 2: return optionalOrder()
      case 3: return equality("s", \Thing.s, prefix: "")
      case 4: return optionalEquality()
      case 5: return list()
      default: return text()
      }
    }

    private static func member(_ value: JSONValue, _ name: String) -> JSONValue? { value[name] }

    private static func compares(_ value: JSONValue?, _ operation: String, _ operand: JSONValue) -> Bool {
      guard let value, (value.double == nil) == (operand.double == nil),
        (value.string == nil) == (operand.string == nil)
      else { return false }
      return switch operation {
      case "<": value < operand
      case "<=": value <= operand
      case ">": value > operand
      default: value >= operand
      }
    }

    private static let names = ["<": "$lt", "<=": "$lte", ">": "$gt", ">=": "$gte"]

    private static func filter<Root: Codable, Value: Codable & Comparable>(
      _ field: KeyPath<Root, Value>, _ operation: String, _ value: Value
    ) -> Filter<Root> {
      switch operation {
      case "<": field < value
      case "<=": field <= value
      case ">": field > value
      default: field >= value
      }
    }

    private mutating func order<Root: Codable>(
      _ name: String, _ field: KeyPath<Root, Int>, prefix: String
    ) -> Form<Root> {
      let (operation, value) = (pick(["<", "<=", ">", ">="]), integer())
      return Form(
        typed: Self.filter(field, operation, value),
        json: #"{"\#(name)":{"\#(Self.names[operation]!)":\#(value),"$type":"number"}}"#,
        raw: "\(prefix)\(name) \(operation) \(value)",
        holds: { Self.compares($0[name], operation, .integer(Int64(value))) })
    }

    private mutating func optionalOrder() -> Form<Thing> {
      let value = Double(number(8)) / 2
      return Form(
        typed: \Thing.m > value, json: #"{"m":{"$gt":\#(value),"$type":"number"}}"#, raw: "m > \(value)",
        holds: { Self.compares($0["m"], ">", .double(value)) })
    }

    private mutating func equality<Root: Codable>(
      _ name: String, _ field: KeyPath<Root, String>, prefix: String
    ) -> Form<Root> {
      let value = string()
      let quoted = value.replacing("'", with: "\\'")
      if number(2) == 0 {
        return Form(
          typed: field != value, json: #"{"$nor":[{"\#(name)":\#(JSONValue.string(value))}]}"#,
          raw: "\(prefix)\(name) != '\(quoted)'", holds: { $0[name] != .string(value) })
      }
      return Form(
        typed: field == value, json: #"{"\#(name)":\#(JSONValue.string(value))}"#,
        raw: "\(prefix)\(name) = '\(quoted)'", holds: { $0[name] == .string(value) })
    }

    private func optionalEquality() -> Form<Thing> {
      Form(
        typed: \Thing.t == nil, json: #"{"$or":[{"t":{"$exists":false}},{"t":null}]}"#, raw: "t = nil",
        holds: { $0["t"] ?? .null == .null })
    }

    private mutating func list() -> Form<Thing> {
      let values = (0..<number(4)).map { _ in integer() }
      return Form(
        typed: \Thing.n === values, json: #"{"n":{"$in":\#(values)}}"#,
        raw: "n IN {\(values.map(String.init).joined(separator: ", "))}",
        holds: { document in values.contains { document["n"] == .integer(Int64($0)) } })
    }

    private mutating func text() -> Form<Thing> {
      let value = pick(["", "a", "b", "ab"])
      let text = JSONValue.string(value)
      switch number(3) {
      case 0:
        return Form(
          typed: Query.beginsWith(\Thing.t, value, caseInsensitive: false), json: #"{"t":{"$beginsWith":\#(text)}}"#,
          raw: "t BEGINSWITH '\(value)'",
          holds: { $0["t"]?.string?.hasPrefix(value) == true || $0["t"]?.string != nil && value.isEmpty })
      case 1:
        return Form(
          typed: Query.endsWith(\Thing.t, value), json: #"{"t":{"$endsWith":\#(text),"$options":"c"}}"#,
          raw: "t ENDSWITH[c] '\(value)'",
          holds: { $0["t"]?.string.map { $0.lowercased().hasSuffix(value) || value.isEmpty } ?? false })
      default:
        return Form(
          typed: Query.contains(\Thing.s, value, caseInsensitive: false), json: #"{"s":{"$contains":\#(text)}}"#,
          raw: "s CONTAINS '\(value)'", holds: { $0["s"]?.string.map { $0.contains(value) || value.isEmpty } ?? false })
      }
    }

    private mutating func fields() -> Form<Thing> {
      Form(
        typed: \Thing.s < \Thing.s, json: #"{"$expr":{"$lt":[{"$field":"s"},{"$field":"s"}]}}"#, raw: "s < s",
        holds: { _ in false })
    }

    private mutating func elements() -> Form<Thing> {
      let left: Form<Thing.Part> = order("n", \Thing.Part.n, prefix: "$p.")
      let right: Form<Thing.Part> = equality("s", \Thing.Part.s, prefix: "$p.")
      let element = #"{"$and":[\#(left.json),\#(right.json)]}"#
      return Form(
        typed: Query.any(\Thing.parts) { left.typed && right.typed }, json: #"{"parts":{"$elemMatch":\#(element)}}"#,
        raw: "SUBQUERY(parts, $p, \(left.raw) AND \(right.raw)).@count > 0",
        holds: { ($0["parts"]?.array ?? []).contains { left.holds($0) && right.holds($0) } })
    }
  }

  @Test func `typed filters, selectors and raw predicates match what they say`() throws {
    var generator = Generator(random: .announced())
    let documents = (0..<60).map { _ in generator.document() }
    let texts = documents.map { Document($0.description) }
    for _ in 0..<(SeededGenerator.isThorough ? 5_000 : 400) {
      let form = generator.condition(depth: 3)
      let expected = documents.map { form.holds($0) }
      let selectors = [try form.typed.selector, try Selector(parsing: form.json), try Selector(predicate: form.raw)]
      for selector in selectors {
        let compiled = try CompiledSelector(selector)
        #expect(texts.map { compiled.matches($0) } == expected, "\(form.json) as \(selector)")
        #expect(try Selector(parsing: selector.description) == selector)
      }
    }
  }

  @Test func `SQLite and the server find what is found in memory, with and without indexes`() async throws {
    var generator = Generator(random: .announced())
    let documents = (0..<120).map { _ in generator.document() }
    let entries = documents.enumerated().map { KeyValueEntry(key: String($0 + 1_000), value: .single($1)) }
    let fields: [FieldPath] = ["n", "m", "s", "t", "tags"]
    let folder = try TemporaryFolder()
    let database = try SQLiteDatabase(file: folder.url.appendingPathComponent("documents"))
    let server = try TestServer.start(stores: ["scanned": "memory", "indexed": "memory"])
    var sources: [any KeyValueDataSource<JSONValue>] = []
    for (name, indexed) in [("scanned", []), ("indexed", fields)] {
      let table = try SQLiteDataSource(database, store: name, of: JSONValue.self, indexes: indexed)
      let store = server.client.store(name)
      for field in indexed { try await store.waitForIndex(named: store.ensureIndex(on: [.ascending(field)])) }
      sources += [table, server.client.dataSource(of: JSONValue.self, store: name)]
    }
    for source in sources { try await source.store(entries) }
    for _ in 0..<(SeededGenerator.isThorough ? 1_000 : 60) {
      let form = generator.condition(depth: 3)
      let expected = documents.indices.filter { form.holds(documents[$0]) }.map { String($0 + 1_000) }
      let query = try Thing.all.where(form.typed).query
      for source in sources { #expect(try await source.entries(matching: query).map(\.key) == expected, "\(query)") }
      #expect(try await server.client.store("indexed").count(of: Thing.all.where(form.typed)) == expected.count)
    }
  }
}
