import TestSupport
import Testing

@testable import Documents

/// What a kept plan makes of the values of a find is what the planner makes of them.
struct KeptPlanTests {
  private struct NoKeys: KeyCounter {
    mutating func count(_ range: KeyRange, ofIndex number: Int?) -> Int { 1 }
    mutating func groupCount(_ ranges: [KeyRange], ofIndex number: Int, fieldCount: Int) -> Int { 1 }
  }

  private static let names = ["a", "b", "c.d", "é", "0"]
  private static let texts = [
    "1", "1.0", "-0", "1e400", "123456789012345678901", "true", "false", "\"\"", "\"x\"", "\"é\u{1F600}\"",
    "\"" + String(repeating: "long", count: 60) + "\"",
  ]

  private func choice(_ query: DocumentQuery, _ index: PlannedIndex) throws -> FindPlan {
    var (counter, planner) = (NoKeys(), try Planner(query, indexes: [index], entryCount: 100))
    return planner.plan(&counter).plan
  }

  private func shape(_ selector: String, _ sort: String) -> FindShape? {
    var shape = FindShape()
    let isShape = shape.read(
      selector: Array(selector.utf8).span, sort: Array(sort.utf8).span, fields: [UInt8]().span, isCounting: false)
    return isShape ? shape : nil
  }

  private func query(_ selector: String, _ sort: String) throws -> DocumentQuery {
    try DocumentQuery(parsing: "{\"selector\":\(selector),\"sort\":\(sort)}")
  }

  @Test func `for other values, a kept plan has the ranges that the planner chooses`() throws {
    var random = SeededGenerator.announced()
    var keptCount = 0
    for _ in 0..<(SeededGenerator.isThorough ? 200_000 : 4_000) {
      let names = Self.names.shuffled(using: &random).prefix(.random(in: 0...3, using: &random))
      let indexed = Self.names.shuffled(using: &random).prefix(.random(in: 1...3, using: &random))
      let fields = indexed.map { name in
        Bool.random(using: &random) ? SortField.ascending(FieldPath(name)!) : .descending(FieldPath(name)!)
      }
      let index = PlannedIndex(
        try DocumentIndex(fields), isComplete: true,
        multiFields: Int.random(in: 0..<10, using: &random) == 0 ? 1 : 0, overflowCount: 0, entryCount: 100)
      let sorted = indexed.prefix(.random(in: 0...indexed.count, using: &random))
      let sort = "[\(sorted.map { "\"\($0)\"" }.joined(separator: ","))]"
      func selector() -> String {
        "{\(names.map { "\"\($0)\":\(Self.texts.randomElement(using: &random)!)" }.joined(separator: ","))}"
      }
      let first = selector()
      guard let firstShape = shape(first, sort) else { continue }
      let plan = try choice(query(first, sort), index)
      guard
        let kept = KeptPlan(
          plan, of: try query(first, sort), firstShape, Array(first.utf8).span, by: index, isCounting: false)
      else { continue }
      keptCount += 1
      for _ in 0..<3 {
        let other = selector()
        guard let otherShape = shape(other, sort), otherShape.key == firstShape.key else { continue }
        let expected = try choice(query(other, sort), index)
        var bounds = KeyBounds()
        kept.makeBounds(of: otherShape, Array(other.utf8).span, &bounds)
        guard case .index(_, let ranges) = expected.source, ranges.count == 1 else {
          Issue.record("\(first) is served by the index, \(other) is not")
          continue
        }
        #expect(expected.isExact && expected.isOrdered && expected.isReversed == kept.isReversed, "\(other) \(sort)")
        #expect(bounds.lower == ranges[0].lower && bounds.upper == ranges[0].upper ?? [], "\(other) \(sort)")
      }
    }
    #expect(keptCount > 100)
  }

  @Test func `finds have the same shape only if they have the same names, kinds of values, sort and fields`() {
    func key(_ selector: String, sort: String = "", fields: String = "", isCounting: Bool = false) -> [UInt8]? {
      var shape = FindShape()
      let isShape = shape.read(
        selector: Array(selector.utf8).span, sort: Array(sort.utf8).span, fields: Array(fields.utf8).span,
        isCounting: isCounting)
      return isShape ? shape.key : nil
    }
    let base = key(#"{"a":1,"b":"x"}"#)
    #expect(base != nil && key(#" { "a" : 27 , "b" : "yy" } "#) == base)
    for other in [#"{"a":1}"#, #"{"b":"x","a":1}"#, #"{"a":"1","b":"x"}"#, #"{"a":true,"b":"x"}"#, "{}"] {
      #expect(key(other) != nil && key(other) != base)
    }
    #expect(key(#"{"a":1,"b":"x"}"#, sort: #"["a"]"#) != base && key(#"{"a":1,"b":"x"}"#, fields: #"["a"]"#) != base)
    #expect(key(#"{"a":1,"b":"x"}"#, isCounting: true) != base)
    #expect(
      key("{}", sort: #"["a"]"#, fields: #"["b"]"#) != key("{}", sort: "", fields: #"["a"]["b"]"#))
    for none in [
      "", "[]", #"{"a":null}"#, #"{"a":[1]}"#, #"{"a":{"$gt":1}}"#, #"{"$and":1}"#, #"{"a\u0061":1}"#, #"{"a":"\n"}"#,
      #"{"a":1}x"#, #"{"a":1"#, #"{"a":1,}"#, #"{"":1}"#, "{\"a\":\"\(String(repeating: "x", count: 300))\"}",
      "{\"a\":\"\u{1}\"}", "{\(String(repeating: " ", count: 1_100))}",
    ] {
      #expect(key(none) == nil, "\(none)")
    }
  }

  @Test func `no more plans are kept than permitted, and those in use stay`() throws {
    final class Index: Sendable {}
    let index = PlannedIndex(
      try DocumentIndex(["a"]), isComplete: true, multiFields: 0, overflowCount: 0, entryCount: 100)
    var plans = KeptPlans<Index>()
    func shape(_ number: Int) -> FindShape {
      var shape = FindShape()
      _ = shape.read(
        selector: Array(#"{"a":1}"#.utf8).span, sort: [UInt8]().span, fields: Array("[\"f\(number)\"]".utf8).span,
        isCounting: false)
      return shape
    }
    let query = try query(#"{"a":1}"#, "[]")
    let plan = try choice(query, index)
    for number in 0..<1_000 {
      let kept = KeptPlan(
        plan, of: query, shape(number), Array(#"{"a":1}"#.utf8).span, by: index, isCounting: false)!
      plans.keep(kept, by: Index(), for: shape(number))
      let count = plans.count
      #expect(count <= 2 * KeptPlans<Index>.maxCount)
      #expect(plans.find(shape(0)) != nil && plans.find(shape(number)) != nil)
    }
    #expect(plans.find(shape(500)) == nil)
    plans.removeAll()
    #expect(plans.find(shape(0)) == nil)
  }
}
