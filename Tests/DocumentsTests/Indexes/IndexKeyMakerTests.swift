import DocumentTestSupport
import TestSupport
import Testing

@testable import Documents

@Suite struct IndexKeyMakerTests {
  /// Returns the keys of one document.
  private func keys(_ text: String, id: String = "id", revision: UInt64 = 7, _ indexes: DocumentIndex...) throws
    -> IndexKeys
  {
    var keys = IndexKeys()
    try IndexKeyMaker(indexes).makeKeys(
      of: Array(text.utf8).span, key: Array(id.utf8).span, revision: revision, into: &keys)
    return keys
  }

  private func all(_ keys: IndexKeys, of index: Int = 0) -> [[UInt8]] {
    (0..<keys.count(of: index)).map { keys.key($0, of: index) }
  }

  private func joined(_ values: JSONValue?...) -> [UInt8] {
    values.flatMap { $0.map(OrderKey.key) ?? OrderKey.missing }
  }

  @Test func `a document whose test takes too long has the overflow key, whatever other indexes there are`() throws {
    let conditions = (0..<2_000).map { #"{"a":{"$lt":-\#($0)}}"# }.joined(separator: ",")
    let hostile = try DocumentIndex(["b"], where: Selector(parsing: #"{"$or":[\#(conditions)]}"#))
    let text = #"{"a":[\#((0..<1_000).map(String.init).joined(separator: ","))],"b":1}"#
    let other = try DocumentIndex(["b"], where: Selector(parsing: #"{"a":1}"#))
    for indexes in [[hostile], [other, hostile, other], [hostile, hostile]] {
      var keys = IndexKeys()
      try IndexKeyMaker(indexes).makeKeys(
        of: Array(text.utf8).span, key: Array("id".utf8).span, revision: 7, into: &keys)
      for (number, index) in indexes.enumerated() {
        #expect(keys.isOverflow(of: number) == (index == hostile))
        #expect(keys.count(of: number) == 1)
      }
    }
    #expect(try keys(#"{"a":[1],"b":1}"#, hostile).count(of: 0) == 0)
  }

  // MARK: Random documents

  /// The keys of a document in an index, computed from its tree in the plainest way.
  private func expectedKeys(_ document: JSONValue, _ index: DocumentIndex) -> (keys: [[UInt8]], multiFields: UInt32) {
    var keys: [[UInt8]] = [[]]
    var multiFields: UInt32 = 0
    for (number, field) in IndexLayout(index).fields.enumerated() {
      var fieldKeys: Set<[UInt8]> = []
      for value in TreeOracle.values(document, field.path.names[...]) {
        fieldKeys.insert(OrderKey.key(of: value))
        guard let elements = value.array else { continue }
        multiFields |= 1 << UInt32(number)
        for element in elements { fieldKeys.insert(OrderKey.key(of: element)) }
      }
      if fieldKeys.isEmpty { fieldKeys = [OrderKey.missing] }
      for count in 1...field.path.names.count {
        let arrays = TreeOracle.values(document, field.path.names.prefix(count)).compactMap(\.array)
        if arrays.contains(where: { $0.contains { $0.array != nil } }) { fieldKeys.insert(OrderKey.nested) }
      }
      if fieldKeys.count > 1 { multiFields |= 1 << UInt32(number) }
      keys = keys.flatMap { start in fieldKeys.map { start + (field.isDescending ? $0.map(~) : $0) } }
    }
    return (keys.sorted { $0.lexicographicallyPrecedes($1) }, multiFields)
  }

  private func index(_ generator: inout QueryGenerator) throws -> DocumentIndex {
    var fields: [SortField] = []
    for _ in 0...generator.number(3) {
      guard let path = FieldPath(generator.path()), !fields.contains(where: { $0.path == path }) else { continue }
      fields.append(SortField(path, generator.isLucky(0.4) ? .descending : .ascending))
    }
    var selector: Selector?
    if generator.isLucky(0.3) { selector = try? Selector(generator.selector()) }
    return try DocumentIndex(fields.isEmpty ? ["_rev"] : fields, where: selector)
  }

  @Test func `keys are the combinations of the keys of values and elements`() throws {
    var random = SeededGenerator.announced()
    var generator = QueryGenerator(SeededGenerator(seed: random.next()))
    var (documentCount, multiCount, absentCount) = (0, 0, 0)
    for _ in 0..<(SeededGenerator.isThorough ? 2_000 : 60) {
      let indexes = try (0...generator.number(5)).map { _ in try index(&generator) }
      let maker = try IndexKeyMaker(indexes)
      let selectors = try indexes.map { try CompiledSelector($0.selector ?? .all) }
      var keys = IndexKeys()
      for id in generator.ids(15) {
        let text =
          generator.isLucky(0.3) ? RandomDocument(hasDuplicates: true, using: &random).text() : generator.text()
        let document = Document(text, id: id, revision: UInt64(generator.number(9)))
        maker.makeKeys(
          of: document.text.span, key: Array(id.utf8).span, revision: document.revision!, into: &keys)
        let tree = try document.value()
        for (number, index) in indexes.enumerated() {
          guard selectors[number].matches(document) else {
            #expect(keys.count(of: number) == 0, "\(index) \(text)")
            absentCount += 1
            continue
          }
          let expected = expectedKeys(tree, index)
          #expect(all(keys, of: number) == expected.keys, "\(index) \(text)")
          #expect(keys.multiFields(of: number) == expected.multiFields, "\(index) \(text)")
          #expect(!keys.isOverflow(of: number))
          documentCount += 1
          if expected.multiFields != 0 { multiCount += 1 }
        }
      }
    }
    #expect(documentCount > 1_000 && multiCount > 100 && absentCount > 10)
  }

  @Test func `entries of single values have the order of a sort, in either direction`() throws {
    var generator = QueryGenerator(.announced())
    var count = 0
    for _ in 0..<(SeededGenerator.isThorough ? 2_000 : 60) {
      let fields = try index(&generator).fields
      let index = try DocumentIndex(fields)
      let maker = try IndexKeyMaker([index])
      var keys = IndexKeys()
      var entries: [(key: [UInt8], document: Document)] = []
      for id in generator.ids(20) {
        let document = Document(generator.text(), id: id, revision: UInt64(generator.number(3)))
        maker.makeKeys(
          of: document.text.span, key: Array(id.utf8).span, revision: document.revision!, into: &keys)
        if keys.multiFields(of: 0) == 0 { entries.append((keys.key(0, of: 0), document)) }
      }
      entries.sort {
        ($0.key + Array($0.document.id!.utf8)).lexicographicallyPrecedes($1.key + Array($1.document.id!.utf8))
      }
      if IndexLayout(index).isReversed { entries.reverse() }
      let sorted = TreeOracle.sorted(try entries.map { try $0.document.value() }, fields)
      #expect(entries.map(\.document.id) == sorted.map { $0["_id"]?.string }, "\(index)")
      count += entries.count
    }
    #expect(count > 500)
  }

  // MARK: Values

  @Test func `a missing field has a key of its own`() throws {
    let keys = try keys(#"{"b": null}"#, DocumentIndex(["a", "b"]))
    #expect(all(keys) == [joined(nil, .null)])
    #expect(keys.multiFields(of: 0) == 0)
  }

  @Test func `an array has its own key and one for each of its elements`() throws {
    let keys = try keys(#"{"a": ["x", 1, "x", [2]]}"#, DocumentIndex(["a"]))
    #expect(all(keys) == [joined(1), joined("x"), joined([2]), joined(["x", 1, "x", [2]]), OrderKey.nested])
    #expect(keys.multiFields(of: 0) == 1)
  }

  @Test func `arrays in arrays on the way to a field have a mark`() throws {
    let text = #"{"a": [{"b": 1}, [{"b": 2}]], "c": {"d": [[]]}, "e": [{"b": [3]}]}"#
    let index = try DocumentIndex(["a.b"])
    #expect(all(try keys(text, index)) == [joined(1), OrderKey.nested])
    #expect(try keys(text, index).multiFields(of: 0) == 1)
    #expect(all(try keys(text, DocumentIndex(["c.d.x"]))) == [joined(nil), OrderKey.nested])
    #expect(all(try keys(text, DocumentIndex(["c"]))) == [joined(["d": [[]]])])
    #expect(all(try keys(text, DocumentIndex(["e.b"]))) == [joined(3), joined([3])])
  }

  @Test func `an empty array has one index key, but doesn't count as a single value`() throws {
    let keys = try keys(#"{"a": 1, "b": []}"#, DocumentIndex(["a", "b"]))
    #expect(all(keys) == [joined(1, [])])
    #expect(keys.multiFields(of: 0) == 2)
  }

  @Test func `several fields may be arrays`() throws {
    let keys = try keys(
      #"{"a": [{"b": 2}, {"b": 1}, {}], "c": [{"d": "y"}, {"d": "x"}]}"#,
      DocumentIndex(["a.b", .descending("c.d"), "e"]))
    let (x, y) = (joined("x").map(~), joined("y").map(~))
    #expect(all(keys) == [joined(1) + y, joined(1) + x, joined(2) + y, joined(2) + x].map { $0 + joined(nil) })
    #expect(keys.multiFields(of: 0) == 3)
  }

  @Test func `the last of several members with the same name is indexed`() throws {
    let text = #"{"a": [1, 2], "b": {"c": 1, "c": 2}, "a": 3, "d": {"x": 1, "x": 2}}"#
    #expect(all(try keys(text, DocumentIndex(["a", "b.c", "d"]))) == [joined(3, 2, ["x": 2])])
  }

  @Test func `id and revision can be fields, in place of members of the text`() throws {
    let text = #"{"_id": "other", "_rev": 1, "a": 2}"#
    let fields: [SortField] = ["_id", "_rev", "a"]
    for count in 1...3 {
      let expected = joined("\"\u{E9}\n", 99, 2)
      let keys = try keys(text, id: "\"\u{E9}\n", revision: 99, DocumentIndex(fields.prefix(count).map(\.self)))
      #expect(expected.starts(with: keys.key(0, of: 0)))
    }
    #expect(all(try keys(text, revision: 99, DocumentIndex(["_rev"]))) == [joined(99)])
    #expect(try keys(text, DocumentIndex(["a"], where: .field("_id", .equal("other")))).count(of: 0) == 0)
    #expect(try keys(text, DocumentIndex(["a"], where: .field("_rev", .equal(7)))).count(of: 0) == 1)
  }

  @Test func `only documents that match are in a partial index`() throws {
    let indexes = [
      try DocumentIndex(["a"], where: .field("b", .greater(1))), try DocumentIndex(["a"]),
      try DocumentIndex(["a"], where: .field("a", .exists()) && .field("b", .equal(1))),
    ]
    for (text, counts) in [(#"{"a": 1, "b": 1}"#, [0, 1, 1]), (#"{"b": [1, 2]}"#, [1, 1, 0]), ("{}", [0, 1, 0])] {
      let keys = try keys(text, indexes[0], indexes[1], indexes[2])
      #expect((0..<3).map { keys.count(of: $0) } == counts, "\(text)")
    }
  }

  @Test(arguments: ["", "1", "[]", "{", #"{"a": 1} x"#, #"{"a": tru}"#, "\0"])
  func `a value that isn't a JSON object has no keys`(_ text: String) throws {
    let keys = try keys(text, DocumentIndex(["a"]), DocumentIndex(["b"]))
    #expect(keys.count(of: 0) == 0 && keys.count(of: 1) == 0)
  }

  @Test func `keys are compared index by index`() throws {
    func keys(_ text: String) throws -> IndexKeys {
      try self.keys(
        text, DocumentIndex(["a", "b"]), DocumentIndex(["c"]), DocumentIndex(["a"], where: .field("c", .equal(1))))
    }
    func same(_ left: String, _ right: String) throws -> [Bool] {
      let (left, right) = (try keys(left), try keys(right))
      return (0..<3).map { left.isSame($0, as: right) }
    }
    #expect(try same(#"{"a": 1, "b": 2, "c": 1}"#, #"{"c": 1.0, "b": 2, "a": 1, "d": 3}"#) == [true, true, true])
    #expect(try same(#"{"a": 1, "c": 1}"#, #"{"a": 2, "c": 1}"#) == [false, true, false])
    #expect(try same(#"{"a": 1, "c": 1}"#, #"{"a": 1, "c": 2}"#) == [true, false, false])
    #expect(try same(#"{"a": [1]}"#, #"{"a": 1}"#) == [false, true, true])
    #expect(try same("1", "2") == [true, true, true])
  }

  // MARK: Limits

  /// An array of objects with the members `b` of some values.
  private func objects(_ values: some Sequence<Int>) -> String {
    "[\(values.map { #"{"b":\#($0)}"# }.joined(separator: ","))]"
  }

  private func isOverflow(_ text: String, _ fields: [SortField]) throws -> Bool {
    // The limits of one index don't matter to another.
    let keys = try keys(text, DocumentIndex(fields), DocumentIndex(["other"]))
    #expect(all(keys, of: 1) == [joined(nil)])
    guard keys.isOverflow(of: 0) else { return false }
    #expect(all(keys) == [IndexRange.overflowKey])
    #expect(keys.multiFields(of: 0) == 0)
    return true
  }

  @Test func `a document with more than 1,000 keys has the overflow key`() throws {
    #expect(try !isOverflow(#"{"a": \#(objects(0..<1_000))}"#, ["a.b"]))
    #expect(try isOverflow(#"{"a": \#(objects(0..<1_001))}"#, ["a.b"]))
    #expect(try !isOverflow(#"{"a": \#(objects(0..<40)), "c": \#(objects(0..<25))}"#, ["a.b", "c.b"]))
    #expect(try isOverflow(#"{"a": \#(objects(0..<40)), "c": \#(objects(0..<26))}"#, ["a.b", "c.b"]))
  }

  @Test func `equal values are one key, up to 4,096 of them`() throws {
    #expect(try !isOverflow(#"{"a": \#(objects(repeatElement(1, count: 4_096)))}"#, ["a.b"]))
    #expect(try isOverflow(#"{"a": \#(objects(repeatElement(1, count: 4_097)))}"#, ["a.b"]))
  }

  @Test func `a document with a key of more than 1,024 bytes has the overflow key`() throws {
    // A string has two bytes beside its text, and zero two.
    func text(_ count: Int) -> String { #"{"a": "\#(String(repeating: "x", count: count))", "c": 0}"# }
    #expect(try !isOverflow(text(1_022), ["a"]))
    #expect(try isOverflow(text(1_023), ["a"]))
    #expect(try !isOverflow(text(1_020), [.descending("a"), "c"]))
    #expect(try isOverflow(text(1_021), [.descending("a"), "c"]))
    #expect(try isOverflow(text(100_000), ["a"]))
    #expect(try isOverflow(#"{"a": [\#((0..<600).map { "\($0)" }.joined(separator: ","))]}"#, ["a"]))
  }

  @Test func `a document with more than 65,536 bytes of keys has the overflow key`() throws {
    func text(_ count: Int, length: Int = 1_019) -> String {
      let strings = (0..<count).map { #"{"b":"\#($0 + 100)\#(String(repeating: "x", count: length))"}"# }
      return #"{"a": [\#(strings.joined(separator: ","))], "c": [1, 2]}"#
    }
    #expect(try !isOverflow(text(64), ["a.b"]))
    #expect(try isOverflow(text(65), ["a.b"]))
    // The second field has three keys.
    #expect(try !isOverflow(text(21, length: 1_000), ["a.b", "c"]))
    #expect(try isOverflow(text(22, length: 1_000), ["a.b", "c"]))
  }

  @Test func `a large object or array with few bytes of key has the overflow key`() throws {
    func text(_ count: Int) -> String { #"{"a": [1\#(String(repeating: " ", count: count))]}"# }
    #expect(try !isOverflow(text(16_381), ["a"]))
    #expect(try isOverflow(text(16_382), ["a"]))
  }
}
