import Documents
import Testing

@Suite struct PlannerTests {
  /// Counts the same number of keys in each range.
  private struct Counter: KeyCounter {
    var keyCount = 10
    var rangeCount = 0
    var groupCount = 0

    mutating func count(_ range: KeyRange, ofIndex number: Int?) -> Int {
      rangeCount += 1
      return keyCount
    }

    mutating func groupCount(_ ranges: [KeyRange], ofIndex number: Int, fieldCount: Int) -> Int { groupCount }
  }

  private func index(
    _ json: JSONValue, isComplete: Bool = true, multiFields: UInt32 = 0, overflowCount: Int = 0
  ) throws -> PlannedIndex {
    PlannedIndex(
      try DocumentIndex(json: json), isComplete: isComplete, multiFields: multiFields, overflowCount: overflowCount,
      entryCount: 1_000)
  }

  /// Returns the plan of a query and its explanation.
  private func plan(
    _ query: JSONValue, _ indexes: [PlannedIndex], hint: String? = nil
  ) throws -> (plan: FindPlan, explanation: JSONValue) {
    var counter = Counter()
    var planner = try Planner(DocumentQuery(query), indexes: indexes, entryCount: 1_001, hint: hint)
    let choice = planner.plan(&counter)
    return (choice.plan, choice.explanation.json)
  }

  // MARK: Ranges

