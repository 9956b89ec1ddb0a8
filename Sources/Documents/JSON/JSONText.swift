/// JSON text that is read in place, with functions that pass its tokens and values and check them on the way; see `JSON`
/// for the rules.
///
/// The functions take the position where something begins and return the one where it ends, so that positions stay in
/// registers. They make nothing of what they pass, and allocate nothing but for values that are nested deeply.
///
/// Safe because every read is before `end`, and because no text outlives its bytes: the type is internal to this module,
/// whose code makes texts inside `withUnsafeBytes`. The exceptions are the subscript, `bytes` and functions that say
/// what comes at their position, whose callers ask only for offsets that this type has passed.
@safe
struct JSONText {
  private let base: UnsafePointer<UInt8>
  /// Where the text ends.
  let end: Int

  /// What is wrong. Inside this module only: public functions throw a `JSONError` instead, which takes longer to make.
  struct Failure: Error {
    let offset: Int
    let expected: JSONError.Expectation
  }

  @unsafe @inline(__always)
  init(_ bytes: UnsafeRawBufferPointer) {
    unsafe base = bytes.baseAddress.map { unsafe $0.assumingMemoryBound(to: UInt8.self) } ?? Self.nothing
    end = bytes.count
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

  /// Returns the next eight bytes as a little-endian word, with zeros after the end.
  @inline(__always)
  func word(at offset: Int) -> UInt64 { offset &+ 8 <= end ? wholeWord(at: offset) : lastWord(at: offset) }

  /// Returns the next eight bytes, which there are, as a little-endian word.
  @inline(__always)
  private func wholeWord(at offset: Int) -> UInt64 {
    unsafe UnsafeRawPointer(base + offset).loadUnaligned(as: UInt64.self)
  }

  @inline(__always)
  private func lastWord(at offset: Int) -> UInt64 {
    guard end >= 8, offset <= end else { return shortWord(at: offset) }
    // The last eight bytes of the text, without those before the offset. A shift by 64 or more makes zero.
    return wholeWord(at: end &- 8) >> UInt64(truncatingIfNeeded: 8 &* (offset &+ 8 &- end))
  }

  @inline(never)
  private func shortWord(at offset: Int) -> UInt64 {
    guard offset < end else { return 0 }
    return (offset..<end).reversed().reduce(0) { $0 &<< 8 | UInt64(self[$1]) }
  }

  @inline(never)
  func failure(_ expected: JSONError.Expectation, at offset: Int) -> Failure {
    Failure(offset: offset, expected: expected)
  }

  // MARK: White space and names

  /// Skips white space.
  /// - Returns: The byte that comes next; 0 at the end.
  @inline(__always)
  func next(_ position: inout Int) -> UInt8 {
    while position < end {
      let byte = self[position]
      if byte > 0x20 { return byte }
      guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return byte }
      position &+= 1
    }
    return 0
  }

  /// Passes a member's name and the colon, and skips white space before, between and after.
  /// - Returns: The place of the name without its quotes, and whether the name has escapes.
  @inline(__always)
  func takeName(_ position: inout Int) throws(Failure) -> (name: Range<Int>, hasEscapes: Bool) {
    guard next(&position) == UInt8(ascii: "\"") else { throw failure(.name, at: position) }
    let start = position &+ 1
    let (end, hasEscapes) = try endOfString(at: position)
    position = end
    try passColon(&position)
    return (unsafe Range(uncheckedBounds: (start, end &- 1)), hasEscapes)
  }

  /// Passes a colon, and skips white space before and after.
  @inline(__always)
  func passColon(_ position: inout Int) throws(Failure) {
    guard next(&position) == UInt8(ascii: ":") else { throw failure(.colon, at: position) }
    position &+= 1
    _ = next(&position)
  }

  // MARK: Strings

  /// - Parameter start: Where the opening quote is.
  /// - Returns: The end of the string, and whether the string has escapes.
  @inline(__always)
  func endOfString(at start: Int) throws(Failure) -> (end: Int, hasEscapes: Bool) {
    var position = start &+ 1
    var hasEscapes = false
    while true {
      // Skip eight bytes at a time, up to one that ends the string, begins an escape, is not ASCII, or is wrong.
      while position &+ 8 <= end {
        let special = Self.specialBytes(wholeWord(at: position))
        if special == 0 {
          position &+= 8
          continue
        }
        position &+= special.trailingZeroBitCount &>> 3
        break
      }
      guard position < end else { throw failure(.closingQuote, at: position) }
      let byte = self[position]
      if byte == UInt8(ascii: "\"") { return (position &+ 1, hasEscapes) }
      if byte >= 0x80 {
        position = try endOfMultibyteCharacters(at: position)
      } else if byte == UInt8(ascii: "\\") {
        hasEscapes = true
        position = try endOfEscape(at: position)
      } else if byte < 0x20 {
        throw failure(.escapedControlCharacter, at: position)
      } else {
        position &+= 1
      }
    }
  }

