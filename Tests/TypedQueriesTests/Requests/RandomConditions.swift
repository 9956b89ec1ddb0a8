import Documents
import TestSupport
import TypedQueries

extension RandomRequestTests {
  struct Thing: Codable, Queryable {
    var n: Int
    var k: Int
    var m: Double?
    var s: String
    var t: String?
    var tags: [String]
    var grid: [[Int]]
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
    var raw: String
    /// The arguments of the raw predicate.
    var arguments: [[[Int]]] = []
    var holds: (JSONValue) -> Bool
  }

  struct Generator {
    var random: SeededGenerator

    mutating func number(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
    mutating func pick<Element>(_ elements: [Element]) -> Element {
      elements[number(elements.count)]
    }
    mutating func string() -> String {
      pick(["", "a", "A", "ab", "ba", "bab", "e", "é", "É", "x'y", "\u{1F600}"])
    }
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

    /// Returns a scalar, or an array where types say that there is none.
    mutating func value() -> JSONValue {
      number(6) > 0 ? scalar() : .array((0..<number(3)).map { _ in scalar() })
    }

    mutating func nested(depth: Int) -> JSONValue {
      depth == 0
        ? .integer(Int64(number(2))) : .array((0..<number(3)).map { _ in nested(depth: depth - 1) })
    }

    mutating func document() -> JSONValue {
      var object = JSONObject()
      for name in ["n", "k", "m", "s", "t"] where number(6) > 0 { object[name] = value() }
      object["tags"] = .array((0..<number(3)).map { _ in scalar() })
      if number(5) > 0 {
        object["parts"] = .array((0..<number(3)).map { _ in ["n": value(), "s": value()] })
      }
      object["grid"] = nested(depth: 1 + number(3))
      return .object(object)
    }

    /// Returns what equality and the conditions on strings look at: the value, or the elements of an array.
    private static func candidates(_ value: JSONValue?) -> [JSONValue] {
      value.map { $0.array ?? [$0] } ?? []
    }

    // MARK: Conditions

    mutating func condition(depth: Int) -> Form<Thing> {
      switch number(depth > 0 ? 15 : 10) {
      case 10:
        let (left, right) = (condition(depth: depth - 1), condition(depth: depth - 1))
        return Form(
          typed: left.typed && right.typed, json: #"{"$and":[\#(left.json),\#(right.json)]}"#,
          raw: "(\(left.raw)) AND (\(right.raw))", arguments: left.arguments + right.arguments,
          holds: { left.holds($0) && right.holds($0) })
      case 11:
        let (left, right) = (condition(depth: depth - 1), condition(depth: depth - 1))
        return Form(
          typed: left.typed || right.typed, json: #"{"$or":[\#(left.json),\#(right.json)]}"#,
          raw: "(\(left.raw)) OR (\(right.raw))", arguments: left.arguments + right.arguments,
          holds: { left.holds($0) || right.holds($0) })
      case 12:
        let part = condition(depth: depth - 1)
        return Form(
          typed: !part.typed, json: #"{"$nor":[\#(part.json)]}"#, raw: "NOT (\(part.raw))",
          arguments: part.arguments, holds: { !part.holds($0) })
      case 13: return elements()
      case 14: return fields()
      case 0...1: return order("n", \Thing.n, prefix: "")
      case 2: return optionalOrder()
      case 3: return equality("s", \Thing.s, prefix: "")
      case 4: return optionalEquality()
      case 5: return list()
      case 6: return optionalList()
      case 7: return range()
      case 8: return wholeArray()
      default: return text()
      }
    }

    private static func compares(_ value: JSONValue?, _ operation: String, _ operand: JSONValue)
      -> Bool
    {
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
        typed: \Thing.m > value, json: #"{"m":{"$gt":\#(value),"$type":"number"}}"#,
        raw: "m > \(value)",
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
          raw: "\(prefix)\(name) != '\(quoted)'",
          holds: { !Self.candidates($0[name]).contains(.string(value)) })
      }
      return Form(
        typed: field == value, json: #"{"\#(name)":\#(JSONValue.string(value))}"#,
        raw: "\(prefix)\(name) = '\(quoted)'",
        holds: { Self.candidates($0[name]).contains(.string(value)) })
    }

