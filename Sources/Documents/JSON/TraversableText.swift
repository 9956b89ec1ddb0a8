import CLinux

/// How tokens and values of JSON text are passed by those who look for some of them: checked on the way, or without
/// checks, because the text has been checked before.
protocol TraversableText {
  /// Whether the text is known to be an I-JSON object, so that a search can stop at the last value that it needs.
  static var isTrusted: Bool { get }

  var text: JSONText { get }

  /// - Parameter start: Where the opening quote is.
  /// - Returns: The end of the string, and whether the string has escapes.
  func endOfString(at start: Int) throws(JSONText.Failure) -> (end: Int, hasEscapes: Bool)

  /// - Parameters:
  ///   - start: Where the value begins, or the end of the text.
  ///   - room: How many levels of arrays and objects the value may have.
  func endOfValue(at start: Int, room: Int) throws(JSONText.Failure) -> Int

  /// - Precondition: The text is trusted.
  /// - Parameter start: A place in an array or object, outside of strings and of arrays and objects in it.
  /// - Returns: Where the array or object ends.
  func endOfContainer(from start: Int) -> Int
}

extension JSONText: TraversableText {
  static var isTrusted: Bool { false }
  var text: JSONText { self }
  func endOfContainer(from start: Int) -> Int { preconditionFailure("the text must be checked") }
}

/// Text that is known to be an I-JSON object (RFC 7493), or a value in one.
///
/// Safe because every read is before the end of the text, whatever the text is: at worst, offsets mean nothing.
@safe
struct TrustedText: TraversableText {
  static var isTrusted: Bool { true }

  let text: JSONText

  init(_ text: JSONText) { self.text = text }

  @inline(__always)
  func endOfString(at start: Int) -> (end: Int, hasEscapes: Bool) {
    var position = start &+ 1
    // Names and most values end here.
    let special = JSONText.quotesAndBackslashes(text.word(at: position))
    if special != 0 {
      position &+= special.trailingZeroBitCount &>> 3
    } else {
      position = nextQuoteOrBackslash(from: position &+ 8)
    }
    if position < text.end, text[position] == UInt8(ascii: "\"") { return (position &+ 1, false) }
    return (endOfEscapedString(at: position), true)
  }

  @inline(__always)
  private func nextQuoteOrBackslash(from start: Int) -> Int {
    guard start < text.end else { return text.end }
    return unsafe json_quote_or_backslash(text.bytes(0..<text.end).baseAddress, start, text.end)
  }

  /// - Parameter start: Where the first backslash is.
  @inline(never)
  private func endOfEscapedString(at start: Int) -> Int {
    var position = start
    while position < text.end, text[position] != UInt8(ascii: "\"") {
      position = nextQuoteOrBackslash(from: position &+ 2)
    }
    return min(position &+ 1, text.end)
  }

  @inline(__always)
  func endOfValue(at start: Int, room: Int) -> Int {
    guard start < text.end else { return text.end }
    let first = text[start]
    if first == UInt8(ascii: "\"") { return endOfString(at: start).end }
    if first | 0x20 == UInt8(ascii: "{") { return endOfContainer(from: start &+ 1) }
    var position = start &+ 1
    while position < text.end, !Self.endsScalar(text[position]) { position &+= 1 }
    return position
  }

  /// Whether a byte ends a number or a literal before it.
  @inline(__always)
  private static func endsScalar(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: ",") || byte | 0x20 == UInt8(ascii: "}") || byte <= 0x20
  }

  @inline(__always)
  func endOfContainer(from start: Int) -> Int {
    guard start < text.end else { return text.end }
    return unsafe json_container_end(text.bytes(0..<text.end).baseAddress, start, text.end, 1)
  }
}
