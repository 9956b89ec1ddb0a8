import Documents
import TestSupport
import Testing

@Suite struct UpdateLimitTests {
  private func objects(_ depth: Int) -> String {
    String(repeating: #"{"a":"#, count: depth - 1) + "{}" + String(repeating: "}", count: depth - 1)
  }

  @Test func `a result has at most the allowed bytes`() throws {
    let (document, update) = (#"{"a":1}"#, #"{"b":22}"#)
    #expect(try updated(document, update, limits: JSONLimits(maxByteCount: 14)) == #"{"a":1,"b":22}"#)
    #expect(
      throws: DocumentUpdateError(.resultTooLarge, at: "$", "the document would have 14 bytes, and 13 are allowed")
    ) { try updated(document, update, limits: JSONLimits(maxByteCount: 13)) }
    // A document that is too large can be made small enough.
    #expect(try updated(document, #"{"a":null}"#, limits: JSONLimits(maxByteCount: 2)) == "{}")
  }

  @Test func `a result has at most the allowed depth`() throws {
    let updates = [
      #"{"a":{"b":[]}}"#, #"{"$set":{"a.b":[]}}"#, #"{"$set":{"a.b.c":1}}"#, #"{"$push":{"a.b":1}}"#,
      #"{"$push":{"a":[]}}"#, #"{"$inc":{"a.b.c":1}}"#, #"{"a":{"b":{"c":null}}}"#, #"{"$set":{"a":[{}]}}"#,
    ]
    for update in updates {
      let result = try updated("{}", update, limits: JSONLimits(maxDepth: 3))
      #expect(try JSONValue(parsing: result, limits: JSONLimits(maxDepth: 3)) == JSONValue(parsing: result))
      let error = #expect(throws: DocumentUpdateError.self) {
        try updated("{}", update, limits: JSONLimits(maxDepth: 2))
      }
      #expect(error?.code == .resultTooDeep)
      #expect(error?.reason == "the document would be nested at least 3 levels deep, and 2 are allowed")
    }
    #expect(
      try updated(#"{"a":{"b":1}}"#, #"{"$unset":["a.b.c.d.e"]}"#, limits: JSONLimits(maxDepth: 2)) == #"{"a":{"b":1}}"#
    )
    let error = #expect(throws: DocumentUpdateError.self) {
      try updated(#"{"a":{"b":[]}}"#, "{}", limits: JSONLimits(maxDepth: 2))
    }
    #expect(error?.code == .notADocument)
    #expect(throws: DocumentUpdateError.self) { try updated("{}", "{}", limits: JSONLimits(maxDepth: 0)) }
  }

  @Test func `documents and patches are nested up to 512 levels`() throws {
    let deep = objects(512)
    #expect(try updated("{}", deep) == deep)
    #expect(try updated(deep, deep) == deep)
    #expect(try updated(deep, #"{"a":null}"#) == "{}")
    #expect(try DocumentUpdate(parsing: deep).description == deep)
    #expect(throws: DocumentUpdateError.self) { try DocumentUpdate(parsing: objects(513)) }
    #expect(throws: DocumentUpdateError.self) { try updated(objects(513), #"{"a":null}"#) }
    var patch: JSONValue = [:]
    for _ in 0..<512 { patch = ["a": patch] }
    let error = #expect(throws: DocumentUpdateError.self) { try DocumentUpdate(patch) }
    #expect(error?.code == .tooDeep)

    let path = Array(repeating: "a", count: 32).joined(separator: ".")
    let update = try DocumentUpdate(changes: [.set(path, to: nested(480))])
    let result = try update.apply(to: Array("{}".utf8).span)
    #expect(throws: Never.self) { try JSON.validate(result.span) }
    #expect(throws: JSONError.self) { try JSON.validate(result.span, limits: JSONLimits(maxDepth: 511)) }
    #expect(throws: DocumentUpdateError.self) { try DocumentUpdate(changes: [.set(path, to: nested(481))]) }
    for change in [DocumentUpdate.Change.push(nested(510), to: "a"), .push(each: [nested(508), 1], to: "a")] {
      let update = try DocumentUpdate(changes: [change])
      #expect(try DocumentUpdate(parsing: update.description) == update)
    }
  }

