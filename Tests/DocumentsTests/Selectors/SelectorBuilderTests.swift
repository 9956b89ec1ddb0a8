import Documents
import Testing

@Suite struct SelectorBuilderTests {
  @Test(
    arguments: [
      (.all, "{}"),
      (.field("age", .equal(3)), #"{"age":3}"#),
      (.field("pet.species", .equal("cat")), #"{"pet.species":"cat"}"#),
      (.field("name", .equal("MIKE", [.ignoringCase])), #"{"name":{"$eq":"MIKE","$options":"c"}}"#),
      (.field("pet", .notEqual("cat")), #"{"pet":{"$ne":"cat"}}"#),
      (.field("age", .less(3)), #"{"age":{"$lt":3}}"#),
      (.field("age", .lessOrEqual(3)), #"{"age":{"$lte":3}}"#),
      (.field("age", .greater(3)), #"{"age":{"$gt":3}}"#),
      (.field("age", .greaterOrEqual(3)), #"{"age":{"$gte":3}}"#),
      (.field("name", .in(["mike", "fred"])), #"{"name":{"$in":["mike","fred"]}}"#),
      (.field("name", .notIn(["mike"], [.ignoringDiacritics])), #"{"name":{"$nin":["mike"],"$options":"d"}}"#),
      (.field("age", .exists()), #"{"age":{"$exists":true}}"#),
      (.field("age", .exists(false)), #"{"age":{"$exists":false}}"#),
      (.field("age", .type(.number)), #"{"age":{"$type":"number"}}"#),
      (.field("tags", .size(2)), #"{"tags":{"$size":2}}"#),
      (.field("age", .remainder(dividingBy: 2, is: 1)), #"{"age":{"$mod":[2,1]}}"#),
      (.field("name", .beginsWith("mi", [.ignoringCase])), #"{"name":{"$beginsWith":"mi","$options":"c"}}"#),
      (.field("name", .endsWith("ke")), #"{"name":{"$endsWith":"ke"}}"#),
      (
        .field("name", .contains("ik", [.ignoringCase, .ignoringDiacritics])),
        #"{"name":{"$contains":"ik","$options":"cd"}}"#
      ),
      (.field("name", .like("m*k?")), #"{"name":{"$like":"m*k?"}}"#),
      (.field("tags", .all(["a", "b"])), #"{"tags":{"$all":["a","b"]}}"#),
      (.field("pets", .elemMatch(.field("age", .equal(3)))), #"{"pets":{"$elemMatch":{"age":3}}}"#),
      (.field("scores", .elemMatch(.greater(80) && .less(90))), #"{"scores":{"$elemMatch":{"$gt":80,"$lt":90}}}"#),
      (.field("scores", .elemMatch(.not(.greater(80)))), #"{"scores":{"$elemMatch":{"$not":{"$gt":80}}}}"#),
      (.field("scores", .allMatch(.greater(80))), #"{"scores":{"$allMatch":{"$gt":80}}}"#),
      (.field("pets", .allMatch(.field("age", .less(3)))), #"{"pets":{"$allMatch":{"age":{"$lt":3}}}}"#),
      (.field("owner", .keyMapMatch(.beginsWith("a"))), #"{"owner":{"$keyMapMatch":{"$beginsWith":"a"}}}"#),
      (.field("age", .greater(3) && .less(9)), #"{"age":{"$gt":3,"$lt":9}}"#),
      (.field("age", .less(3) || .greater(9)), #"{"$or":[{"age":{"$lt":3}},{"age":{"$gt":9}}]}"#),
      (.field("age", .not(.greater(3) && .less(9))), #"{"age":{"$not":{"$gt":3,"$lt":9}}}"#),
      (.field("pet", .not(.equal("cat"))), #"{"pet":{"$ne":"cat"}}"#),
      (.field("tags", .not(.size(2))), #"{"$not":{"tags":{"$size":2}}}"#),
      (!.field("pet", .equal("cat")), #"{"$not":{"pet":"cat"}}"#),
      (!(!.field("pet", .equal("cat"))), #"{"pet":"cat"}"#),
      (.field("age", .greater(40)) && .field("pet", .equal("cat")), #"{"age":{"$gt":40},"pet":"cat"}"#),
      (
        .field("a", .equal(1)) || .field("b", .equal(2)) || .field("c", .equal(3)),
        #"{"$or":[{"a":1},{"b":2},{"c":3}]}"#
      ),
      (.and([.field("b", .equal(1)), .field("a", .equal(2))]), #"{"$and":[{"b":1},{"a":2}]}"#),
      (.nor([.field("a", .equal(1)), .field("b", .equal(2))]), #"{"$nor":[{"a":1},{"b":2}]}"#),
      (.text("old pier") && .field("age", .greater(40)), #"{"$text":"old pier","age":{"$gt":40}}"#),
      (.compare(.count("pets"), .greater, 2), #"{"$expr":{"$gt":[{"$count":"pets"},2]}}"#),
      (
        .compare(.field("price") * .field("count") - 1.5, .notEqual, .literal(["a"])),
        #"{"$expr":{"$ne":[{"$subtract":[{"$multiply":[{"$field":"price"},{"$field":"count"}]},1.5]},"#
          + #"{"$literal":["a"]}]}}"#
      ),
      (
        .compare(.count("pets", where: .field("age", .less(3))), .lessOrEqual, .max("limits") / .sum("a")),
        #"{"$expr":{"$lte":[{"$count":{"$field":"pets","$where":{"age":{"$lt":3}}}},"#
          + #"{"$divide":[{"$max":"limits"},{"$sum":"a"}]}]}}"#
      ),
      (
        .compare(.average("a") + .min("b"), .equal, "x"),
        #"{"$expr":{"$eq":[{"$add":[{"$avg":"a"},{"$min":"b"}]},"x"]}}"#
      ),
    ] as [(Selector, String)])
  func `a selector built in Swift is the one that its JSON is`(_ selector: Selector, _ json: String) throws {
    #expect(selector.description == json)
    #expect(try Selector(parsing: json) == selector)
  }

  @Test(
    arguments: [
      (.and([]), .all), (.or([]), !.all), (.nor([]), .all), (.and([.all, .all]), .all),
      (.or([.all, .field("a", .equal(1))]), .all), (.all && .field("a", .equal(1)), .field("a", .equal(1))),
      (!(!.all), .all), (.field("a", .elemMatch(.all)), .field("a", .elemMatch(.exists()))),
      (.compare(.count("a", where: .all), .equal, 1), .compare(.count("a"), .equal, 1)),
    ] as [(Selector, Selector)])
  func `selectors of nothing and of everything are simplified`(_ selector: Selector, _ simple: Selector) throws {
    let document = JSONValue(dictionaryLiteral: ("a", [1]))
    #expect(try matches(selector, document) == matches(simple, document))
    #expect(try Selector(selector.json) == selector)
  }

  private func matches(_ selector: Selector, _ document: JSONValue) throws -> Bool {
    try CompiledSelector(selector).matches(document.encoded().span)
  }

  @Test func `.all matches every document, and its complement matches none`() throws {
    for document: JSONValue in [[:], ["a": 1], ["_id": "x"]] {
      #expect(try matches(.all, document))
      #expect(try !matches(!.all, document))
    }
  }

  @Test func `the two kinds of negation differ over arrays`() throws {
    let owner: JSONValue = ["pet": ["cat", "dog"]]
    #expect(try matches(.field("pet", .notEqual("cat")), owner))
    #expect(try matches(.field("pet", .not(.equal("cat"))), owner))
    #expect(try !matches(!.field("pet", .equal("cat")), owner))
    #expect(try !matches(.field("pet", .notIn(["cat"])), owner))
    for selector: Selector in [
      .field("pet", .notEqual("cat")), !.field("pet", .equal("cat")), .field("pet", .notIn(["cat"])),
    ] {
      #expect(try matches(selector, ["pet": "dog"]))
      #expect(try matches(selector, [:]))
      #expect(try !matches(selector, ["pet": ["cat"]]))
    }
  }

  @Test func `conditions on one field needn't hold for the same element`() throws {
    let document: JSONValue = ["scores": [0, 4]]
    #expect(try matches(.field("scores", .greater(1) && .less(3)), document))
    #expect(try !matches(.field("scores", .elemMatch(.greater(1) && .less(3))), document))
  }

  @Test func `a regular expression is checked when it is given`() throws {
    #expect(try Selector.field("name", .regex("^mi")).description == #"{"name":{"$regex":"^mi"}}"#)
    #expect(throws: RegularExpressionError.self) { try Selector.field("name", .regex("a(")) }
  }

  @Test func `an impossible operand of a selector built in Swift traps`() async {
    await #expect(processExitsWith: .failure) { _ = Selector.Condition.size(-1) }
    await #expect(processExitsWith: .failure) { _ = Selector.Condition.remainder(dividingBy: 0, is: 0) }
  }
}