  /// Sets the top bits of the bytes in a little-endian word that are quotes or backslashes. Only the first bit that is
  /// set is meaningful.
  @inline(__always)
  static func quotesAndBackslashes(_ word: UInt64) -> UInt64 {
    let (ones, tops): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
    let (quotes, backslashes) = (word ^ (ones &* 0x22), word ^ (ones &* 0x5C))
    return ((quotes &- ones) & ~quotes | (backslashes &- ones) & ~backslashes) & tops
  }

  /// Sets the top bits of the bytes in a little-endian word that are quotes, backslashes, control characters or not
  /// ASCII. Only the first bit that is set is meaningful: borrows can set bits after it.
  @inline(__always)
  private static func specialBytes(_ word: UInt64) -> UInt64 {
    let (ones, tops): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
    return quotesAndBackslashes(word) | ((word &- (ones &* 0x20)) & ~word | word) & tops
  }

  @inline(never)
  private func endOfEscape(at start: Int) throws(Failure) -> Int {
    guard start &+ 1 < end else { throw failure(.escape, at: end) }
    switch self[start &+ 1] {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      return start &+ 2
    case UInt8(ascii: "u"):
      let first = start &+ 6
      switch try codeUnit(ofEscapeAt: start) {
      case 0xD800..<0xDC00:
        guard first &+ 1 < end, self[first] == UInt8(ascii: "\\"), self[first &+ 1] == UInt8(ascii: "u"),
          (0xDC00..<0xE000).contains(try codeUnit(ofEscapeAt: first))
        else { throw failure(.surrogatePair, at: start) }
        return first &+ 6
      case 0xDC00..<0xE000: throw failure(.surrogatePair, at: start)
      default: return first
      }
    default: throw failure(.escape, at: start &+ 1)
    }
  }

  /// Returns the code unit of `\u` and four digits, which are checked.
  private func codeUnit(ofEscapeAt start: Int) throws(Failure) -> UInt16 {
    for offset in start &+ 2..<start &+ 6 {
      guard offset < end, hexadecimalDigit(self[offset]) != nil else { throw failure(.hexadecimalDigit, at: offset) }
    }
    return codeUnit(at: start &+ 2)
  }

  /// Returns the code unit that four hexadecimal digits stand for. The digits have been passed.
  func codeUnit(at offset: Int) -> UInt16 {
    (offset..<offset &+ 4).reduce(0) { $0 &<< 4 | UInt16(hexadecimalDigit(self[$1]) ?? 0) }
  }

  /// Passes a run of characters that take more than one byte each.
  @inline(never)
  private func endOfMultibyteCharacters(at start: Int) throws(Failure) -> Int {
    var position = start
    while position < end, self[position] >= 0x80 {
      guard let count = characterByteCount(at: position) else { throw failure(.utf8, at: position) }
      position &+= count
    }
    return position
  }

