/// A position in JSON text that advances over values and checks them on the way; see `JSON` for the rules.
///
/// A scanner makes nothing of what it passes: it returns where values begin and end, and callers read them there. It
/// passes a value without recursion and without allocations.
///
/// Safe because every read is before `end`, and because no scanner outlives its bytes: the type is internal to this
/// module, whose code creates scanners inside `withUnsafeBytes`. The exceptions are the subscript and `bytes`, whose
/// callers ask only for offsets that a scanner has passed.
@safe
struct JSONScanner {
  private let base: UnsafePointer<UInt8>
  /// Where the text ends.
  let end: Int
  /// The next byte to be read.
  private(set) var position: Int
  /// Up to 576, for which `skipContainer` has room.
  private let maxDepth: Int

  /// What is wrong. Inside this module only: public functions throw a `JSONError` instead, which takes longer to make.
  struct Failure: Error {
    let offset: Int
    let expected: JSONError.Expectation
  }

  @unsafe @inline(__always)
  init(_ bytes: UnsafeRawBufferPointer, maxDepth: Int = JSONLimits.deepest) {
    unsafe base = bytes.baseAddress.map { unsafe $0.assumingMemoryBound(to: UInt8.self) } ?? Self.nothing
    end = bytes.count
    position = 0
    self.maxDepth = maxDepth
  }

  /// The address of empty text. Nothing is read from it.
  private static var nothing: UnsafePointer<UInt8> { unsafe UnsafePointer(bitPattern: 1).unsafelyUnwrapped }

  @inline(__always)
  subscript(_ offset: Int) -> UInt8 { unsafe base[offset] }

  /// The bytes of a range.
  @unsafe @inline(__always)
  func bytes(_ range: Range<Int>) -> UnsafeBufferPointer<UInt8> {
    unsafe UnsafeBufferPointer(start: base + range.lowerBound, count: range.count)
  }

  @inline(never)
  func failure(_ expected: JSONError.Expectation, at offset: Int? = nil) -> Failure {
    Failure(offset: offset ?? position, expected: expected)
  }

  @inline(__always)
  mutating func move(to position: Int) { self.position = position }

  // MARK: Tokens

