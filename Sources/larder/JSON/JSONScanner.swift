/// A position in JSON text that advances over values: strict RFC 8259, without extensions.
///
/// The scanner finds where values begin and end but doesn't decode them, so the caller can keep their bytes unchanged.
/// The bytes must be UTF-8, which the scanner does not check: it accepts any byte in a string that is not a control
/// character.
struct JSONScanner {
  /// The maximum nesting depth of a value, including the value itself.
  static let maxDepth = 512
  /// The maximum nesting depth of a line, which adds up to two containers around a value: an object, and the array of a
  /// list.
  static let maxLineDepth = maxDepth + 2

  /// The offset of the next byte.
  private(set) var position = 0

  // MARK: Values

  /// Skips white space and one value. O(bytes), without recursion.
  mutating func skipValue(in bytes: Span<UInt8>, maxDepth: Int = JSONScanner.maxDepth) throws(JSONError) {
    var containers = OpenContainers()
    while true {
      skipSpace(in: bytes)
      switch peek(bytes) {
      case UInt8(ascii: "{"):
        try open(.object, &containers, maxDepth)
        if try !close(.object, &containers, in: bytes) {
          _ = try skipName(in: bytes)
          continue
        }
      case UInt8(ascii: "["):
        try open(.array, &containers, maxDepth)
        if try !close(.array, &containers, in: bytes) { continue }
      case UInt8(ascii: "\""): try skipString(in: bytes)
      case let byte? where byte == UInt8(ascii: "-") || byte &- UInt8(ascii: "0") < 10: try skipNumber(in: bytes)
      case UInt8(ascii: "t"): try skipLiteral("true", in: bytes)
      case UInt8(ascii: "f"): try skipLiteral("false", in: bytes)
      case UInt8(ascii: "n"): try skipLiteral("null", in: bytes)
      case nil: throw JSONError(position, "the text ends where a value is expected")
      default: throw JSONError(position, "a value is expected")
      }
      if try !skipToNextValue(in: bytes, &containers) { return }
    }
  }

  /// Closes the containers that end after a value.
  /// - Returns: Whether another value follows; false if no container is open.
  private mutating func skipToNextValue(
    in bytes: Span<UInt8>, _ containers: inout OpenContainers
  ) throws(JSONError) -> Bool {
    while let container = containers.innermost {
      skipSpace(in: bytes)
      if consume(UInt8(ascii: ","), in: bytes) {
        if container == .object { _ = try skipName(in: bytes) }
        return true
      }
      if try !close(container, &containers, in: bytes) {
        throw JSONError(position, container == .object ? "a comma or } is expected" : "a comma or ] is expected")
      }
    }
    return false
  }

  private mutating func open(
    _ container: Container, _ containers: inout OpenContainers, _ maxDepth: Int
  ) throws(JSONError) {
    guard containers.count < maxDepth else { throw JSONError(position, "values are nested deeper than \(maxDepth)") }
    containers.push(container)
    position &+= 1
  }

  /// Consumes the end of the innermost container if it comes next.
  private mutating func close(
    _ container: Container, _ containers: inout OpenContainers, in bytes: Span<UInt8>
  ) throws(JSONError) -> Bool {
    skipSpace(in: bytes)
    guard consume(container == .object ? UInt8(ascii: "}") : UInt8(ascii: "]"), in: bytes) else { return false }
    containers.pop()
    return true
  }

  private enum Container { case array, object }

  /// The stack of open containers, one bit each, with room for the maximum depth of a line.
  private struct OpenContainers {
    private var bits = InlineArray<9, UInt64>(repeating: 0)
    private(set) var count = 0

    var innermost: Container? {
      if count == 0 { return nil }
      let index = count &- 1
      return bits[index &>> 6] &>> UInt64(index & 63) & 1 == 1 ? .object : .array
    }

    mutating func push(_ container: Container) {
      let bit: UInt64 = 1 &<< UInt64(count & 63)
      if container == .object { bits[count &>> 6] |= bit } else { bits[count &>> 6] &= ~bit }
      count &+= 1
    }

    mutating func pop() { count &-= 1 }
  }

