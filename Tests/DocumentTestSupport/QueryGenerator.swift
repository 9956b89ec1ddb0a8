import Documents
import TestSupport

/// Random documents and queries about them, of which some are malformed.
package struct QueryGenerator {
  private var random: SeededGenerator

  package init(_ random: SeededGenerator) { self.random = random }

  // MARK: Documents

  /// Returns the text of an object.
  package mutating func text() -> String {
    isLucky(0.3)
      ? RandomDocument(hasDuplicates: false, using: &random).text()
      : JSONValue.object(object(depth: 3, of: 2...6)).description
  }

  /// Returns different keys.
  package mutating func ids(_ count: Int) -> [String] {
    (0..<count).map { "\(pick(["d", "D", "é", "\u{1F600}", "\"", ""]))\($0)" }.shuffled(using: &random)
  }

  private let names = ["a", "a", "a", "a", "b", "b", "b", "c", "x.y", "0", "1", "é", "$z", "_id"]

  private mutating func object(depth: Int, of counts: ClosedRange<Int>) -> JSONObject {
    var object = JSONObject()
    for _ in 0..<Int.random(in: counts, using: &random) { object[pick(names)] = value(depth: depth) }
    return object
  }

  package mutating func value(depth: Int) -> JSONValue {
    switch number(depth > 0 ? 14 : 9) {
    case 0: return .null
    case 1: return .bool(isLucky(0.5))
    case 2, 3: return .integer(Int64(number(6)) - 1)
    case 4, 5: return isLucky(0.5) ? .double(Double(number(8)) / 2) : edgeNumber()
    case 6, 7, 8: return .string(string())
    case 9, 10, 11:
      let isOfObjects = isLucky(0.4)
      return .array(
        (0..<number(4)).map { _ in
          isOfObjects ? .object(object(depth: depth - 1, of: 0...3)) : value(depth: depth - 1)
        })
    default: return .object(object(depth: depth - 1, of: 0...3))
    }
  }

  private mutating func edgeNumber() -> JSONValue {
    let integers: [Int64] = [1 << 53, 1 << 53 + 1, -(1 << 53) - 1, .max, .max - 1, .min, .min + 1, 1 << 62]
    let doubles = [0x1p53, 0x1p53 + 2, -0x1p53, 0x1p63, -0x1p63, 1e19, 1e308, -0.0, 0.1, -2.5, 21.7, .infinity]
    return isLucky(0.5) ? .integer(pick(integers)) : .double(pick(doubles))
  }

  package mutating func string() -> String {
    pick([
      "", "a", "a", "A", "ab", "ba", "aab", "Ab\n", "é", "É", "e\u{301}", "stra\u{DF}e", "\u{130}", "\u{1F600}", "\0",
      "a\0b", "\"\\", "a*", "10", "null",
    ])
  }

  // MARK: Queries

  package mutating func query() -> JSONValue {
    var query = JSONObject()
    query["selector"] = selector()
    if isLucky(0.4) { query["sort"] = .array((0...number(2)).map { _ in sortField() }) }
    if isLucky(0.3) { query["skip"] = .integer(Int64(number(5))) }
    if isLucky(0.4) { query["limit"] = .integer(Int64(number(8))) }
    if isLucky(0.3) { query["fields"] = .array((0...number(3)).map { _ in .string(path()) }) }
    if isLucky(0.01) { query[pick(["sort", "skip", "limit", "fields"])] = pick([-1, 0.5, "a", [1], [""], ["a..b"]]) }
    return .object(query)
  }

  package mutating func selector() -> JSONValue {
    isLucky(0.02) ? [:] : .object(selector(depth: 3, isInField: false, isInElement: false))
  }

  private mutating func sortField() -> JSONValue {
    isLucky(0.5) ? .string(path()) : [path(): .string(pick(["asc", "desc", "DESC"]))]
  }

  package mutating func path() -> String {
    let names = [
      "a", "a", "a", "a", "b", "b", "b", "b", "c", #"x\.y"#, "0", "1", "2", "é", #"\$z"#, "_id",
      "99999999999999999999", "01",
    ]
    return (0...pick([0, 0, 0, 0, 1, 1, 2])).map { _ in pick(names) }.joined(separator: ".")
  }

  private mutating func selector(depth: Int, isInField: Bool, isInElement: Bool) -> JSONObject {
    var object = JSONObject()
    for _ in 0...pick([0, 0, 0, 1, 2]) {
      switch number(depth > 0 ? 12 : 6) {
      case 6, 7:
        object[pick(["$and", "$or", "$nor"])] = .array(
          (0...number(2)).map { _ in
            .object(selector(depth: depth - 1, isInField: isInField, isInElement: isInElement))
          })
      case 8:
        object["$not"] = .object(selector(depth: depth - 1, isInField: isInField, isInElement: isInElement))
      case 9 where !isInField && !isInElement: object["$expr"] = expression()
      case 10 where isLucky(0.5):
        // Many equalities of one field, which are looked up together.
        let path = isInField || isInElement && isLucky(0.5) ? nil : path()
        object[pick(["$or", "$nor"])] = .array(
          (0..<pick([3, 30])).map { _ in
            let equality: JSONValue = ["$eq": value(depth: 2)]
            return path.map { [$0: equality] } ?? equality
          })
      case 0...3 where isInField || isInElement: addCondition(to: &object, depth: depth)
      default:
        if isLucky(0.2) {
          object[path()] = value(depth: 2)
        } else {
          object[path()] = .object(selector(depth: depth - 1, isInField: true, isInElement: isInElement))
        }
      }
    }
    return object
  }

  private mutating func addCondition(to object: inout JSONObject, depth: Int) {
    switch number(depth > 0 ? 15 : 12) {
    case 0, 1: object[pick(["$lt", "$lte", "$gt", "$gte"])] = value(depth: 2)
    case 2: object["$exists"] = .bool(isLucky(0.5))
    case 3: object["$type"] = .string(pick(["null", "boolean", "number", "string", "array", "object"]))
    case 4: object["$size"] = .integer(Int64(number(4)))
    case 5:
      object["$mod"] = [
        pick([1, 2, -3, 2.5, 7, .integer(1 << 53 + 1), .integer(.max), .integer(.min)]), pick([0, 1, -1, 1.5, 2]),
      ]
    case 6: object["$all"] = .array((0..<number(3)).map { _ in value(depth: 2) })
    case 7: object[pick(["$in", "$nin"])] = .array((0..<pick([number(5), 30])).map { _ in value(depth: 2) })
    case 8, 9: object[pick(["$eq", "$ne"])] = value(depth: 2)
    case 10: object[pick(["$beginsWith", "$endsWith", "$contains"])] = .string(string())
    case 11:
      if isLucky(0.5) {
        object["$regex"] = .string(pick(["^a", "b$", "(?i)A", "[é]", "a.b", "^$", "a|\u{301}", #"\d"#]))
      } else {
        object["$like"] = .string(pick(["*a*", "?", #"\a\*"#, "**", "", "a?b", "*É", "a*b*"]))
      }
    default:
      object[pick(["$elemMatch", "$elemMatch", "$allMatch", "$keyMapMatch"])] = .object(
        selector(depth: depth - 1, isInField: false, isInElement: true))
    }
    if isLucky(0.005) {
      object[pick(["$in", "$size", "$type", "$mod", "$like", "$foo", "$and", "$not", "$options"])] = pick([
        3, -1, "x", [], [0, 1], [:], #"\"#, true,
      ])
    }
    let hasText = ["$eq", "$ne", "$in", "$nin", "$beginsWith", "$endsWith", "$contains", "$like", "$regex"]
      .contains { object[$0] != nil }
    if hasText, isLucky(0.3) { object["$options"] = .string(pick(["c", "d", "cd", "dc"])) }
  }

  private mutating func expression() -> JSONValue {
    [pick(["$eq", "$ne", "$lt", "$lte", "$gt", "$gte"]): [operand(depth: 2), operand(depth: 2)]]
  }

  private mutating func operand(depth: Int) -> JSONValue {
    switch number(depth > 0 ? 9 : 6) {
    case 0: return .integer(Int64(number(4)))
    case 1: return ["$literal": value(depth: 2)]
    case 2, 3: return ["$field": .string(path())]
    case 4, 5: return [pick(["$count", "$sum", "$avg", "$min", "$max"]): .string(path())]
    case 6, 7:
      return [
        pick(["$add", "$subtract", "$multiply", "$divide"]): [operand(depth: depth - 1), operand(depth: depth - 1)]
      ]
    default:
      let selector = selector(depth: 1, isInField: false, isInElement: true)
      return ["$count": ["$field": .string(path()), "$where": .object(selector)]]
    }
  }

  // MARK: Chance

  package mutating func number(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
  package mutating func isLucky(_ chance: Double) -> Bool { Double.random(in: 0..<1, using: &random) < chance }
  package mutating func pick<Element>(_ elements: [Element]) -> Element { elements[number(elements.count)] }
}