  @Test(
    arguments: [
      // The condition, the values of a field that has single values, and of one that has arrays.
      (#"{"$eq":5}"#, #"[{"a":{"$eq":5}}]"#, nil),
      (#"{"$eq":null}"#, #"[{"a":{"$eq":null}}]"#, nil),
      (#"{"$eq":[1]}"#, #"[{"a":{"$eq":[1]}}]"#, nil),
      (#"{"$eq":{"b":1}}"#, #"[{"a":{"$eq":{"b":1}}}]"#, nil),
      (#"{"$in":[3,1,"x",3.0]}"#, #"[{"a":{"$eq":1}},{"a":{"$eq":3}},{"a":{"$eq":"x"}}]"#, nil),
      (#"{"$lt":5}"#, #"[{"a":{"$lt":5}}]"#, #"[{"a":{"$lt":5}},{"a":"arrays in arrays"}]"#),
      (#"{"$lte":"x"}"#, #"[{"a":{"$lte":"x"}}]"#, #"[{"a":{"$lte":"x"}},{"a":"arrays in arrays"}]"#),
      (
        #"{"$gt":5}"#, #"[{"a":{"$gt":5}}]"#,
        #"[{"a":{"$gt":5,"before":"array"}},{"a":{"behind":"array"}},{"a":"arrays in arrays"}]"#
      ),
      (#"{"$gte":null}"#, #"[{"a":{"$gte":null}}]"#, nil),
      (#"{"$gte":[1]}"#, #"[{"a":{"$gte":[1]}}]"#, nil),
      (#"{"$exists":true}"#, #"[{"a":{"$exists":true}}]"#, nil),
      (#"{"$exists":false}"#, #"[{"a":{"$exists":false}}]"#, nil),
      (#"{"$type":"string"}"#, #"[{"a":{"$type":"string"}}]"#, nil),
      (#"{"$type":"null"}"#, #"[{"a":{"$eq":null}}]"#, nil),
      (#"{"$size":0}"#, #"[{"a":{"$eq":[]}}]"#, nil),
      (#"{"$size":2}"#, #"[{"a":{"$type":"array"}}]"#, nil),
      (#"{"$mod":[2,1]}"#, #"[{"a":{"$type":"number"}}]"#, nil),
      (#"{"$beginsWith":"ab"}"#, #"[{"a":{"$beginsWith":"ab"}}]"#, nil),
      (#"{"$regex":"^ab*"}"#, #"[{"a":{"$beginsWith":"a"}}]"#, nil),
      (#"{"$regex":"(?i)^ab"}"#, #"[{"a":{"$beginsWith":""}}]"#, nil),
      (#"{"$like":"ab*c"}"#, #"[{"a":{"$beginsWith":"ab"}}]"#, nil),
      (#"{"$like":"a\\*"}"#, #"[{"a":{"$eq":"a*"}}]"#, nil),
      (#"{"$contains":"x"}"#, #"[{"a":{"$type":"string"}}]"#, nil),
      (#"{"$eq":"A","$options":"c"}"#, #"[{"a":{"$type":"string"}}]"#, nil),
      (#"{"$eq":1,"$options":"c"}"#, #"[{"a":{"$eq":1}}]"#, nil),
      (#"{"$keyMapMatch":{"$eq":"x"}}"#, #"[{"a":{"$type":"object"}}]"#, nil),
      (#"{"$all":["x"]}"#, #"[{"a":{"$eq":"x"}}]"#, nil),
      (#"{"$elemMatch":{"$eq":"x"}}"#, #"[{"a":{"$eq":"x"}},{"a":"arrays in arrays"}]"#, nil),
      (
        #"{"$elemMatch":{"$gt":1,"$lt":5}}"#, #"[{"a":{"$gt":1,"$lt":5}},{"a":"arrays in arrays"}]"#, nil
      ),
    ] as [(String, String, String?)])
  func `a condition limits the values of a field`(
    _ condition: String, _ single: String, _ multiple: String?
  ) throws {
    let query: JSONValue = ["selector": ["a": try JSONValue(parsing: condition)]]
    for (multiFields, expected) in [(UInt32(0), single), (1, multiple ?? single)] {
      let index = try index(["fields": ["a"], "name": "i"], multiFields: multiFields)
      let plan = try #require(try self.plan(query, [index]).explanation["plan"])
      #expect(plan["kind"] == "index")
      #expect(plan["ranges"]?.description == expected)
    }
  }

  @Test(arguments: [
    #"{"a":{"$ne":5}}"#, #"{"a":{"$not":{"$gt":5}}}"#, #"{"a":{"$nin":[1]}}"#, #"{"$nor":[{"a":1}]}"#,
    #"{"$expr":{"$gt":[{"$field":"a"},1]}}"#, #"{"b":1}"#, #"{"$or":[{"a":1},{"b":1}]}"#, #"{"a.b":1}"#,
  ])
  func `other selectors don't limit the values of a field`(_ selector: String) throws {
    let query: JSONValue = ["selector": try JSONValue(parsing: selector)]
    #expect(try plan(query, [index(["fields": ["a"]])]).plan.source == .ids([.all]))
  }

  @Test func `conditions on elements limit the fields in them, but not what other elements may have`() throws {
    let index = try index(["fields": ["a.b"]], multiFields: 1)
    func ranges(_ condition: JSONValue) throws -> String? {
      try plan(["selector": ["a": ["$elemMatch": condition]]], [index]).explanation["plan"]?["ranges"]?.description
    }
    #expect(try ranges(["b": 1]) == #"[{"a.b":{"$eq":1}},{"a.b":"arrays in arrays"}]"#)
    #expect(try ranges(["b": ["$exists": false]]) == nil)
    #expect(try ranges(["0": 1]) == nil)
  }

  @Test func `two conditions on one field are one range, unless two elements can satisfy them`() throws {
    let query: JSONValue = ["selector": ["a": ["$gt": 1, "$lt": 5]]]
    let single = try plan(query, [index(["fields": ["a"]])])
    #expect(single.explanation["plan"]?["ranges"] == [["a": ["$gt": 1, "$lt": 5]]])
    #expect(single.plan.isExact)
    let multiple = try plan(query, [index(["fields": ["a"]], multiFields: 1)])
    #expect(multiple.explanation["plan"]?["kind"] == "intersection")
  }

  @Test func `a condition on _id is a range of ids`() throws {
    func source(_ selector: JSONValue) throws -> FindPlan.Source { try plan(["selector": selector], []).plan.source }
    func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
    #expect(try source(["_id": "x"]) == .ids([KeyRange(lower: bytes("x"), upper: bytes("x\0"))]))
    #expect(
      try source(["_id": ["$gt": "x", "$lte": "y"]]) == .ids([KeyRange(lower: bytes("x\0"), upper: bytes("y\0"))]))
    #expect(try source(["_id": ["$beginsWith": "x"]]) == .ids([KeyRange(lower: bytes("x"), upper: bytes("y"))]))
    #expect(try source(["_id": ["$lt": "x"]]) == .ids([KeyRange(lower: [], upper: bytes("x"))]))
    #expect(try source(["_id": ["$gte": "x"]]) == .ids([KeyRange(lower: bytes("x"), upper: nil)]))
    #expect(try source(["_id": ["$gt": 3]]) == .ids([.all]))
    #expect(try source(["_id": 3]) == .ids([]))
    #expect(try source(["_id": ["$in": []]]) == .nothing)
  }

  // MARK: Choosing

  @Test func `the planner prefers an index with equal fields before the range`() throws {
    let indexes = try [
      index(["fields": ["a"], "name": "a"]), index(["fields": ["a", ["b": "desc"], "c"], "name": "abc"]),
    ]
    let plan = try plan(["selector": ["a": ["$in": [1, 2]], "b": ["$gt": 3], "c": 5]], indexes)
    #expect(
      plan.explanation["plan"]?["ranges"]?.description
        == #"[{"a":{"$eq":1},"b":{"$gt":3}},{"a":{"$eq":2},"b":{"$gt":3}}]"#)
    #expect(!plan.plan.isExact)
    let exact = try self.plan(["selector": ["a": 1, "b": 2, "c": ["$gte": 5]]], [indexes[1]])
    #expect(exact.plan.isExact)
  }

  @Test func `an index serves a sort in both directions, with ties in theirs`() throws {
    var indexes = try [index(["fields": ["a", "b", ["c": "desc"]]])]
    func reversed(_ sort: JSONValue, _ selector: JSONValue = ["a": 1]) throws -> Bool? {
      let plan = try plan(["selector": selector, "sort": sort, "limit": 1], indexes).plan
      return plan.isOrdered ? plan.isReversed : nil
    }
    // Ids of documents with equal fields descend like the last field.
    #expect(try reversed(["b", ["c": "desc"]]) == true)
    #expect(try reversed([["b": "desc"], "c"]) == false)
    #expect(try reversed(["a", "b", ["c": "desc"]]) == true)
    #expect(try reversed(["a", "b", ["c": "desc"], ["_id": "desc"]]) == true)
    #expect(try reversed(["b", ["c": "desc"], "_id"]) == nil)
    #expect(try reversed(["b", "c"]) == nil)
    #expect(try reversed(["b"]) == nil)
    #expect(try reversed(["a", "b", ["c": "desc"]], [:]) == true)
    #expect(try reversed(["c", "b"], ["a": 1, "c": 2]) == nil)
    indexes = try [index(["fields": ["a", "b", "c"]])]
    #expect(try reversed(["b"], ["a": 1, "c": 2]) == false)
    #expect(try reversed(["c", ["b": "desc"]], ["a": 1, "c": 2]) == true)
    indexes = try [index(["fields": ["a", "b", "c"]], multiFields: 4)]
    #expect(try reversed(["b"], ["a": 1, "c": 2]) == nil)
  }

  @Test func `a tag and a date are served by an index whose first field has arrays`() throws {
    let indexes = try [index(["fields": ["tags", "date"]], multiFields: 1)]
    let plan = try plan(["selector": ["tags": "swift"], "sort": [["date": "desc"]], "limit": 10], indexes).plan
    #expect(plan.isOrdered && plan.isReversed && plan.isExact)
    let both = try self.plan(["selector": ["tags": ["$in": ["swift", "c"]]], "sort": [["date": "desc"]]], indexes).plan
    #expect(!both.isOrdered && !both.isExact)
  }

  @Test func `a partial index is used where the query implies its selector`() throws {
    let indexes = try [index(["fields": ["a"], "where": ["b": ["$gt": 3], "c": ["$ne": 1]], "name": "partial"])]
    func kind(_ selector: JSONValue) throws -> JSONValue? {
      try plan(["selector": selector], indexes).explanation["plan"]?["kind"]
    }
    #expect(try kind(["a": 1, "b": 4, "c": ["$ne": 1]]) == "index")
    #expect(try kind(["a": 1, "b": ["$in": [4, 5]], "c": ["$ne": 1]]) == "index")
    #expect(try kind(["a": 1, "b": 3, "c": ["$ne": 1]]) == "scan")
    #expect(try kind(["a": 1, "b": 4]) == "scan")
    #expect(try kind(["a": 1, "b": 4, "c": ["$ne": 2]]) == "scan")
    // Swift takes these strings for equal.
    let texts = try [index(["fields": ["a"], "where": ["$or": [["b": ["$contains": "\u{E9}"]], ["c": 1]]]])]
    let selector: JSONValue = ["$or": [["b": ["$contains": "e\u{301}"]], ["c": 1]]]
    #expect(try plan(["selector": ["$and": [["a": 1], selector]]], texts).plan.source == .ids([.all]))
  }

  @Test func `an $or becomes a union, and two selective indexes become an intersection`() throws {
    let indexes = try [index(["fields": ["a"], "name": "a"]), index(["fields": ["b"], "name": "b"])]
    let union = try plan(["selector": ["$or": [["a": 1], ["b": 2, "c": 3], ["a": ["$gt": 5]]]]], indexes)
    #expect(
      union.explanation["plan"]?.description
        == #"{"kind":"union","parts":[{"kind":"index","index":"a","rangeCount":2,"#
        + #""ranges":[{"a":{"$eq":1}},{"a":{"$gt":5}}],"estimatedKeys":20},"#
        + #"{"kind":"index","index":"b","rangeCount":1,"ranges":[{"b":{"$eq":2}}],"estimatedKeys":10}],"#
        + #""estimatedKeys":30,"ordered":false,"reversed":false,"covered":false}"#)
    #expect(
      union.plan.source
        == .union([
          .index(0, try ranges(union.plan, 0)), .index(1, try ranges(union.plan, 1)),
        ]))
    let both = try plan(["selector": ["a": 1, "b": 2]], indexes)
    #expect(both.explanation["plan"]?["kind"] == "intersection")
  }

  private func ranges(_ plan: FindPlan, _ number: Int) throws -> [KeyRange] {
    guard case .union(let parts) = plan.source, case .index(number, let ranges) = parts[number] else { return [] }
    return ranges
  }

  @Test func `an index that is being built isn't used`() throws {
    let indexes = try [index(["fields": ["a"], "name": "a"], isComplete: false)]
    let plan = try plan(["selector": ["a": 1]], indexes)
    #expect(plan.plan.source == .ids([.all]))
    #expect(
      plan.explanation["candidates"]?.description == #"[{"index":"a","reason":"it is still being built"}]"#)
  }

  // MARK: Hints

  @Test func `an index hint is followed or refused with the reason`() throws {
    let indexes = try [
      index(["fields": ["a"], "name": "a"]), index(["fields": ["b"], "name": "b"]),
      index(["fields": ["c"], "name": "c"], isComplete: false),
      index(["fields": ["a"], "where": ["d": 1], "name": "d"]),
    ]
    let query: JSONValue = ["selector": ["a": 1, "b": ["$gt": 2]]]
    for name in ["a", "b"] {
      #expect(try plan(query, indexes, hint: name).explanation["plan"]?["index"] == .string(name))
    }
    for (name, reason) in [
      ("x", "there is no index x"), ("c", "the index c can't be used: it is still being built"),
      ("d", "the index d can't be used: the query doesn't imply the index's selector"),
    ] {
      let error = #expect(throws: SelectorError.self) { try plan(query, indexes, hint: name) }
      #expect(error?.code == .badIndex)
      #expect(error?.reason == reason)
    }
    let unused = #expect(throws: SelectorError.self) { try plan(["selector": ["b": 1]], indexes, hint: "a") }
    #expect(
      unused?.reason
        == "the index a can't be used: the selector doesn't limit its first field, a, and the sort isn't its order")
    #expect(try plan(["sort": ["a"]], indexes, hint: "a").plan.isOrdered)
  }

  @Test func `an index hint with too many ranges in its union becomes a scan`() throws {
    /// Counts no keys of single values, so that many of them seem to be better than one wide range.
    struct PointCounter: KeyCounter {
      mutating func count(_ range: KeyRange, ofIndex number: Int?) -> Int {
        range.upper == IndexRange.successor(of: range.lower) ? 0 : 1_000
      }

      mutating func groupCount(_ ranges: [KeyRange], ofIndex number: Int, fieldCount: Int) -> Int { 0 }
    }
    let alternatives = (0..<5).map { first in
      let values = (0..<1_000).map { JSONValue.integer(Int64(first * 1_000 + $0)) }
      return JSONValue.object(["a": ["$gt": 0, "$in": .array(values)]])
    }
    var planner = try Planner(
      DocumentQuery(Selector(["$or": .array(alternatives)])),
      indexes: [index(["fields": ["a"], "name": "a"], multiFields: 1)], entryCount: 10_000, hint: "a")
    var counter = PointCounter()
    #expect(planner.plan(&counter).plan.source == .ids([.all]))
  }

  // MARK: Groups

  /// Returns the plan of an aggregation that needs one document of each group.
  private func groupPlan(
    _ selector: JSONValue, by fields: [FieldPath], groupCount: Int = 20, _ indexes: [PlannedIndex]
  ) throws -> FindPlan {
    var counter = Counter(keyCount: 800, groupCount: groupCount)
    var planner = try Planner(
      DocumentQuery(Selector(selector)), indexes: indexes, entryCount: 1_001, ignoresOrder: true, grouping: fields)
    return planner.plan(&counter).plan
  }

  @Test func `groups are read from a covering index that has few of them`() throws {
    let json: JSONValue = ["fields": ["a", "b"], "name": "ab"]
    let indexes = [try index(json)]
    let all = FindPlan.Source.index(0, [.allKeys])
    #expect(
      try groupPlan([:], by: ["a"], indexes) == FindPlan(all, isOrdered: false, isExact: true, groupFieldCount: 1))
    #expect(try groupPlan([:], by: [], indexes).groupFieldCount == 0)
    for fields: [FieldPath] in [["b"], ["a", "b"], ["b", "a"]] {
      #expect(try groupPlan([:], by: fields, indexes).groupFieldCount == 2, "\(fields)")
    }
    #expect(try groupPlan(["a": ["$gt": 5]], by: ["b"], indexes).groupFieldCount == 2)
    // With many groups, reading all documents in their order is faster.
    #expect(try groupPlan([:], by: ["a"], groupCount: 500, indexes).source == .ids([.all]))
    #expect(try groupPlan(["a": ["$gt": 5]], by: ["a"], groupCount: 500, indexes).groupFieldCount == nil)
    // What the index doesn't say.
    for (selector, fields) in [([:], ["c"]), (["c": 1], ["a"]), (["a": ["$mod": [2, 1]]], ["a"])]
      as [(JSONValue, [FieldPath])]
    {
      #expect(try groupPlan(selector, by: fields, indexes).groupFieldCount == nil, "\(selector)")
    }
    for unusable in [
      try index(json, multiFields: 1), try index(json, overflowCount: 1), try index(json, isComplete: false),
      try index(["fields": ["a", "b"], "name": "ab", "where": ["c": 1]]),
    ] {
      #expect(try groupPlan([:], by: ["a"], [unusable]).groupFieldCount == nil, "\(unusable)")
    }
    // With one value of an array, a document has one key.
    #expect(try groupPlan(["a": 5], by: ["b"], [index(json, multiFields: 1)]).groupFieldCount == 2)
    #expect(try groupPlan(["a": 5], by: ["a"], [index(json, multiFields: 1)]).groupFieldCount == nil)
    #expect(
      try groupPlan(["c": 1], by: ["a"], [index(["fields": ["a"], "name": "a", "where": ["c": 1]])]).groupFieldCount
        == 1)
  }

  // MARK: Plans that end early

  /// Counts as many keys in every range of an index.
  private struct FixedCounter: KeyCounter {
    let keyCount: Int
    mutating func count(_ range: KeyRange, ofIndex number: Int?) -> Int { keyCount }
    mutating func groupCount(_ ranges: [KeyRange], ofIndex number: Int, fieldCount: Int) -> Int { keyCount }
  }

  private func choice(keyCount: Int, limit: Int?) throws -> PlanChoice {
    let indexes = [try index(["fields": ["a"], "name": "a"])]
    let query = try DocumentQuery(Selector(["a": ["$gte": 5]]), limit: limit)
    var planner = try Planner(query, indexes: indexes, entryCount: 100_000)
    var counter = FixedCounter(keyCount: keyCount)
    return planner.plan(&counter)
  }

  @Test func `a scan that should end early has a fallback if it doesn't`() throws {
    // 110 entries should have 11 matches. With matches at the end only, the index is much better.
    let page = try choice(keyCount: 10_000, limit: 10)
    #expect(page.plan.source == .ids([.all]))
    let fallback = try #require(page.fallback)
    guard case .index(0, _) = fallback.plan.source else { throw Failure.plan(fallback.plan) }
    #expect((10_000..<20_000).contains(fallback.examinedCount))
    let plan = fallback.explanation.json["plan"]
    #expect(plan?["kind"] == "index" && plan?["insteadOf"]?["kind"] == "scan")
    #expect(page.explanation.json["plan"]?["insteadOf"] == nil)
  }

  @Test func `a plan has a fallback only with a limit, and only a much better one`() throws {
    #expect(try choice(keyCount: 60_000, limit: 10).fallback == nil)
    let whole = try choice(keyCount: 10_000, limit: nil)
    #expect(whole.plan.source != .ids([.all]) && whole.fallback == nil)
  }

  private enum Failure: Error { case plan(FindPlan) }

  // MARK: Explanations

  @Test(arguments: [
    (#"[{"c":"desc"}]"#, false), (#"["c"]"#, true), (#"[{"a":"desc"},"b"]"#, true), (#"["a",{"b":"desc"}]"#, false),
    (#"[{"_id":"desc"}]"#, true), ("[]", false),
  ]) func `an explanation says that an index is read backward in the opposite of its declared order`(
    sort: String, isReversed: Bool
  ) throws {
    let indexes = try [
      index(["fields": [["c": "desc"]], "name": "c"]), index(["fields": ["a", ["b": "desc"]], "name": "ab"]),
    ]
    let plan = try plan(["sort": JSONValue(parsing: sort)], indexes).explanation["plan"]
    #expect(plan?["ordered"] == true && plan?["reversed"] == .bool(isReversed), "\(plan?.description ?? "")")
  }

  @Test func `an explanation says what was chosen, what lost and what would help`() throws {
    let indexes = try [
      index(["fields": ["name"], "name": "byName"]), index(["fields": ["age"], "name": "byAge"]),
      index(["fields": ["city"], "name": "byCity"]),
    ]
    let query: JSONValue = ["selector": ["name": "mike", "age": ["$in": [1, 2, 3]]], "limit": 1]
    #expect(
      try plan(query, indexes).explanation.description
        == #"{"selector":{"age":{"$in":[1,2,3]},"name":"mike"},"#
        + #""plan":{"kind":"index","index":"byName","rangeCount":1,"ranges":[{"name":{"$eq":"mike"}}],"#
        + #""estimatedKeys":10,"ordered":true,"reversed":false,"covered":false},"#
        + #""candidates":[{"index":"byAge","reason":"another plan takes less work","estimatedKeys":30},"#
        + #"{"index":"byCity","reason":"the selector doesn't limit its first field, city, and the sort isn't its order"}]}"#
    )
    let scan = try plan(["selector": ["a": 1, "b": ["$gt": 1]], "sort": [["c": "desc"]]], indexes).explanation
    #expect(scan["plan"]?["kind"] == "scan")
    #expect(scan["suggestion"] == ["fields": ["a", ["c": "desc"]]])
    #expect(try plan([:], indexes).explanation["suggestion"] == nil)
  }

  // MARK: Bounds

  @Test func `planning takes bounded work`() throws {
    let indexes = try (0..<64).map { number in
      try index(["fields": ["a", "b", .string("f\(number)")], "name": .string("\(number)")], multiFields: 1)
    }
    let many = JSONValue.array((0..<30_000).map { .integer(Int64($0)) })
    let alternatives = JSONValue.array((0..<900).map { ["a": .integer(Int64($0)), "b": ["$gt": 1]] })
    for selector: JSONValue in [
      ["a": ["$in": many]], ["a": ["$in": many], "b": ["$in": many]], ["$or": alternatives],
      ["a": ["$in": many], "$or": alternatives], ["$and": [["$or": alternatives], ["$or": alternatives]]],
    ] {
      var counter = Counter()
      var planner = try Planner(
        DocumentQuery(Selector(selector)), indexes: indexes, entryCount: 1_000_000_000, hint: nil)
      let plan = planner.plan(&counter).plan
      #expect(counter.rangeCount < 300_000)
      #expect(rangeCount(plan.source) <= 2 * 4_096)
    }
  }

  private func rangeCount(_ source: FindPlan.Source) -> Int {
    switch source {
    case .ids(let ranges), .index(_, let ranges): ranges.count
    case .union(let parts), .intersection(let parts): parts.reduce(0) { $0 + rangeCount($1) }
    case .nothing: 0
    }
  }
}
