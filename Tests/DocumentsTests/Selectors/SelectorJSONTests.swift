import Documents
import Foundation
import TestSupport
import Testing

@Suite struct SelectorJSONTests {
  private let count = SeededGenerator.isThorough ? 20_000 : 1_000

  /// Checks that a selector's JSON, and its text, read back as an equal selector.
  private func expectRoundTrip(_ selector: Selector, _ source: @autoclosure () -> String = "") throws {
    let again = try Selector(selector.json)
    #expect(again == selector, "\(selector) reads back as \(again) \(source())")
    #expect(again.tree == selector.tree, "\(selector) \(source())")
    #expect(try Selector(parsing: selector.description).tree == selector.tree, "\(selector) \(source())")
  }

  @Test func `a random selector read from JSON reads back from its JSON`() throws {
    var generator = SelectorGenerator(.announced())
    for _ in 0..<count {
      let json = generator.json()
      try expectRoundTrip(Selector(json), "from \(json)")
    }
  }

  @Test func `a random selector built in Swift reads back from its JSON`() throws {
    var generator = SelectorGenerator(.announced())
    for _ in 0..<count { try expectRoundTrip(generator.selector()) }
  }

  @Test func `a selector near the limit of nesting reads back, or is refused as it is`() throws {
    var generator = SelectorGenerator(.announced())
    var accepted = 0
    for _ in 0..<count / 5 {
      let json = generator.json(depth: 28)
      guard let selector = try? Selector(json) else { continue }
      accepted += 1
      try expectRoundTrip(selector)
    }
    #expect(accepted > 20)
  }

  @Test func `a selector is encoded as its JSON`() throws {
    let selector: Selector = .field("name", .equal("mike")) && .field("age", .greater(40))
    let data = try JSONEncoder().encode(selector)
    #expect(String(decoding: data, as: UTF8.self).contains("$and"))
    #expect(try JSONDecoder().decode(Selector.self, from: data) == selector)
  }

  @Test func `random selectors are decoded as they were encoded`() throws {
    var generator = SelectorGenerator(.announced())
    for _ in 0..<count / 4 {
      let selector = try Selector(generator.json())
      let data = try JSONEncoder().encode(selector)
      #expect(try JSONDecoder().decode(Selector.self, from: data) == selector, "\(selector)")
    }
  }

  @Test func `decoding an invalid selector names the place and the reason`() throws {
    let error = #expect(throws: DecodingError.self) {
      try JSONDecoder().decode([Selector].self, from: Data(#"[{"age": {"$in": 3}}]"#.utf8))
    }
    guard case .dataCorrupted(let context)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(
      context.underlyingError as? SelectorError == SelectorError(.badOperand, at: "$.age.$in", "$in takes an array"))
    #expect(context.debugDescription == "$in takes an array (at $.age.$in)")
    #expect(context.codingPath.map(\.intValue) == [0])
  }

  @Test func `strings with other scalars make other selectors`() {
    #expect(Selector.field("a", .equal("\u{E9}")) != .field("a", .equal("e\u{301}")))
    #expect(Selector.field("a", .beginsWith("\u{E9}")) != .field("a", .beginsWith("e\u{301}")))
    #expect(Selector.field("a", .equal(1)) == .field("a", .equal(1.0)))
  }

  // MARK: The normal form keeps the meaning

  private func matches(_ selector: Selector, _ document: JSONValue) throws -> Bool {
    try CompiledSelector(selector).matches(document.encoded().span)
  }

  @Test func `combining random selectors means what Boolean logic says`() throws {
    var generator = SelectorGenerator(.announced())
    for _ in 0..<count / 4 {
      let (left, right) = (generator.selector(depth: 3), generator.selector(depth: 3))
      for document in [generator.document(), generator.document(), generator.document()] {
        let (isLeft, isRight) = (try matches(left, document), try matches(right, document))
        let comment: Comment = "\(left) and \(right) on \(document)"
        #expect(try matches(left && right, document) == (isLeft && isRight), comment)
        #expect(try matches(left || right, document) == (isLeft || isRight), comment)
        #expect(try matches(!left, document) == !isLeft, comment)
        #expect(try matches(.nor([left, right]), document) == !(isLeft || isRight), comment)
      }
    }
  }

  @Test func `combining random selectors in JSON means the same`() throws {
    var generator = SelectorGenerator(.announced())
    func matches(_ json: JSONValue, _ document: JSONValue) throws -> Bool {
      try self.matches(Selector(json), document)
    }
    for _ in 0..<count / 4 {
      let (left, right) = (generator.json(depth: 3), generator.json(depth: 3))
      guard left != [:], right != [:] else { continue }
      for document in [generator.document(), generator.document(), generator.document()] {
        let (isLeft, isRight) = (try matches(left, document), try matches(right, document))
        let comment: Comment = "\(left) and \(right) on \(document)"
        #expect(try matches(["$and": [left, right]], document) == (isLeft && isRight), comment)
        #expect(try matches(["$or": [left, right]], document) == (isLeft || isRight), comment)
        #expect(try matches(["$not": left], document) == !isLeft, comment)
        #expect(try matches(["$nor": [left, right]], document) == !(isLeft || isRight), comment)
      }
    }
  }
}
