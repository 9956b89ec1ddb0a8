import Documents
import Testing

@Suite struct DocumentCollectionTests {
  private let collection = DocumentCollection()

  @Test func `a document replaces the one with its id and has a greater revision`() throws {
    let first = try collection.put(#"{"a": 1}"#, id: "x")
    let second = try collection.put(#"{"a": 2}"#, id: "x")
    #expect(second > first)
    #expect(try collection.find([:]).map { try $0.value()["a"] } == [2])
  }

  @Test func `only objects are documents`() throws {
    for text in ["[1]", "1", "", "{", "{} {}"] {
      #expect(throws: JSONError.self, "\(text)") { try collection.put(text, id: "x") }
    }
    #expect(throws: JSONError.self) { try collection.put(.integer(1), id: "x") }
    #expect(try collection.find([:]).isEmpty)
  }

  @Test func `the id and the revision take the place of members of the text`() throws {
    let revision = try collection.put(#"{"_id": "other", "_rev": 99}"#, id: "x")
    #expect(try collection.find(["_id": "other"]).isEmpty)
    let document = try #require(try collection.find(["_id": "x"]).first)
    #expect(try document.value() == ["_id": "x", "_rev": .integer(Int64(revision))])
  }

  @Test func `ids that look the same are different`() throws {
    try collection.put([:], id: "\u{E9}")
    try collection.put([:], id: "e\u{301}")
    #expect(try collection.find(.all).count == 2)
  }

  @Test func `a deleted document isn't found`() throws {
    try collection.put([:], id: "x")
    #expect(collection.delete(id: "x"))
    #expect(!collection.delete(id: "x"))
    #expect(try collection.find(.all).isEmpty)
  }

  @Test func `a query built in Swift pages with bookmarks`() throws {
    for number in 0..<5 { try collection.put(["n": .integer(Int64(number))], id: "\(number)") }
    var query = DocumentQuery(.field("n", .greater(0)), sort: [.descending("n")], limit: 3)
    let first = try collection.find(query)
    #expect(first.documents.map(\.id) == ["4", "3", "2"])
    query.bookmark = first.bookmark
    #expect(try collection.find(query).documents.map(\.id) == ["1"])
  }

  @Test func `an index never changes a result`() throws {
    for number in 0..<9 { try collection.put(["a": .integer(Int64(number % 3))], id: "\(number)") }
    let before = try collection.find(["a": ["$gte": 1]]).map(\.id)
    try collection.ensureIndexed(["b"])
    try collection.ensureIndexed(["a"])
    #expect(before.count == 6)
    #expect(try collection.find(["a": ["$gte": 1]]).map(\.id) == before)
  }

  @Test func `an index without a name has one that depends on its fields`() throws {
    let definitions = [["a"], ["a", "b"], ["b", "a"], ["a,b"], ["a.b"], [#"a\.b"#], [#"a\,b"#, "c"]]
    let names = try definitions.map { try collection.ensureIndexed($0) }
    #expect(names[1] == "a,b")
    #expect(Set(names).count == definitions.count)
    #expect(try DocumentCollection().ensureIndexed(["a", "b"]) == names[1])
    #expect(collection.listIndexes().map(\.name) == names.sorted())
  }

  @Test(
    arguments: [
      ([], nil, DocumentIndexError.Code.noFields), (["a..b"], nil, .badField), (["a", "a"], nil, .badField),
      (["a"], "", .badName),
    ] as [([String], String?, DocumentIndexError.Code)])
  func `a malformed index is an error`(_ fields: [String], _ name: String?, _ code: DocumentIndexError.Code) {
    let error = #expect(throws: DocumentIndexError.self) { try collection.ensureIndexed(fields, withName: name) }
    #expect(error?.code == code)
    #expect(collection.listIndexes().isEmpty)
  }
}
