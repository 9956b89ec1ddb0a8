/// A position in JSON text that advances over tokens and values.
struct JSONScanner {
  typealias Failure = JSONText.Failure

  let text: JSONText
  /// The next byte to be read.
  private(set) var position = 0
  private let maxDepth: Int

  init(_ text: JSONText, maxDepth: Int = JSONLimits.deepest) {
    self.text = text
    self.maxDepth = maxDepth
  }

  func failure(_ expected: JSONError.Expectation) -> Failure { text.failure(expected, at: position) }

  mutating func move(to position: Int) { self.position = position }

  /// Skips white space.
  /// - Returns: The byte that comes next; nil at the end.
  @inline(__always)
  mutating func peek() -> UInt8? {
    let byte = text.next(&position)
    return position < text.end ? byte : nil
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
  mutating func expectEnd() throws(Failure) {
    guard peek() == nil else { throw failure(.end) }
  }

  /// Passes a member's name and the colon.
  /// - Returns: The place of the name without its quotes, and whether the name has escapes.
  mutating func takeName() throws(Failure) -> (name: Range<Int>, hasEscapes: Bool) {
    try text.takeName(&position)
  }

  /// Passes a string, whose opening quote comes next.
  /// - Returns: Whether it has escapes.
  mutating func skipString() throws(Failure) -> Bool {
    let (end, hasEscapes) = try text.endOfString(at: position)
    position = end
    return hasEscapes
  }

  /// Skips white space, and passes a value.
  /// - Parameter depth: The number of arrays and objects that the value is in.
  /// - Returns: The place of the value.
  mutating func skipValue(depth: Int = 0) throws(Failure) -> Range<Int> {
    _ = text.next(&position)
    let start = position
    position = try text.endOfValue(at: start, room: maxDepth &- depth)
    return start..<position
  }
}