  /// The size of a character that is not ASCII; nil if it is not UTF-8 (RFC 3629 §4).
  @inline(__always)
  private func characterByteCount(at position: Int) -> Int? {
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

  // MARK: Numbers and literals

  @inline(__always)
  private func endOfNumber(at start: Int) throws(Failure) -> Int {
    var position = start
    if self[position] == UInt8(ascii: "-") { position &+= 1 }
    if position < end, self[position] == UInt8(ascii: "0") {
      position &+= 1
    } else {
      position = try endOfDigits(at: position)
    }
    if position < end, self[position] == UInt8(ascii: ".") { position = try endOfDigits(at: position &+ 1) }
    if position < end, self[position] | 0x20 == UInt8(ascii: "e") {
      position &+= 1
      if position < end, self[position] == UInt8(ascii: "+") || self[position] == UInt8(ascii: "-") { position &+= 1 }
      position = try endOfDigits(at: position)
    }
    return position
  }

  @inline(__always)
  private func endOfDigits(at start: Int) throws(Failure) -> Int {
    var position = start
    while position < end, self[position] &- UInt8(ascii: "0") < 10 { position &+= 1 }
    guard position > start else { throw failure(.digit, at: position) }
    return position
  }

  /// Passes `true`, `false` or `null`.
  @inline(__always)
  private func endOfLiteral(at start: Int) throws(Failure) -> Int {
    // The last four letters identify a literal.
    let last = self[start] == UInt8(ascii: "f") ? start &+ 1 : start
    guard last &+ 4 <= end else { throw failure(.value, at: start) }
    let letters = unsafe UnsafeRawPointer(base + last).loadUnaligned(as: UInt32.self)
    switch (self[start], letters) {
    case (UInt8(ascii: "t"), 0x6575_7274), (UInt8(ascii: "f"), 0x6573_6C61), (UInt8(ascii: "n"), 0x6C6C_756E):
      return last &+ 4
    default: throw failure(.value, at: start)
    }
  }

  // MARK: Values

  /// How many levels of a value are passed by recursion, which is the fastest way. Deeper ones take no stack.
  private static let recursiveLevels = 16

  /// - Parameters:
  ///   - start: Where the value begins, or the end of the text.
  ///   - room: How many levels of arrays and objects the value may have.
  @inline(__always)
  func endOfValue(at start: Int, room: Int) throws(Failure) -> Int {
    try endOfValue(at: start, room, Self.recursiveLevels)
  }

  @inline(__always)
  private func endOfValue(at start: Int, _ room: Int, _ recursiveLevels: Int) throws(Failure) -> Int {
    guard start < end else { throw failure(.value, at: start) }
    let first = self[start]
    if first == UInt8(ascii: "\"") { return try endOfString(at: start).end }
    if first &- UInt8(ascii: "0") < 10 || first == UInt8(ascii: "-") { return try endOfNumber(at: start) }
    if first == UInt8(ascii: "{") { return try endOfObject(at: start, room, recursiveLevels) }
    if first == UInt8(ascii: "[") { return try endOfArray(at: start, room, recursiveLevels) }
    return try endOfLiteral(at: start)
  }

  @inline(never)
  private func endOfObject(at start: Int, _ room: Int, _ recursiveLevels: Int) throws(Failure) -> Int {
    guard recursiveLevels > 0 else { return try endOfDeepContainer(at: start, room) }
    guard room > 0 else { throw failure(.lessNesting, at: start) }
    var position = start &+ 1
    if next(&position) == UInt8(ascii: "}") { return position &+ 1 }
    while true {
      _ = try takeName(&position)
      position = try endOfValue(at: position, room &- 1, recursiveLevels &- 1)
      let byte = next(&position)
      if byte == UInt8(ascii: "}") { return position &+ 1 }
      guard byte == UInt8(ascii: ",") else { throw failure(.commaOrBrace, at: position) }
      position &+= 1
    }
  }

  @inline(never)
  private func endOfArray(at start: Int, _ room: Int, _ recursiveLevels: Int) throws(Failure) -> Int {
    guard recursiveLevels > 0 else { return try endOfDeepContainer(at: start, room) }
    guard room > 0 else { throw failure(.lessNesting, at: start) }
    var position = start &+ 1
    if next(&position) == UInt8(ascii: "]") { return position &+ 1 }
    while true {
      _ = next(&position)
      position = try endOfValue(at: position, room &- 1, recursiveLevels &- 1)
      let byte = next(&position)
      if byte == UInt8(ascii: "]") { return position &+ 1 }
      guard byte == UInt8(ascii: ",") else { throw failure(.commaOrBracket, at: position) }
      position &+= 1
    }
  }

  /// Passes an array or object without recursion.
  @inline(never)
  private func endOfDeepContainer(at start: Int, _ room: Int) throws(Failure) -> Int {
    // For each open container, the innermost one last: whether it is an object.
    var areObjects: [Bool] = []
    var position = start
    while true {
      // A value comes next.
      let byte = next(&position)
      if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
        guard areObjects.count < room else { throw failure(.lessNesting, at: position) }
        areObjects.append(byte == UInt8(ascii: "{"))
        position &+= 1
        // In ASCII, either closing bracket is the opening one plus 2.
        if next(&position) != byte &+ 2 {
          if areObjects.last == true { _ = try takeName(&position) }
          continue
        }
      } else {
        position = try endOfValue(at: position, 0, 0)
      }
      // A value has ended, or an empty container has begun. Containers end, up to one that goes on.
      while let isObject = areObjects.last {
        let byte = next(&position)
        if byte == UInt8(ascii: ",") {
          position &+= 1
          if isObject { _ = try takeName(&position) }
          break
        }
        guard byte == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
          throw failure(isObject ? .commaOrBrace : .commaOrBracket, at: position)
        }
        position &+= 1
        areObjects.removeLast()
      }
      if areObjects.isEmpty { return position }
    }
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
