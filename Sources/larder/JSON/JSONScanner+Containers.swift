/// A whole text: what is in it, without anything being copied.
extension JSONScanner {
  /// Where a member's name, in its quotes, and its value are.
  struct Member {
    let name: Range<Int>
    let value: Range<Int>
  }

  /// Finds the members of a text that is one object. Names that occur twice are left to the caller.
  /// - Parameter members: takes them; what was in it is gone.
  static func members(
    of bytes: Span<UInt8>, deepest: Int = deepestLine, into members: inout [Member]
  ) throws(JSONError) {
    members.removeAll(keepingCapacity: true)
    var scanner = JSONScanner()
    try scanner.open(UInt8(ascii: "{"), "an object is expected", in: bytes)
    scanner.skipSpace(in: bytes)
    if !scanner.take(UInt8(ascii: "}"), in: bytes) {
      repeat {
        let name = try scanner.skipName(in: bytes)
        members.append(Member(name: name, value: try scanner.value(in: bytes, deepest: deepest - 1)))
      } while try !scanner.isLast(UInt8(ascii: "}"), "a comma or } is expected", in: bytes)
    }
    try scanner.expectEnd(in: bytes)
  }

  /// Where the elements of a text that is one array are.
  static func elements(of bytes: Span<UInt8>, deepest: Int = deepestLine) throws(JSONError) -> [Range<Int>] {
    var scanner = JSONScanner()
    var elements: [Range<Int>] = []
    try scanner.open(UInt8(ascii: "["), "an array is expected", in: bytes)
    scanner.skipSpace(in: bytes)
    if !scanner.take(UInt8(ascii: "]"), in: bytes) {
      repeat {
        elements.append(try scanner.value(in: bytes, deepest: deepest - 1))
      } while try !scanner.isLast(UInt8(ascii: "]"), "a comma or ] is expected", in: bytes)
    }
    try scanner.expectEnd(in: bytes)
    return elements
  }

  /// Whether the bytes are one object or array and nothing around it, not even white space.
  static func isContainer(_ bytes: Span<UInt8>) -> Bool {
    guard bytes.count >= 2 else { return false }
    switch (bytes[0], bytes[bytes.count - 1]) {
    case (UInt8(ascii: "{"), UInt8(ascii: "}")), (UInt8(ascii: "["), UInt8(ascii: "]")): break
    default: return false
    }
    var scanner = JSONScanner()
    do throws(JSONError) { try scanner.skipValue(in: bytes) } catch { return false }
    return scanner.place == bytes.count
  }

  private mutating func open(_ byte: UInt8, _ expectation: String, in bytes: Span<UInt8>) throws(JSONError) {
    skipSpace(in: bytes)
    guard take(byte, in: bytes) else { throw JSONError(place, expectation) }
  }

  private mutating func value(in bytes: Span<UInt8>, deepest: Int) throws(JSONError) -> Range<Int> {
    skipSpace(in: bytes)
    let start = place
    try skipValue(in: bytes, deepest: deepest)
    return start..<place
  }

  private mutating func isLast(_ close: UInt8, _ expectation: String, in bytes: Span<UInt8>) throws(JSONError) -> Bool {
    skipSpace(in: bytes)
    if take(UInt8(ascii: ","), in: bytes) { return false }
    guard take(close, in: bytes) else { throw JSONError(place, expectation) }
    return true
  }

  private mutating func expectEnd(in bytes: Span<UInt8>) throws(JSONError) {
    skipSpace(in: bytes)
    guard place == bytes.count else { throw JSONError(place, "something follows the end") }
  }
}
