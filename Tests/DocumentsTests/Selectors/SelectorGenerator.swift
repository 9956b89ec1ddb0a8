import TestSupport

@testable import Documents

/// Random selectors, as JSON and built in Swift, and random documents that they are about.
struct SelectorGenerator {
  private var random: SeededGenerator

  init(_ random: SeededGenerator) { self.random = random }

  // MARK: Values

  mutating func document() -> JSONValue {
    var object = JSONObject()
    for name in names where isLucky(0.7) { object[name] = value(depth: 3) }
    return .object(object)
  }

  private let names = ["a", "b", "a.b", "$c", #"\"#, "0"]

  private mutating func value(depth: Int) -> JSONValue {
    switch number(depth > 0 ? 10 : 8) {
    case 0: return .null
    case 1: return .bool(isLucky(0.5))
    case 2: return .double(Double(number(8)) / 2)
    case 3, 4: return .integer(Int64(number(4)))
    case 5, 6, 7: return .string(text())
    case 8: return .array((0..<number(4)).map { _ in value(depth: depth - 1) })
    default:
      var object = JSONObject()
      for _ in 0..<number(3) { object[pick(names)] = value(depth: depth - 1) }
      return .object(object)
    }
  }

  private mutating func text() -> String { pick(["", "a", "A", "ab", "é", "e\u{301}", "ba*", #"a\"#]) }

  private mutating func path() -> FieldPath {
    FieldPath(names: (0..<(isLucky(0.3) ? 2 : 1)).map { _ in pick(names) })
  }

  private mutating func values() -> [JSONValue] { (0..<number(3)).map { _ in value(depth: 1) } }

  // MARK: JSON

  /// Returns the JSON of a selector without `$text`.
  mutating func json(depth: Int = 4) -> JSONValue {
    isLucky(0.02) ? [:] : .object(object(depth: depth, isDocument: true, isField: false))
  }

  private mutating func object(depth: Int, isDocument: Bool, isField: Bool) -> JSONObject {
    var object = JSONObject()
    for _ in 0..<(isLucky(0.6) ? 1 : 1 + number(3)) {
      let combines = depth > 0 && isLucky(0.4)
      if combines {
        switch number(5) {
        case 0, 1, 2:
          object[pick(["$and", "$or", "$nor"])] = .array(
            (0...number(3)).map { _ in .object(self.object(depth: depth - 1, isDocument: isDocument, isField: isField))
            })
        case 3: object["$not"] = .object(self.object(depth: depth - 1, isDocument: isDocument, isField: isField))
        default:
          if isDocument { object["$expr"] = expression(depth: depth - 1) }
        }
      } else if isDocument || isLucky(0.3) {
        let (inner, value) = (
          self.object(depth: depth - 1, isDocument: false, isField: true), value(depth: 2).asOperand
        )
        if case .object = value {
          object[path().description] = ["$eq": value]
        } else {
          object[path().description] = isLucky(0.3) ? value : .object(inner)
        }
      } else {
        addCondition(to: &object, depth: depth)
      }
    }
    if object.count == 0 {
      if isDocument { object["a"] = 1 } else { object["$gt"] = 1 }
    }
    return object
  }

  private mutating func addCondition(to object: inout JSONObject, depth: Int) {
    switch number(depth > 0 ? 14 : 11) {
    case 0, 1: object[pick(["$lt", "$lte", "$gt", "$gte"])] = value(depth: 2).asOperand
    case 2: object["$exists"] = .bool(isLucky(0.5))
    case 3: object["$type"] = .string(pick(JSONType.allCases).rawValue)
    case 4: object["$size"] = .integer(Int64(number(3)))
    case 5: object["$mod"] = [.integer(Int64(1 + number(3))), .integer(Int64(number(2)))]
    case 6: object["$all"] = .array(values().map(\.asOperand))
    case 7, 8, 9, 10:
      switch number(4) {
      case 0: object[pick(["$eq", "$ne"])] = value(depth: 2).asOperand
      case 1: object[pick(["$in", "$nin"])] = .array(values().map(\.asOperand))
      case 2: object[pick(["$beginsWith", "$endsWith", "$contains"])] = .string(text())
      default:
        object["$regex"] = .string(pick(["^a", "b", "(?i)a.", "[é]"]))
        object["$like"] = .string(pick(["*a*", "?", #"\a\*"#, "**", ""]))
      }
      if isLucky(0.3) { object["$options"] = .string(pick(["c", "d", "cd", "dc"])) }
    default:
      object[pick(["$elemMatch", "$allMatch", "$keyMapMatch"])] = .object(
        self.object(depth: depth - 1, isDocument: false, isField: false))
    }
  }

  private mutating func expression(depth: Int) -> JSONValue {
    .object([
      pick(["$eq", "$ne", "$lt", "$lte", "$gt", "$gte"]): .array([operand(depth: depth), operand(depth: depth)])
    ])
  }

  private mutating func operand(depth: Int) -> JSONValue {
    let path = JSONValue.string(path().description)
    switch number(depth > 0 ? 7 : 5) {
    case 0: return .integer(Int64(number(4)))
    case 1: return .object(["$literal": value(depth: 2)])
    case 2, 3: return .object(["$field": path])
    case 4: return .object([pick(["$count", "$sum", "$avg", "$min", "$max"]): path])
    case 5:
      return .object([
        pick(["$add", "$subtract", "$multiply", "$divide"]): .array([
          operand(depth: depth - 1), operand(depth: depth - 1),
        ])
      ])
    default:
      let selector = object(depth: depth - 1, isDocument: false, isField: false)
      return .object(["$count": .object(["$field": path, "$where": .object(selector)])])
    }
  }

  // MARK: Swift

  /// Returns a selector built in Swift without `text`.
  mutating func selector(depth: Int = 4, isDocument: Bool = true) -> Selector {
    switch number(depth > 0 ? 10 : 4) {
    case 0, 1, 2, 3: return isLucky(0.05) ? .all : .field(path(), condition(depth: depth))
    case 4:
      return selector(depth: depth - 1, isDocument: isDocument) && selector(depth: depth - 1, isDocument: isDocument)
    case 5:
      return selector(depth: depth - 1, isDocument: isDocument) || selector(depth: depth - 1, isDocument: isDocument)
    case 6: return !selector(depth: depth - 1, isDocument: isDocument)
    case 7, 8:
      let parts = (0..<number(4)).map { _ in selector(depth: depth - 1, isDocument: isDocument) }
      return isLucky(0.3) ? .and(parts) : isLucky(0.5) ? .or(parts) : .nor(parts)
    default:
      guard isDocument else { return selector(depth: depth - 1, isDocument: false) }
      let comparisons: [Selector.Comparison] = [.equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual]
      return .compare(swiftOperand(depth: depth - 1), pick(comparisons), swiftOperand(depth: depth - 1))
    }
  }

  private mutating func condition(depth: Int) -> Selector.Condition {
    let options =
      pick([[], [], [.ignoringCase], [.ignoringDiacritics], [.ignoringCase, .ignoringDiacritics]])
      as Selector.StringOptions
    switch number(depth > 0 ? 27 : 18) {
    case 0: return .equal(value(depth: 2), options)
    case 1: return .notEqual(value(depth: 2), options)
    case 2: return .less(value(depth: 2))
    case 3: return .lessOrEqual(value(depth: 2))
    case 4: return .greater(value(depth: 2))
    case 5: return .greaterOrEqual(value(depth: 2))
    case 6: return .in(values(), options)
    case 7: return .notIn(values(), options)
    case 8: return .exists(isLucky(0.5))
    case 9: return .type(pick(JSONType.allCases))
    case 10: return .remainder(dividingBy: Int64(1 + number(3)), is: Int64(number(2)))
    case 11: return try! .regex(pick(["^a", "b", "(?i)a.", "[é]"]), options)
    case 12: return .beginsWith(text(), options)
    case 13: return .endsWith(text(), options)
    case 14: return .contains(text(), options)
    case 15: return .like(pick(["*a*", "?", #"\a\*"#, "**", ""]), options)
    case 16: return .size(number(3))
    case 17: return .all(values())
    case 18: return .elemMatch(selector(depth: depth - 1, isDocument: false))
    case 19: return .elemMatch(condition(depth: depth - 1))
    case 20: return .allMatch(selector(depth: depth - 1, isDocument: false))
    case 21: return .allMatch(condition(depth: depth - 1))
    case 22: return .keyMapMatch(condition(depth: depth - 1))
    case 23, 24: return .not(condition(depth: depth - 1))
    case 25: return condition(depth: depth - 1) && condition(depth: depth - 1)
    default: return condition(depth: depth - 1) || condition(depth: depth - 1)
    }
  }

  private mutating func swiftOperand(depth: Int) -> Selector.Expression {
    switch number(depth > 0 ? 12 : 7) {
    case 0: return .literal(value(depth: 2))
    case 1: return .field(path())
    case 2: return .count(path())
    case 3: return .sum(path())
    case 4: return .average(path())
    case 5: return .min(path())
    case 6: return .max(path())
    case 7: return .count(path(), where: selector(depth: depth - 1, isDocument: false))
    case 8: return swiftOperand(depth: depth - 1) + swiftOperand(depth: depth - 1)
    case 9: return swiftOperand(depth: depth - 1) - swiftOperand(depth: depth - 1)
    case 10: return swiftOperand(depth: depth - 1) * swiftOperand(depth: depth - 1)
    default: return swiftOperand(depth: depth - 1) / swiftOperand(depth: depth - 1)
    }
  }

  // MARK: Chance

  private mutating func number(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
  private mutating func isLucky(_ chance: Double) -> Bool { Double.random(in: 0..<1, using: &random) < chance }
  private mutating func pick<Element>(_ elements: [Element]) -> Element { elements[number(elements.count)] }
}
