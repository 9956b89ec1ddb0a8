/// A JSON value in text that has been scanned, by its place in memory.
///
/// Safe because it never leaves the scope in which the text is borrowed: values are internal to this module, and
/// `FieldValues` hands them out only inside of a closure.
@safe
struct SourceValue {
  private let start: UnsafePointer<UInt8>
  let count: Int

  /// - Precondition: The range is one whole value that `scanner` has passed.
  @inline(__always)
  init(_ range: Range<Int>, of scanner: JSONScanner) {
    unsafe start = scanner.bytes(range).baseAddress.unsafelyUnwrapped
    count = range.count
  }

  /// - Precondition: The bytes are one whole value that a scanner has passed.
  @unsafe
  init(_ bytes: UnsafeBufferPointer<UInt8>) {
    unsafe start = bytes.baseAddress.unsafelyUnwrapped
    count = bytes.count
  }

  /// The text of the value.
  @unsafe
  var bytes: UnsafeBufferPointer<UInt8> { unsafe UnsafeBufferPointer(start: start, count: count) }

  /// A scanner of this value.
  var scanner: JSONScanner { unsafe JSONScanner(UnsafeRawBufferPointer(bytes)) }

  @inline(__always)
  private var first: UInt8 { unsafe start[0] }

  @inline(__always)
  var isArray: Bool { first == UInt8(ascii: "[") }

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

  /// The place of the value's type in the total order.
  @inline(__always)
  var rank: Int {
    switch first {
    case UInt8(ascii: "n"): 0
    case UInt8(ascii: "f"): 1
    case UInt8(ascii: "t"): 2
    case UInt8(ascii: "\""): 4
    case UInt8(ascii: "["): 5
    case UInt8(ascii: "{"): 6
    default: 3
    }
  }

  /// - Precondition: The value is a number.
  @inline(__always)
  var number: JSONNumber { unsafe JSONNumber(bytes) }

  /// The value as a tree. Complexity: O(*n*).
  var tree: JSONValue {
    var scanner = scanner
    do throws(JSONScanner.Failure) {
      return try JSONValue.parse(&scanner, depth: 0, maxDepth: JSONLimits.deepest)
    } catch { preconditionFailure("the value was scanned before") }
  }

  /// Calls `body` with the UTF-8 of a string.
  /// - Precondition: The value is a string.
  @inline(__always)
  func withText<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
    let source = unsafe UnsafeBufferPointer(rebasing: bytes[1..<count - 1])
    guard unsafe source.contains(UInt8(ascii: "\\")) else { return unsafe body(source.span) }
    var text: [UInt8] = []
    JSONString.append(1..<count - 1, of: scanner, to: &text)
    return body(text.span)
  }

  /// Returns whether `body` returns true for some element of an array; false for other values.
  @inline(__always)
  func hasElement(where body: (SourceValue) -> Bool) -> Bool {
    guard isArray else { return false }
    var scanner = scanner
    scanner.move(to: 1)
    if scanner.take(UInt8(ascii: "]")) { return false }
    repeat {
      if body(SourceValue(scanner.skipScannedValue(), of: scanner)) { return true }
    } while scanner.take(UInt8(ascii: ","))
    return false
  }

  /// Calls `body` with each element of an array, or with the value itself if it isn't an array.
  @inline(__always)
  func forEachElementOrSelf(_ body: (SourceValue) -> Void) {
    guard isArray else { return body(self) }
    _ = hasElement { element in
      body(element)
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
    var scanner = scanner
    scanner.move(to: 1)
    if scanner.take(UInt8(ascii: "}")) { return false }
    repeat {
      let name = SourceValue(scanner.skipScannedName(), of: scanner)
      if body(name, SourceValue(scanner.skipScannedValue(), of: scanner)) { return true }
    } while scanner.take(UInt8(ascii: ","))
    return false
  }
}

extension JSONScanner {
  /// Passes a value that has been scanned before.
  mutating func skipScannedValue() -> Range<Int> {
    do throws(Failure) { return try skipValue() } catch { preconditionFailure("the value was scanned before") }
  }

  /// Passes a member's name that has been scanned before, and the colon.
  /// - Returns: The place of the name with its quotes.
  mutating func skipScannedName() -> Range<Int> {
    do throws(Failure) {
      let name = try takeName().name
      return name.lowerBound - 1..<name.upperBound + 1
    } catch { preconditionFailure("the name was scanned before") }
  }
}
