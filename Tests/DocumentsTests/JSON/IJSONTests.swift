import TestSupport
import Testing

@testable import Documents

struct IJSONTests {
  private func isObject(_ text: String) -> Bool { isObject(Array(text.utf8)) }

  private func isObject(_ text: [UInt8]) -> Bool {
    var checker = IJSON()
    var budget = WorkBudget()
    return checker.isObject(text.span, &budget)
  }

  @Test(arguments: [
    "{}", " {\"a\":1} ", #"{"a":1,"b":{"a":2},"c":[{"a":1},{"a":1}]}"#, #"{"a":"\n","b":"\ud83d\ude00"}"#,
    #"{"aaaaaaaab":1,"aaaaaaaac":2,"aaaaaaaa":3}"#, #"{"":1}"#, #"{"a":"{\"a\":1,\"a\":2}"}"#,
  ])
  func `an object without duplicate names is I-JSON`(text: String) { #expect(isObject(text)) }

  @Test(arguments: [
    "", "[]", "1", "{", "{}}", #"{"a":1,"a":1}"#, #"{"b":{"a":1,"a":2}}"#, #"{"b":[[{"x":1,"x":2}]]}"#,
    #"{"a":01}"#, #"{"a":"\ud800"}"#, "{\"a\":\"\u{1}\"}", #"{"a":1,}"#,
    #"{"long name here":1,"b":2,"long name here":3}"#,
  ])
  func `any other text is not I-JSON`(text: String) { #expect(!isObject(text)) }

  @Test func `duplicates among many names are found`() {
    let names = (0..<500).map { "\"name \($0)\":\($0)" }
    #expect(isObject("{\(names.joined(separator: ","))}"))
    #expect(!isObject("{\((names + ["\"name 250\":1"]).joined(separator: ","))}"))
    #expect(!isObject("{\((["\"name 499\":1"] + names).joined(separator: ","))}"))
  }

  @Test func `what is I-JSON is valid, and has the values that a parser finds`() throws {
    var random = RandomJSON(SeededGenerator.announced())
    var count = 0
    for _ in 0..<(SeededGenerator.isThorough ? 100_000 : 3_000) {
      let text = random.tokens()
      if isObject(text) { #expect(throws: Never.self) { try JSON.validate(text.span) } }
      guard case .object = random.value() else { continue }
      let value = random.value()
      let bytes = JSONValue.object(["first": value, "second": 2]).encoded()
      guard isObject(bytes) else { continue }
      count += 1
      let text2 = bytes
      unsafe text2.withUnsafeBufferPointer { buffer in
        let text = unsafe TrustedText(JSONText(UnsafeRawBufferPointer(buffer)))
        // Each value ends where checks say that it ends.
        for start in buffer.indices where unsafe start > 0 && [0x3A, 0x5B, 0x2C].contains(buffer[start - 1]) {
          guard let end = try? text.text.endOfValue(at: start, room: JSONLimits.deepest) else { continue }
          #expect(text.endOfValue(at: start, room: JSONLimits.deepest) == end)
        }
      }
    }
    #expect(count > 50)
  }

  /// Brackets, quotes and backslashes at all places of the blocks in which text is read.
  @Test func `containers end where they end, wherever they are`() {
    for padding in 0..<140 {
      for inner in [
        #""\\""#, #""\"]}""#, "[{}]", #"{"a]":"}"}"#, #""\\\\\"""#, "\"\(String(repeating: "\\\\", count: 70))\"",
      ] {
        let text = Array("{\"a\":[\(String(repeating: " ", count: padding))\(inner)],\"b\":1}".utf8)
        unsafe text.withUnsafeBufferPointer { buffer in
          let trusted = unsafe TrustedText(JSONText(UnsafeRawBufferPointer(buffer)))
          #expect(trusted.endOfValue(at: 5, room: 9) == text.count - 7, "\(padding) \(inner)")
          #expect(trusted.endOfContainer(from: 1) == text.count)
          // Text that isn't what it is trusted to be is read to its end, and no further.
          for end in 1..<text.count {
            let part = unsafe TrustedText(
              JSONText(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<end])))
            #expect(part.endOfContainer(from: 1) <= end && part.endOfValue(at: 0, room: 9) <= end)
          }
        }
      }
    }
  }
}