  // MARK: Objects and arrays as a whole

  /// The ranges of a member's quoted name and of its value.
  struct Member {
    let name: Range<Int>
    let value: Range<Int>
  }

  /// Finds the members of a text that is one object. Duplicate names are left to the caller.
  /// - Parameter members: Replaced by the members; the caller can reuse the array to avoid allocations.
  static func members(
    of bytes: Span<UInt8>, maxDepth: Int = maxLineDepth, into members: inout [Member]
  ) throws(JSONError) {
    members.removeAll(keepingCapacity: true)
    var scanner = JSONScanner()
    try scanner.expect(UInt8(ascii: "{"), "an object is expected", in: bytes)
    scanner.skipSpace(in: bytes)
    if !scanner.consume(UInt8(ascii: "}"), in: bytes) {
      repeat {
        let name = try scanner.skipName(in: bytes)
        members.append(Member(name: name, value: try scanner.value(in: bytes, maxDepth: maxDepth - 1)))
      } while try !scanner.consumeEnd(UInt8(ascii: "}"), "a comma or } is expected", in: bytes)
    }
    try scanner.expectEndOfText(in: bytes)
  }

  /// Returns the ranges of the elements of a text that is one array.
  static func elements(of bytes: Span<UInt8>, maxDepth: Int = maxLineDepth) throws(JSONError) -> [Range<Int>] {
    var scanner = JSONScanner()
    var elements: [Range<Int>] = []
    try scanner.expect(UInt8(ascii: "["), "an array is expected", in: bytes)
    scanner.skipSpace(in: bytes)
    if !scanner.consume(UInt8(ascii: "]"), in: bytes) {
      repeat {
        elements.append(try scanner.value(in: bytes, maxDepth: maxDepth - 1))
      } while try !scanner.consumeEnd(UInt8(ascii: "]"), "a comma or ] is expected", in: bytes)
    }
    try scanner.expectEndOfText(in: bytes)
    return elements
  }

  /// Returns whether the bytes are one object or array without anything around it, not even white space.
  static func isContainer(_ bytes: Span<UInt8>) -> Bool {
    guard bytes.count >= 2 else { return false }
    switch (bytes[0], bytes[bytes.count - 1]) {
    case (UInt8(ascii: "{"), UInt8(ascii: "}")), (UInt8(ascii: "["), UInt8(ascii: "]")): break
    default: return false
    }
    var scanner = JSONScanner()
    do throws(JSONError) { try scanner.skipValue(in: bytes) } catch { return false }
    return scanner.position == bytes.count
  }

  private mutating func expect(_ byte: UInt8, _ expectation: String, in bytes: Span<UInt8>) throws(JSONError) {
    skipSpace(in: bytes)
    guard consume(byte, in: bytes) else { throw JSONError(position, expectation) }
  }

  private mutating func value(in bytes: Span<UInt8>, maxDepth: Int) throws(JSONError) -> Range<Int> {
    skipSpace(in: bytes)
    let start = position
    try skipValue(in: bytes, maxDepth: maxDepth)
    return start..<position
  }

  /// Consumes a comma or the container's end.
  /// - Returns: Whether it was the end.
  private mutating func consumeEnd(
    _ close: UInt8, _ expectation: String, in bytes: Span<UInt8>
  ) throws(JSONError) -> Bool {
    skipSpace(in: bytes)
    if consume(UInt8(ascii: ","), in: bytes) { return false }
    guard consume(close, in: bytes) else { throw JSONError(position, expectation) }
    return true
  }

  private mutating func expectEndOfText(in bytes: Span<UInt8>) throws(JSONError) {
    skipSpace(in: bytes)
    guard position == bytes.count else { throw JSONError(position, "something follows the end") }
  }

  // MARK: Tokens

  /// Skips a member's name and its colon.
  /// - Returns: The range of the name with its quotes.
  private mutating func skipName(in bytes: Span<UInt8>) throws(JSONError) -> Range<Int> {
    skipSpace(in: bytes)
    guard peek(bytes) == UInt8(ascii: "\"") else { throw JSONError(position, "a member's name in quotes is expected") }
    let start = position
    try skipString(in: bytes)
    let end = position
    skipSpace(in: bytes)
    guard consume(UInt8(ascii: ":"), in: bytes) else { throw JSONError(position, "a colon is expected") }
    return start..<end
  }