    private func optionalEquality() -> Form<Thing> {
      Form(
        typed: \Thing.t == nil, json: #"{"$or":[{"t":{"$exists":false}},{"t":{"$type":"null"}}]}"#,
        raw: "t = nil",
        holds: { $0["t"] ?? .null == .null })
    }

    private mutating func list() -> Form<Thing> {
      let values = (0..<number(4)).map { _ in integer() }
      return Form(
        typed: \Thing.n === values, json: #"{"n":{"$in":\#(values)}}"#,
        raw: "n IN {\(values.map(String.init).joined(separator: ", "))}",
        holds: {
          Self.candidates($0["n"]).contains { values.map { .integer(Int64($0)) }.contains($0) }
        })
    }

    private mutating func optionalList() -> Form<Thing> {
      let values = (0..<number(3)).map { _ in Double(number(8)) / 2 }
      return Form(
        typed: \Thing.m === values + [nil],
        json: #"{"$or":[{"m":{"$in":\#(values)}},{"m":{"$exists":false}},{"m":{"$type":"null"}}]}"#,
        raw: "m IN {\((values.map(\.description) + ["nil"]).joined(separator: ", "))}",
        holds: {
          ($0["m"] ?? .null) == .null
            || Self.candidates($0["m"]).contains { values.map { .double($0) }.contains($0) }
        })
    }

    private mutating func range() -> Form<Thing> {
      let least = integer()
      let greatest = least + number(4)
      let (first, last) = (JSONValue.integer(Int64(least)), JSONValue.integer(Int64(greatest)))
      if number(2) == 0 {
        return Form(
          typed: \Thing.n === least..<greatest,
          json: #"{"n":{"$gte":\#(least),"$lt":\#(greatest),"$type":"number"}}"#,
          raw: "n >= \(least) AND n < \(greatest)",
          holds: { Self.compares($0["n"], ">=", first) && Self.compares($0["n"], "<", last) })
      }
      return Form(
        typed: \Thing.n === least...greatest,
        json: #"{"n":{"$gte":\#(least),"$lte":\#(greatest),"$type":"number"}}"#,
        raw: "n BETWEEN {\(least), \(greatest)}",
        holds: { Self.compares($0["n"], ">=", first) && Self.compares($0["n"], "<=", last) })
    }