  @Test func `10,000 changes of 20,000 members are made`() throws {
    let document = "{" + (0..<20_000).map { #""m\#($0)":\#($0)"# }.joined(separator: ",") + "}"
    let changes = (0..<10_000).map { DocumentUpdate.Change.increment("m\($0 * 2)", by: 1_000_000) }
    let result = try DocumentUpdate(changes: changes).apply(to: Array(document.utf8).span)
    let expected =
      "{" + (0..<20_000).map { #""m\#($0)":\#($0 % 2 == 0 ? $0 + 1_000_000 : $0)"# }.joined(separator: ",") + "}"
    #expect(String(decoding: result, as: UTF8.self) == expected)
    let array = #"{"a":["# + (0..<20_000).map(String.init).joined(separator: ",") + "]}"
    let appends = (0..<5_000).flatMap { [DocumentUpdate.Change.set("a.\(20_000 + $0)", to: 0), .unset("a.\($0)")] }
    let longer = try DocumentUpdate(changes: appends).apply(to: Array(array.utf8).span)
    let elements = (0..<25_000).map { $0 < 5_000 ? "null" : $0 < 20_000 ? String($0) : "0" }
    #expect(String(decoding: longer, as: UTF8.self) == #"{"a":["# + elements.joined(separator: ",") + "]}")
  }

  /// Each of the members could get a megabyte of new text, and each of the arrays be gone through index by index.
  @Test func `equal names don't multiply the work`() throws {
    let text = String(repeating: "x", count: 1 << 19)
    for value in ["{}", "[]", "[0,{}]", #"{"b":{}}"#, "0"] {
      let document = "{" + Array(repeating: #""a":\#(value)"#, count: 10_000).joined(separator: ",") + "}"
      #expect(try updated(document, #"{"a":{"b":{"c":"\#(text)"}}}"#).utf8.count < 1 << 20)
      let indexes = (0..<9_000).map { DocumentUpdate.Change.unset("a.\($0)") }
      let result = try DocumentUpdate(changes: indexes).apply(to: Array(document.utf8).span)
      #expect(result.count < 40)
    }
  }

  @Test func `truncated documents and updates are errors`() throws {
    let document = Array(
      #" {"a": {"b" : [1, -2.5e3, "\u00e9\ud83d\ude00é", {"c":null}]}, "a":{"b":[true]},"d":false}"#.utf8)
    let texts = [
      #"{"a":{"b":[1,{"x":"\u0041"}],"e":null},"d":-1.5e2}"#,
      #"{"$set":{"a.b.1":"é"},"$unset":["d"],"$inc":{"f.g":2},"$push":{"h":{"$each":[1,2]}}}"#,
    ]
    for text in texts {
      let update = try DocumentUpdate(parsing: text)
      #expect(throws: Never.self) { try update.apply(to: document.span) }
      for count in document.indices {
        let error = #expect(throws: DocumentUpdateError.self) {
          try update.apply(to: document.span.extracting(first: count))
        }
        #expect(error?.code == .notADocument)
      }
      let bytes = Array(text.utf8)
      for count in bytes.indices {
        let error = #expect(throws: DocumentUpdateError.self) {
          try DocumentUpdate(parsing: bytes.span.extracting(first: count))
        }
        #expect(error?.code == .notJSON)
      }
    }
  }

  @Test func `damaged documents and updates give a document or an error`() {
    var random = SeededGenerator.announced()
    let bytes = Array("{}[]\",:.\\$0189eEtfnu_ \n".utf8) + [0, 0x80, 0xC3, 0xFF]
    let document = Array(#"{"a":{"b":[1,-2.5e3,"\u00e9",{"c":null}]},"a":{"b":[true]},"d":false}"#.utf8)
    let texts = [
      #"{"a":{"b":[1,{"x":"\u0041"}],"e":null},"d":-1.5e2}"#,
      #"{"$set":{"a.b.0":"é"},"$unset":["d","a.x.y"],"$inc":{"f.g":2},"$push":{"h":{"$each":[1,2]}}}"#,
    ]
    func damaged(_ text: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
      var text = text
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        let position = Int.random(in: text.indices, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: text[position] = bytes.randomElement(using: &random)!
        case 1: text.insert(bytes.randomElement(using: &random)!, at: position)
        default: text.remove(at: position)
        }
      }
      return text
    }
    var (results, errors) = (0, 0)
    for _ in 0..<(SeededGenerator.isThorough ? 1_000_000 : 5_000) {
      let update = damaged(Array(texts.randomElement(using: &random)!.utf8), &random)
      let source = damaged(document, &random)
      do throws(DocumentUpdateError) {
        let result = try DocumentUpdate(parsing: update.span).apply(to: source.span)
        let isObject = JSON.isObject(result.span)
        #expect(isObject)
        results += 1
      } catch {
        errors += 1
      }
    }
    #expect(results > 0 && errors > 0)
  }
}
