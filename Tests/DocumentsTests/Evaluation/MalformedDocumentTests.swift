import DocumentTestSupport
import Documents
import TestSupport
import Testing

@Suite struct MalformedDocumentTests {
  private let selectors = [
    #"{}"#, #"{"a": {"$exists": false}}"#, #"{"a.b": {"$ne": 1}}"#, #"{"$nor": [{"0.a": {"$size": 1}}]}"#,
    #"{"$expr": {"$gte": [{"$count": "a.b"}, 0]}}"#, #"{"a": {"$not": {"$elemMatch": {"b": "x"}}}}"#,
  ]

  private func queries() throws -> [DocumentQuery] {
    try selectors.map { try DocumentQuery(Selector(parsing: $0), sort: [.descending("a.b")], fields: ["a.0", "b"]) }
  }

  private func finds(_ query: DocumentQuery, in text: [UInt8]) throws -> Bool {
    // A key of its own makes metadata, which is another way through the text.
    let found = try [Document(text)].find(query).documents
    #expect(try [Document(text, id: "k")].find(query).documents.count == found.count)
    for document in found { _ = try document.value() }
    return !found.isEmpty
  }

  @Test func `queries don't find truncated documents`() throws {
    var random = SeededGenerator.announced()
    let queries = try queries()
    for _ in 0..<(SeededGenerator.isThorough ? 1_000 : 25) {
      let text = Array(RandomDocument(hasDuplicates: false, using: &random).text().utf8)
      for count in 0..<text.count {
        for query in queries where try finds(query, in: Array(text[..<count])) {
          Issue.record("\(query) finds \(String(decoding: text[..<count], as: UTF8.self))")
        }
      }
      for query in queries { #expect(try !finds(query, in: text + [UInt8(ascii: "}")])) }
      #expect(try finds(queries[0], in: text))
    }
  }

  @Test func `a document with a wrong byte is found only if it is still JSON`() throws {
    var random = SeededGenerator.announced()
    let queries = try queries()
    for _ in 0..<(SeededGenerator.isThorough ? 1_000 : 30) {
      let text = Array(RandomDocument(hasDuplicates: true, using: &random).text().utf8)
      for _ in 0..<60 {
        var text = text
        text[Int.random(in: text.indices, using: &random)] = UInt8.random(in: .min ... .max, using: &random)
        let value = try? JSONValue(parsing: text.span)
        let isObject = if case .object? = value { true } else { false }
        for (index, query) in queries.enumerated() {
          let isFound = try finds(query, in: text)
          #expect(!isFound || isObject, "\(query) finds \(String(decoding: text, as: UTF8.self))")
          if index == 0 { #expect(isFound == isObject, "\(String(decoding: text, as: UTF8.self))") }
        }
      }
    }
  }

  @Test func `queries don't find documents that are nested too deeply`() throws {
    for query in try queries() {
      for (start, end) in [("[", "]"), (#"{"a":"#, "}"), (#"{"b":"#, "}"), (#"[{"a":"#, "}]")] {
        let nested = String(repeating: start, count: 600) + "1" + String(repeating: end, count: 600)
        for name in ["a", "b", "0"] {
          #expect(try !finds(query, in: Array(#"{"\#(name)":\#(nested)}"#.utf8)), "\(query) \(start)")
        }
      }
    }
    let nested = String(repeating: "[", count: 511) + String(repeating: "]", count: 511)
    #expect(try finds(DocumentQuery(), in: Array(#"{"a":\#(nested)}"#.utf8)))
    #expect(try !finds(DocumentQuery(), in: Array(#"{"a":[\#(nested)]}"#.utf8)))
  }

  @Test(arguments: ["", " ", "1", "null", "[]", #"[{"a":1}]"#, "{}{}", "{} x", "\u{FEFF}{}", #"{"a":1,}"#, "{a:1}"])
  func `queries find only objects`(text: String) throws {
    for query in try queries() { #expect(try !finds(query, in: Array(text.utf8)), "\(query)") }
  }
}