  /// Skips a string, whose opening quote comes next.
  private mutating func skipString(in bytes: Span<UInt8>) throws(JSONError) {
    position &+= 1
    while position < bytes.count {
      switch bytes[position] {
      case UInt8(ascii: "\""):
        position &+= 1
        return
      case UInt8(ascii: "\\"): try skipEscape(in: bytes)
      case 0..<0x20: throw JSONError(position, "a control character in a string must be escaped")
      default: position &+= 1
      }
    }
    throw JSONError(position, "the text ends inside a string")
  }

  private mutating func skipEscape(in bytes: Span<UInt8>) throws(JSONError) {
    let start = position
    position &+= 1
    switch peek(bytes) {
    case UInt8(ascii: "u"):
      position &+= 1
      for _ in 0..<4 {
        guard let byte = peek(bytes), hexDigitValue(byte) != nil else {
          throw JSONError(start, "\\u requires four hexadecimal digits")
        }
        position &+= 1
      }
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      position &+= 1
    default: throw JSONError(start, "unknown escape sequence")
    }
  }

  /// Skips a number, whose first character comes next.
  private mutating func skipNumber(in bytes: Span<UInt8>) throws(JSONError) {
    _ = consume(UInt8(ascii: "-"), in: bytes)
    if !consume(UInt8(ascii: "0"), in: bytes) { try skipDigits(in: bytes) }
    if consume(UInt8(ascii: "."), in: bytes) { try skipDigits(in: bytes) }
    if consume(UInt8(ascii: "e"), in: bytes) || consume(UInt8(ascii: "E"), in: bytes) {
      if !consume(UInt8(ascii: "+"), in: bytes) { _ = consume(UInt8(ascii: "-"), in: bytes) }
      try skipDigits(in: bytes)
    }
  }

  private mutating func skipDigits(in bytes: Span<UInt8>) throws(JSONError) {
    let start = position
    while let byte = peek(bytes), byte &- UInt8(ascii: "0") < 10 { position &+= 1 }
    guard position > start else { throw JSONError(position, "a digit is expected") }
  }

  private mutating func skipLiteral(_ literal: StaticString, in bytes: Span<UInt8>) throws(JSONError) {
    let start = position
    for index in 0..<literal.utf8CodeUnitCount {
      guard consume(unsafe literal.utf8Start[index], in: bytes) else { throw JSONError(start, "a value is expected") }
    }
  }

  // MARK: Bytes

  @inline(__always)
  mutating func skipSpace(in bytes: Span<UInt8>) {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x09, 0x0A, 0x0D: position &+= 1
      default: return
      }
    }
  }

  @inline(__always)
  private func peek(_ bytes: Span<UInt8>) -> UInt8? {
    position < bytes.count ? bytes[position] : nil
  }

  @inline(__always)
  private mutating func consume(_ byte: UInt8, in bytes: Span<UInt8>) -> Bool {
    guard position < bytes.count, bytes[position] == byte else { return false }
    position &+= 1
    return true
  }
}

/// The value of a hexadecimal digit in ASCII; nil for any other byte.
@inline(__always)
func hexDigitValue(_ byte: UInt8) -> UInt16? {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt16(byte - UInt8(ascii: "0"))
  case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt16(byte - UInt8(ascii: "a") + 10)
  case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt16(byte - UInt8(ascii: "A") + 10)
  default: nil
  }
}

/// Why a text is not valid, and where, if that helps.
struct JSONError: Error, Equatable, CustomStringConvertible {
  /// The offset in bytes, from 0.
  private let offset: Int?
  private let reason: String

  init(_ offset: Int, _ reason: String) {
    self.offset = offset
    self.reason = reason
  }

  init(_ reason: String) {
    offset = nil
    self.reason = reason
  }

  var description: String { offset.map { "\(reason), at byte \($0 + 1)" } ?? reason }
}
