import Documents
import Foundation
import TestSupport
import Testing

@Suite struct SelectorCaseTests {
  /// A case of `Protocol/vectors/documents/selectors.json`: a query, and what it finds in one of the sets of documents.
  private struct Case {
    let name: String
    let query: JSONValue
    let documents: [JSONValue]
    let json: JSONValue
  }

  /// The cases, without those that need a text index.
  private static func cases() throws -> [Case] {
    let file = ProjectFiles.url("Protocol/vectors/documents/selectors.json")
    let json = try JSONValue(parsing: Array(try Data(contentsOf: file)).span)
    return try elements(json["cases"]).filter { $0["requires"] == nil }.map { test in
      var query = JSONObject()
      for name in ["selector", "sort", "skip", "limit", "fields"] { query[name] = test[name] }
      let documents = try elements(json["sets"]?[try #require(test["set"]?.string)])
      return Case(name: try #require(test["name"]?.string), query: .object(query), documents: documents, json: test)
    }
  }

  private static func elements(_ value: JSONValue?) throws -> [JSONValue] {
    guard case .array(let elements) = try #require(value) else {
      Issue.record("\(String(describing: value)) is not an array")
      return []
    }
    return elements
  }

  private func check(_ test: Case, _ documents: [Document]) throws {
    let result: [Document]
    do throws(SelectorError) {
      result = try documents.find(DocumentQuery(test.query)).documents
    } catch {
      #expect(test.json["error"] == true, "\(test.name): \(error)")
      return
    }
    #expect(test.json["error"] == nil, "\(test.name): \(test.query) is no error")
    guard test.json["error"] == nil else { return }
    var ids = try result.map { try $0.id ?? #require($0.value()["_id"]?.string) }
    var expected = try Self.elements(test.json["expect"]).compactMap(\.string)
    if test.json["ordered"] != true {
      ids.sort()
      expected.sort()
    }
    #expect(ids == expected, "\(test.name): \(test.query)")
    guard let projections = test.json["expect_docs"] else { return }
    #expect(JSONValue.array(try result.map { try $0.value() }) == projections, "\(test.name): \(test.query)")
  }

  @Test func `every selector case finds the expected documents`() throws {
    let cases = try Self.cases()
    #expect(cases.count == 309)
    for test in cases {
      // Without its key, a projection doesn't tell which document it is of.
      let isWhole = test.json["fields"] == nil
      let documents = test.documents.map { Document($0.encoded(), id: isWhole ? nil : $0["_id"]?.string) }
      try check(test, documents)
    }
  }

  @Test func `every case finds the same documents by the keys of entries`() throws {
    for test in try Self.cases() {
      let documents = test.documents.map { document -> Document in
        guard case .object(var members) = document else { fatalError("\(document) is not an object") }
        members["_id"] = nil
        return Document(JSONValue.object(members).encoded(), id: document["_id"]?.string)
      }
      try check(test, documents)
    }
  }
}
