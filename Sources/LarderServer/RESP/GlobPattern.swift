/// A pattern of keys: `*`, `?`, `[a-c]`, `[^a]`, and `\` before any of these that stands for itself.
struct GlobPattern {
  private let pattern: [UInt8]
  /// The bytes that every match begins with.
  let prefix: [UInt8]
  /// Whether everything that begins with the prefix matches.
  let isPrefixOnly: Bool

  init(_ pattern: RawSpan) {
    let bytes = unsafe pattern.withUnsafeBytes { unsafe Array($0) }
    self.pattern = bytes
    prefix = Array(bytes.prefix { !Self.isSpecial($0) })
    isPrefixOnly = bytes.count == prefix.count + 1 && bytes.last == UInt8(ascii: "*")
  }

  /// Whether only one key can match.
  var isLiteral: Bool { prefix.count == pattern.count }

  private static func isSpecial(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "*") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "[") || byte == UInt8(ascii: "\\")
  }

  /// Returns whether a key matches. O(pattern × key) at most, because only the last `*` is tried again.
  func matches(_ key: UnsafeRawBufferPointer) -> Bool {
    if isPrefixOnly { return unsafe key.starts(with: prefix) }
    var (position, index) = (0, 0)
    // Where to go on when a byte doesn't match: after the last star, one byte later than before.
    var retry: (position: Int, index: Int)?
    while index < key.count {
      if position < pattern.count, pattern[position] == UInt8(ascii: "*") {
        position += 1
        retry = (position, index)
      } else if let next = unsafe end(ofElementAt: position, matching: key[index]) {
        (position, index) = (next, index + 1)
      } else if let last = retry {
        retry = (last.position, last.index + 1)
        (position, index) = (last.position, last.index + 1)
      } else {
        return false
      }
    }
    return pattern[position...].allSatisfy { $0 == UInt8(ascii: "*") }
  }

  /// Returns the end of the element of the pattern at a position; nil if it doesn't match the byte.
  private func end(ofElementAt position: Int, matching byte: UInt8) -> Int? {
    guard position < pattern.count else { return nil }
    switch pattern[position] {
    case UInt8(ascii: "?"): return position + 1
    case UInt8(ascii: "["):
      let (isIn, end) = classContains(byte, from: position + 1)
      return isIn ? end : nil
    case UInt8(ascii: "\\") where position + 1 < pattern.count:
      return pattern[position + 1] == byte ? position + 2 : nil
    case let literal: return literal == byte ? position + 1 : nil
    }
  }

  /// Returns whether a class of bytes has a byte, and where the class ends. One without an end has the rest of the pattern.
  private func classContains(_ byte: UInt8, from start: Int) -> (Bool, end: Int) {
    var position = start
    let isNegated = position < pattern.count && pattern[position] == UInt8(ascii: "^")
    if isNegated { position += 1 }
    var isIn = false
    while position < pattern.count, pattern[position] != UInt8(ascii: "]") {
      if pattern[position] == UInt8(ascii: "\\"), position + 1 < pattern.count {
        position += 1
        if pattern[position] == byte { isIn = true }
      } else if position + 2 < pattern.count, pattern[position + 1] == UInt8(ascii: "-") {
        let bounds = (pattern[position], pattern[position + 2])
        if (min(bounds.0, bounds.1)...max(bounds.0, bounds.1)).contains(byte) { isIn = true }
        position += 2
      } else if pattern[position] == byte {
        isIn = true
      }
      position += 1
    }
    return (isIn != isNegated, min(position + 1, pattern.count))
  }
}
