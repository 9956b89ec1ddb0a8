import Glibc

/// A JSON value in text that has been passed, by its place in memory.
///
/// It never leaves the scope in which the text is borrowed: values are internal to this module, and `FieldValues` hands
/// them out only inside of a closure.
struct SourceValue {
  /// The text of the value alone.
  let text: JSONText

  /// - Precondition: The range is one whole value that has been passed.
  @inline(__always)
  init(_ range: Range<Int>, of text: JSONText) {
    self.text = unsafe JSONText(UnsafeRawBufferPointer(text.bytes(range)))
  }

  /// Moves a position from the start of a value to its end.
  /// - Precondition: The value has been passed before.
  init(passing position: inout Int, of text: JSONText) {
    let start = position
    do throws(JSONText.Failure) {
      position = try text.endOfValue(at: start, room: JSONLimits.deepest)
    } catch { preconditionFailure("the value has been passed before") }
    self.init(start..<position, of: text)
  }

  /// - Precondition: The bytes are one whole value that has been passed.
  @unsafe @inline(__always)
  init(_ bytes: UnsafeBufferPointer<UInt8>) { text = unsafe JSONText(UnsafeRawBufferPointer(bytes)) }

  /// The text of the value.
  @unsafe @inline(__always)
  var bytes: UnsafeBufferPointer<UInt8> { unsafe text.bytes(0..<text.end) }

  @inline(__always)
  private var first: UInt8 { text[0] }

  @inline(__always)
  var isArray: Bool { first == UInt8(ascii: "[") }

  @inline(__always)
  var isString: Bool { first == UInt8(ascii: "\"") }

  @inline(__always)
  var isNumber: Bool { first == UInt8(ascii: "-") || first &- UInt8(ascii: "0") < 10 }

  var type: JSONType {
    switch first {
    case UInt8(ascii: "n"): .null
    case UInt8(ascii: "t"), UInt8(ascii: "f"): .boolean
    case UInt8(ascii: "\""): .string
    case UInt8(ascii: "["): .array
    case UInt8(ascii: "{"): .object
    default: .number
    }
  }

  static let numberRank = 3
  static let stringRank = 4

  /// The place of the value's type in the total order.
  @inline(__always)
  var rank: Int {
    switch first {
    case UInt8(ascii: "n"): 0
    case UInt8(ascii: "f"): 1
    case UInt8(ascii: "t"): 2
    case UInt8(ascii: "\""): Self.stringRank
    case UInt8(ascii: "["): 5
    case UInt8(ascii: "{"): 6
    default: Self.numberRank
    }
  }

  /// - Precondition: The value is a number.
  @inline(__always)
  var number: JSONNumber { unsafe JSONNumber(bytes) }

  /// The value as a tree. Complexity: O(*n*).
  var tree: JSONValue {
    var scanner = JSONScanner(text)
    do throws(JSONText.Failure) {
      return try JSONValue.parse(&scanner, depth: 0, maxDepth: JSONLimits.deepest)
    } catch { preconditionFailure("the value has been passed before") }
  }

  /// Whether a string has escapes.
  @inline(__always)
  var hasEscapes: Bool {
    unsafe memchr(bytes.baseAddress.unsafelyUnwrapped, Int32(UInt8(ascii: "\\")), text.end) != nil
  }

  /// Returns whether a string has these bytes between its quotes.
  /// - Precondition: There are as many.
  @inline(__always)
  func hasBytes(_ other: [UInt8]) -> Bool { unsafe text.bytes(1..<text.end &- 1).span.order(other.span) == 0 }

  /// Calls `body` with the UTF-8 of a string.
  /// - Precondition: The value is a string.
  @inline(__always)
  func withText<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
    let content = 1..<text.end &- 1
    guard hasEscapes else { return unsafe body(text.bytes(content).span) }
    var output: [UInt8] = []
    JSONString.append(content, of: text, to: &output)
    return body(output.span)
  }

  /// Returns whether `body` returns true for some element of an array; false for other values.
  @inline(__always)
  func hasElement(where body: (SourceValue) -> Bool) -> Bool {
    guard isArray else { return false }
    var position = 1
    guard text.next(&position) != UInt8(ascii: "]") else { return false }
    while true {
      if body(passValue(&position)) { return true }
      guard text.next(&position) == UInt8(ascii: ",") else { return false }
      position &+= 1
    }
  }

  /// Returns whether `body` returns true for some element of an array, or the budget is exhausted; false for other
  /// values.
  @inline(__always)
  func hasElement(_ budget: inout WorkBudget, where body: (SourceValue, inout WorkBudget) -> Bool) -> Bool {
    hasElement { element in !budget.spend(bytes: element.text.end) || body(element, &budget) }
  }

  /// Calls `body` with each element of an array, or with the value itself if it isn't an array.
  /// - Returns: Whether the budget wasn't exhausted.
  @inline(__always)
  func forEachElementOrSelf(_ budget: inout WorkBudget, _ body: (SourceValue, inout WorkBudget) -> Void) -> Bool {
    guard isArray else {
      guard budget.spend(bytes: text.end) else { return false }
      body(self, &budget)
      return true
    }
    return !hasElement(&budget) { element, budget in
      body(element, &budget)
      return false
    }
  }

  /// Returns whether `body` returns true for the name of some member of an object; false for other values. Names are
  /// strings in quotes.
  func hasName(where body: (SourceValue) -> Bool) -> Bool { hasMember { name, _ in body(name) } }

  /// Calls `body` with the name, in quotes, and the value of each member of an object.
  func forEachMember(_ body: (SourceValue, SourceValue) -> Void) {
    _ = hasMember { name, value in
      body(name, value)
      return false
    }
  }

  private func hasMember(where body: (SourceValue, SourceValue) -> Bool) -> Bool {
    guard first == UInt8(ascii: "{") else { return false }
    var position = 1
    guard text.next(&position) != UInt8(ascii: "}") else { return false }
    while true {
      let name = passName(&position)
      if body(name, passValue(&position)) { return true }
      guard text.next(&position) == UInt8(ascii: ",") else { return false }
      position &+= 1
    }
  }

  private func passValue(_ position: inout Int) -> SourceValue {
    _ = text.next(&position)
    return SourceValue(passing: &position, of: text)
  }

  /// Passes a member's name and the colon.
  /// - Returns: The name with its quotes.
  private func passName(_ position: inout Int) -> SourceValue {
    do throws(JSONText.Failure) {
      let name = try text.takeName(&position).name
      return SourceValue(name.lowerBound - 1..<name.upperBound + 1, of: text)
    } catch { preconditionFailure("the name has been passed before") }
  }
}
