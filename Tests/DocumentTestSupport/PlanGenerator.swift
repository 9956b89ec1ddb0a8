import Documents
import TestSupport

/// Random documents, indexes and queries of which many have a plan.
package struct PlanGenerator {
  /// What documents are like.
  package enum Style: CaseIterable {
    /// Fields have single values.
    case flat
    /// Some fields have arrays, also of objects.
    case arrays
    /// Like flat, but a few documents are like those with arrays.
    case mixed
    /// Anything.
    case wild
  }

  private var generator: QueryGenerator
  private let style: Style
  /// The documents whose values queries ask for, and their trees.
  private var documents: [(document: Document, tree: JSONValue)] = []
  /// The document that conditions mostly hold for.
  private var target: Document?
  /// The paths of the indexes' fields.
  private var indexedPaths: [String] = []

  package init(_ random: SeededGenerator, _ style: Style) {
    generator = QueryGenerator(random)
    self.style = style
  }

  // MARK: Documents

  package mutating func documents(_ count: Int) -> [Document] {
    let documents = generator.ids(count).map { id in
      Document(text(), id: id, revision: UInt64(generator.number(9)))
    }
    self.documents = documents.compactMap { document in (try? document.value()).map { (document, $0) } }
    return documents
  }

  private mutating func text() -> String {
    switch style {
    case .wild: return generator.isLucky(0.03) ? generator.pick(["[]", "1", "{", "", "[{\"a\":1}]"]) : generator.text()
    case .flat: return JSONValue.object(object(depth: 2, hasArrays: false)).description
    case .arrays: return JSONValue.object(object(depth: 2, hasArrays: true)).description
    case .mixed:
      return JSONValue.object(object(depth: 2, hasArrays: generator.isLucky(0.1))).description
    }
  }

  private mutating func object(depth: Int, hasArrays: Bool) -> JSONObject {
    var object = JSONObject()
    for name in ["a", "b", "c", "0"] where generator.isLucky(name == "0" ? 0.1 : 0.8) {
      object[name] = value(depth: depth, hasArrays: hasArrays)
    }
    return object
  }

  private mutating func value(depth: Int, hasArrays: Bool) -> JSONValue {
    switch generator.number(10) {
    case 0 where depth > 0: return .object(object(depth: depth - 1, hasArrays: hasArrays))
    case 1, 2, 3:
      guard hasArrays, depth > 0 else { return scalar() }
      let hasObjects = generator.isLucky(0.5)
      return .array(
        (0..<generator.number(4)).map { _ in
          if generator.isLucky(0.1) {
            return .array((0..<generator.number(3)).map { _ in value(depth: 0, hasArrays: true) })
          }
          return hasObjects ? .object(object(depth: depth - 1, hasArrays: hasArrays)) : scalar()
        })
    default: return scalar()
    }
  }

  private mutating func scalar() -> JSONValue {
    switch generator.number(12) {
    case 0: return .null
    case 1: return .bool(generator.isLucky(0.5))
    case 2...5: return .integer(Int64(generator.number(3)))
    case 6: return generator.isLucky(0.5) ? 0.5 : generator.pick([1.0, 9_007_199_254_740_993, -2, 1e300])
    case 7...10:
      return .string(generator.pick(["a", "a", "a", "a", "ab", "ab", "b", "", "A", "a\u{0}", "é", "e\u{301}"]))
    default: return .object(generator.isLucky(0.5) ? [:] : ["a": .integer(Int64(generator.number(2)))])
    }
  }

  // MARK: Indexes

  package mutating func indexes() throws -> [(index: DocumentIndex, isComplete: Bool)] {
    try (0..<generator.number(5)).map { number in
      var fields: [SortField] = []
      for _ in 0...generator.pick([0, 0, 1, 1, 2]) {
        let path = FieldPath(path())!
        guard !fields.contains(where: { $0.path == path }) else { continue }
        fields.append(SortField(path, generator.isLucky(0.3) ? .descending : .ascending))
      }
      let selector = generator.isLucky(0.25) ? try? Selector(simpleSelector(maxCount: 2)) : nil
      return (try DocumentIndex(fields, where: selector, name: "index \(number)"), generator.isLucky(0.95))
    }
  }

  private mutating func path() -> String {
    style == .wild
      ? generator.path()
      : generator.pick(["a", "a", "a", "b", "b", "c", "a.b", "a.b", "b.c", "_id", "_rev", "a.0", "a.b.c", "0"])
  }

  // MARK: Queries

  /// Returns a query without a bookmark.
  package mutating func query(like indexes: [DocumentIndex]) -> DocumentQuery {
    while true {
      indexedPaths = indexes.flatMap { $0.fields.map(\.path.description) }
      target = documents.isEmpty ? nil : generator.pick(documents).document
      let selector = generator.isLucky(0.1) ? generator.selector() : self.selector(like: indexes)
      guard let selector = try? Selector(selector) else { continue }
      var query = DocumentQuery(selector)
      if generator.isLucky(0.5) { query.sort = sort(like: indexes) }
      if generator.isLucky(0.3) { query.skip = generator.number(5) }
      if generator.isLucky(0.4) { query.limit = 1 + generator.number(7) }
      return query
    }
  }

  private mutating func sort(like indexes: [DocumentIndex]) -> [SortField] {
    var fields: [SortField] = []
    if let index = indexes.isEmpty ? nil : generator.pick(indexes), generator.isLucky(0.8) {
      fields = index.fields
      if generator.isLucky(0.5) {
        fields = fields.map { SortField($0.path, $0.direction == .ascending ? .descending : .ascending) }
      }
      if generator.isLucky(0.3) { fields.removeFirst() }
      if generator.isLucky(0.1), !fields.isEmpty { fields.removeLast() }
      if generator.isLucky(0.1), !fields.isEmpty { fields.append(generator.pick(fields)) }
    }
    if fields.isEmpty || generator.isLucky(0.1) {
      fields.append(SortField(FieldPath(path())!, generator.isLucky(0.5) ? .descending : .ascending))
    }
    if generator.isLucky(0.1) { fields.append(generator.pick([.ascending("_id"), .descending("_id")])) }
    return fields
  }

  private mutating func selector(like indexes: [DocumentIndex]) -> JSONValue {
    var selector = simpleSelector(maxCount: 3)
    // What a partial index asks for.
    if let partial = indexes.last(where: { $0.selector != nil })?.selector, generator.isLucky(0.5) {
      selector =
        generator.isLucky(0.3) ? partial.json : ["$and": [selector == [:] ? partial.json : selector, partial.json]]
    }
    return selector
  }

  /// Returns a selector with up to a number of conditions that all have to hold.
  private mutating func simpleSelector(maxCount: Int) -> JSONValue {
    var object = JSONObject()
    for _ in 0..<min(maxCount, generator.pick([0, 1, 1, 1, 1, 2, 2, 3])) {
      let path = indexedPaths.isEmpty || generator.isLucky(0.3) ? path() : generator.pick(indexedPaths)
      switch generator.number(10) {
      case 0:
        object["$or"] = .array((0...generator.number(2)).map { _ in nonEmptySelector() })
      case 1 where style != .wild: object["_id"] = likelyCondition(on: "_id")
      default: object[path] = likelyCondition(on: path)
      }
    }
    return .object(object)
  }

  private mutating func nonEmptySelector() -> JSONValue {
    while true {
      let selector = simpleSelector(maxCount: 2)
      if selector != [:] { return selector }
    }
  }

  /// Returns a condition that mostly holds for the target.
  private mutating func likelyCondition(on path: String) -> JSONValue {
    for _ in 0..<8 {
      let condition = condition(on: path)
      guard let target, generator.isLucky(0.95),
        let selector = try? Selector(["\(FieldPath(path)!)": condition]), let compiled = try? CompiledSelector(selector)
      else { return condition }
      if compiled.matches(target) { return condition }
    }
    return condition(on: path)
  }

  private mutating func condition(on path: String) -> JSONValue {
    func operand() -> JSONValue {
      if !documents.isEmpty, generator.isLucky(0.8) {
        let values = TreeOracle.values(generator.pick(documents).tree, FieldPath(path)!.names[...])
        guard !values.isEmpty else { return scalar() }
        let value = generator.pick(values)
        guard case .array(let elements) = value, !elements.isEmpty, generator.isLucky(0.8) else { return value }
        return generator.pick(elements)
      }
      if path == "_id" { return .string(generator.pick(["d1", "d", "D3", "é", "", "é2", "\""])) }
      return generator.isLucky(0.9) ? scalar() : [scalar()]
    }
    var object = JSONObject()
    for _ in 0...generator.pick([0, 0, 0, 1, 1, 2]) {
      switch generator.number(16) {
      case 0, 1, 2: object["$eq"] = operand()
      case 3: object["$in"] = .array((0..<generator.number(4)).map { _ in operand() })
      case 4, 5: object[generator.pick(["$gt", "$gte"])] = operand()
      case 6, 7: object[generator.pick(["$lt", "$lte"])] = operand()
      case 8: object["$exists"] = .bool(generator.isLucky(0.7))
      case 9: object["$type"] = .string(generator.pick(["null", "boolean", "number", "string", "array", "object"]))
      case 10: object["$beginsWith"] = .string(generator.pick(["", "a", "a\u{0}", "d", "é"]))
      case 11: object[generator.pick(["$like", "$regex"])] = .string(generator.pick(["a*", "^a", "b", "^ab*", "a?*"]))
      case 12: object["$all"] = .array((0..<generator.number(3)).map { _ in operand() })
      case 13:
        object[generator.pick(["$elemMatch", "$elemMatch", "$allMatch"])] =
          generator.isLucky(0.5) ? condition(on: path) : nonEmptySelector()
      case 14: object[generator.pick(["$ne", "$not"])] = generator.isLucky(0.5) ? 1 : ["$exists": true]
      default: object[generator.pick(["$size", "$mod"])] = generator.isLucky(0.5) ? 1 : [2, 1]
      }
    }
    if case .some(.integer) = object["$not"] { object["$not"] = ["$eq": 1] }
    if case .some(.integer) = object["$mod"] { object["$mod"] = [2, 0] }
    if case .some(.array) = object["$size"] { object["$size"] = 0 }
    if generator.isLucky(0.05), object["$eq"] != nil || object["$in"] != nil || object["$beginsWith"] != nil {
      object["$options"] = "c"
    }
    return .object(object)
  }

  // MARK: Chance

  package mutating func number(_ count: Int) -> Int { generator.number(count) }
  package mutating func isLucky(_ chance: Double) -> Bool { generator.isLucky(chance) }
  package mutating func pick<Element>(_ elements: [Element]) -> Element { generator.pick(elements) }
}