  /// Skips white space.
  /// - Returns: The byte that comes next; nil at the end.
  @inline(__always)
  mutating func peek() -> UInt8? {
    while position < end {
      let byte = unsafe base[position]
      if byte > 0x20 { return byte }
      guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return byte }
      position &+= 1
    }
    return nil
  }

  /// Skips white space, and passes the byte if it comes next.
  /// - Returns: Whether it came next.
  @inline(__always)
  mutating func take(_ byte: UInt8) -> Bool {
    guard peek() == byte else { return false }
    position &+= 1
    return true
  }

  /// Checks that only white space is left.
  @inline(__always)
  mutating func expectEnd() throws(Failure) {
    guard peek() == nil else { throw failure(.end) }
  }

  /// Passes a member's name and the colon.
  /// - Returns: The place of the name without its quotes, and whether the name has escapes.
  @inline(__always)
  mutating func takeName() throws(Failure) -> (name: Range<Int>, hasEscapes: Bool) {
    guard peek() == UInt8(ascii: "\"") else { throw failure(.name) }
    let start = position &+ 1
    let hasEscapes = try skipString()
    let name = start..<position &- 1
    guard take(UInt8(ascii: ":")) else { throw failure(.colon) }
    return (name, hasEscapes)
  }

  /// Passes a string, whose opening quote comes next.
  /// - Returns: Whether it has escapes.
  @inline(__always)
  mutating func skipString() throws(Failure) -> Bool {
    position &+= 1
    var hasEscapes = false
    while true {
      // Skip eight bytes at a time, up to one that ends the string, begins an escape, is not ASCII, or is wrong.
      while position &+ 8 <= end {
        let special = Self.specialBytes(unsafe UnsafeRawPointer(base + position).loadUnaligned(as: UInt64.self))
        if special == 0 {
          position &+= 8
          continue
        }
        position &+= special.trailingZeroBitCount &>> 3
        break
      }
      guard position < end else { throw failure(.closingQuote) }
      let byte = unsafe base[position]
      if byte == UInt8(ascii: "\"") {
        position &+= 1
        return hasEscapes
      }
      if byte >= 0x80 {
        try skipMultibyteCharacters()
      } else if byte == UInt8(ascii: "\\") {
        hasEscapes = true
        try skipEscape()
      } else if byte < 0x20 {
        throw failure(.escapedControlCharacter)
      } else {
        position &+= 1
      }
    }
  }

  /// Sets the top bits of the bytes in a little-endian word that are quotes, backslashes, control characters or not
  /// ASCII. Only the first bit that is set is meaningful: borrows can set bits after it.
  @inline(__always)
  private static func specialBytes(_ word: UInt64) -> UInt64 {
    let (ones, tops): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
    let (quotes, backslashes) = (word ^ (ones &* 0x22), word ^ (ones &* 0x5C))
    return ((quotes &- ones) & ~quotes | (backslashes &- ones) & ~backslashes | (word &- (ones &* 0x20)) & ~word | word)
      & tops
  }

  @inline(never)
  private mutating func skipEscape() throws(Failure) {
    let start = position
    guard position &+ 1 < end else { throw failure(.escape, at: end) }
    switch unsafe base[position &+ 1] {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      position &+= 2
    case UInt8(ascii: "u"):
      let unit = try takeUnicodeEscape()
      switch unit {
      case 0xD800..<0xDC00:
        guard position &+ 1 < end, self[position] == UInt8(ascii: "\\"), self[position &+ 1] == UInt8(ascii: "u"),
          (0xDC00..<0xE000).contains(try takeUnicodeEscape())
        else { throw failure(.surrogatePair, at: start) }
      case 0xDC00..<0xE000: throw failure(.surrogatePair, at: start)
      default: break
      }
    default: throw failure(.escape, at: position &+ 1)
    }
  }

  /// Passes `\u` and its four digits.
  private mutating func takeUnicodeEscape() throws(Failure) -> UInt16 {
    for offset in position &+ 2..<position &+ 6 {
      guard offset < end, hexadecimalDigit(self[offset]) != nil else { throw failure(.hexadecimalDigit, at: offset) }
    }
    position &+= 6
    return codeUnit(at: position &- 4)
  }

  /// Returns the code unit that four hexadecimal digits stand for. The scanner has passed the digits.
  func codeUnit(at offset: Int) -> UInt16 {
    (offset..<offset &+ 4).reduce(0) { $0 &<< 4 | UInt16(hexadecimalDigit(self[$1]) ?? 0) }
  }

  /// Passes a run of characters that take more than one byte each.
  @inline(never)
  private mutating func skipMultibyteCharacters() throws(Failure) {
    while position < end, self[position] >= 0x80 {
      guard let count = characterByteCount() else { throw failure(.utf8) }
      position &+= count
    }
  }

  /// The size of the character that comes next, which is not ASCII; nil if it is not UTF-8 (RFC 3629 §4).
  @inline(__always)
  private func characterByteCount() -> Int? {
    let (lead, left) = (self[position], end &- position)
    func isContinuation(_ index: Int) -> Bool { self[position &+ index] & 0xC0 == 0x80 }
    switch lead {
    case 0xC2...0xDF: return left >= 2 && isContinuation(1) ? 2 : nil
    case 0xE0...0xEF:
      guard left >= 3, isContinuation(1), isContinuation(2) else { return nil }
      let second = self[position &+ 1]
      return (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ? nil : 3
    case 0xF0...0xF4:
      guard left >= 4, isContinuation(1), isContinuation(2), isContinuation(3) else { return nil }
      let second = self[position &+ 1]
      return (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F) ? nil : 4
    default: return nil
    }
  }

  /// Passes a number, whose first character comes next.
  @inline(__always)
  private mutating func skipNumber() throws(Failure) {
    if unsafe base[position] == UInt8(ascii: "-") { position &+= 1 }
    if position < end, unsafe base[position] == UInt8(ascii: "0") { position &+= 1 } else { try skipDigits() }
    if position < end, unsafe base[position] == UInt8(ascii: ".") {
      position &+= 1
      try skipDigits()
    }
    if position < end, unsafe base[position] | 0x20 == UInt8(ascii: "e") {
      position &+= 1
      if position < end, self[position] == UInt8(ascii: "+") || self[position] == UInt8(ascii: "-") { position &+= 1 }
      try skipDigits()
    }
  }

  @inline(__always)
  private mutating func skipDigits() throws(Failure) {
    let start = position
    while position < end, unsafe base[position] &- UInt8(ascii: "0") < 10 { position &+= 1 }
    guard position > start else { throw failure(.digit) }
  }

  /// Passes `true`, `false` or `null`.
  @inline(__always)
  private mutating func skipLiteral(_ literal: StaticString) throws(Failure) {
    let count = literal.utf8CodeUnitCount
    guard position &+ count <= end else { throw failure(.value) }
    for index in 0..<count {
      guard unsafe base[position &+ index] == literal.utf8Start[index] else { throw failure(.value) }
    }
    position &+= count
  }

  // MARK: Values

  /// Skips white space, and passes a value.
  /// - Parameter outer: The number of arrays and objects that the value is in.
  /// - Returns: The place of the value.
  mutating func skipValue(depth outer: Int = 0) throws(Failure) -> Range<Int> {
    guard let first = peek() else { throw failure(.value) }
    let start = position
    if first == UInt8(ascii: "{") || first == UInt8(ascii: "[") {
      try skipContainer(depth: outer)
    } else {
      try skipScalar(first)
    }
    return start..<position
  }

  @inline(__always)
  private mutating func skipScalar(_ first: UInt8) throws(Failure) {
    switch first {
    case UInt8(ascii: "\""): _ = try skipString()
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try skipNumber()
    case UInt8(ascii: "t"): try skipLiteral("true")
    case UInt8(ascii: "f"): try skipLiteral("false")
    case UInt8(ascii: "n"): try skipLiteral("null")
    default: throw failure(.value)
    }
  }

  /// Passes an array or object, whose opening bracket comes next.
  private mutating func skipContainer(depth outer: Int) throws(Failure) {
    // One bit for each open container, from the outermost: whether it is an object.
    var kinds = InlineArray<9, UInt64>(repeating: 0)
    var depth = outer
    var isObject = false
    repeat {
      // A value comes next.
      guard let byte = peek() else { throw failure(.value) }
      if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
        guard depth < maxDepth else { throw failure(.lessNesting) }
        isObject = byte == UInt8(ascii: "{")
        let (word, bit) = (depth &>> 6, UInt64(1) &<< UInt64(depth & 63))
        kinds[word] = isObject ? kinds[word] | bit : kinds[word] & ~bit
        depth &+= 1
        position &+= 1
        // In ASCII, either closing bracket is the opening one plus 2.
        if peek() != byte &+ 2 {
          if isObject { _ = try takeName() }
          continue
        }
      } else {
        try skipScalar(byte)
        if take(UInt8(ascii: ",")) {
          if isObject { _ = try takeName() }
          continue
        }
      }
      // An element or member has ended, or an empty container has begun.
      while true {
        if take(isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
          depth &-= 1
          if depth == outer { return }
          let parent = depth &- 1
          isObject = kinds[parent &>> 6] &>> UInt64(parent & 63) & 1 == 1
        } else {
          throw failure(isObject ? .commaOrBrace : .commaOrBracket)
        }
        if take(UInt8(ascii: ",")) {
          if isObject { _ = try takeName() }
          break
        }
      }
    } while true
  }
}

/// The value of a hexadecimal digit in ASCII; nil for any other byte.
@inline(__always)
func hexadecimalDigit(_ byte: UInt8) -> UInt8? {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
  default: nil
  }
}
