/// A place in JSON text, which moves over what is there: strict RFC 8259 and nothing more.
///
/// It says where values begin and end and makes nothing of them, so that whoever asks keeps the bytes as they are. The bytes must be
/// UTF-8, which the scanner does not look at: strings may hold any byte that is not a control character.
struct JSONScanner {
  /// How deep the containers of a value can be nested, the value itself included.
  static let deepestNesting = 512
  /// A line holds a value in up to two containers of its own: the object, and the list's array.
  static let deepestLine = deepestNesting + 2

  var place = 0

  /// Passes over one value and the white space before it. O(bytes), and no recursion.
  mutating func skipValue(in bytes: Span<UInt8>, deepest: Int = deepestNesting) throws(JSONError) {
    var containers = Containers()
    while true {
      skipSpace(in: bytes)
      switch peek(bytes) {
      case UInt8(ascii: "{"):
        try enter(.object, &containers, deepest)
        if try !leave(.object, &containers, in: bytes) {
          _ = try skipName(in: bytes)
          continue
        }
      case UInt8(ascii: "["):
        try enter(.array, &containers, deepest)
        if try !leave(.array, &containers, in: bytes) { continue }
      case UInt8(ascii: "\""): try skipString(in: bytes)
      case let byte? where byte == UInt8(ascii: "-") || byte &- UInt8(ascii: "0") < 10: try skipNumber(in: bytes)
      case UInt8(ascii: "t"): try skipLiteral("true", in: bytes)
      case UInt8(ascii: "f"): try skipLiteral("false", in: bytes)
      case UInt8(ascii: "n"): try skipLiteral("null", in: bytes)
      case nil: throw JSONError(place, "the text ends where a value is expected")
      default: throw JSONError(place, "a value is expected")
      }
      if try !skipToNextValue(in: bytes, &containers) { return }
    }
  }

  /// Behind a value: closes the containers that end here.
  /// - Returns: whether another value follows, or nothing is open any more.
  private mutating func skipToNextValue(in bytes: Span<UInt8>, _ containers: inout Containers) throws(JSONError) -> Bool
  {
    while let container = containers.innermost {
      skipSpace(in: bytes)
      if take(UInt8(ascii: ","), in: bytes) {
        if container == .object { _ = try skipName(in: bytes) }
        return true
      }
      if try !leave(container, &containers, in: bytes) {
        throw JSONError(place, container == .object ? "a comma or } is expected" : "a comma or ] is expected")
      }
    }
    return false
  }

  private mutating func enter(_ container: Container, _ containers: inout Containers, _ deepest: Int) throws(JSONError)
  {
    guard containers.count < deepest else { throw JSONError(place, "it is nested deeper than \(deepest)") }
    containers.push(container)
    place &+= 1
  }

  /// Takes the end of the innermost container if it comes next.
  private mutating func leave(
    _ container: Container, _ containers: inout Containers, in bytes: Span<UInt8>
  ) throws(JSONError) -> Bool {
    skipSpace(in: bytes)
    guard take(container == .object ? UInt8(ascii: "}") : UInt8(ascii: "]"), in: bytes) else { return false }
    containers.pop()
    return true
  }

  /// Passes over a member's name and colon.
  /// - Returns: where the name is, in its quotes.
  mutating func skipName(in bytes: Span<UInt8>) throws(JSONError) -> Range<Int> {
    skipSpace(in: bytes)
    guard peek(bytes) == UInt8(ascii: "\"") else { throw JSONError(place, "a member's name in quotes is expected") }
    let start = place
    try skipString(in: bytes)
    let end = place
    skipSpace(in: bytes)
    guard take(UInt8(ascii: ":"), in: bytes) else { throw JSONError(place, "a colon is expected") }
    return start..<end
  }

  @inline(__always)
  mutating func skipSpace(in bytes: Span<UInt8>) {
    while place < bytes.count {
      switch bytes[place] {
      case 0x20, 0x09, 0x0A, 0x0D: place &+= 1
      default: return
      }
    }
  }

  @inline(__always)
  func peek(_ bytes: Span<UInt8>) -> UInt8? {
    place < bytes.count ? bytes[place] : nil
  }

  @inline(__always)
  mutating func take(_ byte: UInt8, in bytes: Span<UInt8>) -> Bool {
    guard place < bytes.count, bytes[place] == byte else { return false }
    place &+= 1
    return true
  }

  private enum Container { case array, object }

  /// The containers that are open, a bit each: as many as a line can have.
  private struct Containers {
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
}

/// What is wrong with a text, and where if that helps.
struct JSONError: Error, Equatable, CustomStringConvertible {
  /// In bytes, from 0.
  let offset: Int?
  let reason: String

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