    private mutating func wholeArray() -> Form<Thing> {
      func json(_ grid: [[Int]]) -> JSONValue {
        .array(grid.map { .array($0.map { .integer(Int64($0)) }) })
      }
      func isWhole(_ condition: String) -> String {
        #"{"$and":[{"grid":\#(condition)},{"$nor":[{"grid":{"$elemMatch":\#(condition)}}]}]}"#
      }
      let grid = (0..<number(3)).map { _ in (0..<number(3)).map { _ in number(2) } }
      guard number(2) == 0 else {
        return Form(
          typed: \Thing.grid == grid, json: isWhole(#"{"$eq":\#(json(grid))}"#), raw: "grid = %@",
          arguments: [grid],
          holds: { $0["grid"] == json(grid) })
      }
      // One is an element of the other.
      let grids = [grid, []]
      return Form(
        typed: \Thing.grid === grids,
        json:
          #"{"$or":[\#(grids.map { isWhole(#"{"$eq":\#(json($0))}"#) }.joined(separator: ","))]}"#,
        raw: "grid = %@ OR grid = %@", arguments: grids,
        holds: { grids.map(json).contains($0["grid"] ?? .null) })
    }

    private mutating func text() -> Form<Thing> {
      let value = pick(["", "a", "b", "ab", "É"])
      let text = JSONValue.string(value)
      func holds(_ name: String, _ test: @escaping (String) -> Bool) -> (JSONValue) -> Bool {
        { Self.candidates($0[name]).contains { $0.string.map(test) ?? false } }
      }
      switch number(4) {
      case 0:
        return Form(
          typed: Query.beginsWith(\Thing.t, value, caseInsensitive: false),
          json: #"{"t":{"$beginsWith":\#(text)}}"#,
          raw: "t BEGINSWITH '\(value)'", holds: holds("t") { value.isEmpty || $0.hasPrefix(value) }
        )
      case 1:
        return Form(
          typed: Query.endsWith(\Thing.t, value),
          json: #"{"t":{"$endsWith":\#(text),"$options":"c"}}"#,
          raw: "t ENDSWITH[c] '\(value)'",
          holds: holds("t") { value.isEmpty || $0.lowercased().hasSuffix(value.lowercased()) })
      case 2:
        return Form(
          typed: Query.like(\Thing.s, value, diacriticInsensitive: true),
          json: #"{"s":{"$like":\#(text),"$options":"cd"}}"#, raw: "s LIKE[cd] '\(value)'",
          holds: holds("s") { Self.folded($0) == Self.folded(value) })
      default:
        return Form(
          typed: Query.contains(\Thing.s, value, caseInsensitive: false),
          json: #"{"s":{"$contains":\#(text)}}"#,
          raw: "ANY s CONTAINS '\(value)'",
          holds: holds("s") { value.isEmpty || $0.contains(value) })
      }
    }

    private static func folded(_ text: String) -> String {
      text.lowercased().replacing("\u{E9}", with: "e")
    }

    private mutating func fields() -> Form<Thing> {
      let operation = pick(["<", "<=", ">", ">=", "="])
      let operands = #"[{"$field":"n"},{"$field":"k"}]"#
      guard operation == "=" else {
        return Form(
          typed: Self.filter(\Thing.n, operation, \Thing.k),
          json: #"{"$expr":{"\#(Self.names[operation]!)":\#(operands)}}"#, raw: "n \(operation) k",
          holds: { document in
            Self.candidates(document["n"]).contains { left in
              Self.candidates(document["k"]).contains { right in
                (right.double != nil || right.string != nil)
                  && Self.compares(left, operation, right)
              }
            }
          })
      }
      func isNil(_ name: String) -> String {
        #"{"$or":[{"\#(name)":{"$exists":false}},{"\#(name)":{"$type":"null"}}]}"#
      }
      return Form(
        typed: \Thing.n == \Thing.k,
        json: #"{"$or":[{"$expr":{"$eq":\#(operands)}},{"$and":[\#(isNil("n")),\#(isNil("k"))]}]}"#,
        raw: "n = k",
        holds: { document in
          (document["n"] ?? .null) == .null && (document["k"] ?? .null) == .null
            || Self.candidates(document["n"]).contains {
              Self.candidates(document["k"]).contains($0)
            }
        })
    }

    private static func filter(
      _ left: KeyPath<Thing, Int>, _ operation: String, _ right: KeyPath<Thing, Int>
    ) -> Filter<Thing> {
      switch operation {
      case "<": left < right
      case "<=": left <= right
      case ">": left > right
      default: left >= right
      }
    }

    private mutating func elements() -> Form<Thing> {
      let left: Form<Thing.Part> = order("n", \Thing.Part.n, prefix: "$p.")
      let right: Form<Thing.Part> = equality("s", \Thing.Part.s, prefix: "$p.")
      let element = #"{"$and":[\#(left.json),\#(right.json)]}"#
      return Form(
        typed: Query.any(\Thing.parts) { left.typed && right.typed },
        json: #"{"parts":{"$elemMatch":\#(element)}}"#,
        raw: "SUBQUERY(parts, $p, \(left.raw) AND \(right.raw)).@count > 0",
        holds: { ($0["parts"]?.array ?? []).contains { left.holds($0) && right.holds($0) } })
    }
  }
}
