/// A pattern for whole strings, as in the operator `$like`: `*` stands for any run of characters, `?` for one Unicode
/// scalar, and a backslash makes the next character an ordinary one.
public struct LikePattern: Equatable, Sendable {
  private enum Part: Equatable, Sendable {
    case byte(UInt8)
    case anyScalar
    case anyRun
  }

  /// What the pattern consists of. No two runs are next to each other.
  private let parts: [Part]

  /// The largest size of a pattern's text, in bytes. It bounds the time of a match.
  public static let maxByteCount = 1024

  /// Creates a pattern from text. Returns nil if the text ends with a backslash that escapes nothing, or if it has more
  /// than `maxByteCount` bytes.
  public init?(_ text: String) {
    guard text.utf8.count <= Self.maxByteCount else { return nil }
    self.init(parsing: text.utf8)
  }

  private init?(parsing text: some Sequence<UInt8>) {
    var (parts, isEscaped) = ([Part](), false)
    for byte in text {
      switch byte {
      case _ where isEscaped:
        parts.append(.byte(byte))
        isEscaped = false
      case UInt8(ascii: "\\"): isEscaped = true
      case UInt8(ascii: "*"): if parts.last != .anyRun { parts.append(.anyRun) }
      case UInt8(ascii: "?"): parts.append(.anyScalar)
      default: parts.append(.byte(byte))
      }
    }
    guard !isEscaped else { return nil }
    self.parts = parts
  }

  /// Returns the pattern for text from which the options have removed what they ignore.
  func folded(_ options: Selector.StringOptions) -> LikePattern {
    guard !options.isEmpty else { return self }
    // Folding neither adds nor removes any of the characters with a meaning, so that every escape keeps its character.
    guard let pattern = LikePattern(parsing: options.folded(Array(description.utf8))) else {
      preconditionFailure("folding a pattern has removed an escaped character")
    }
    return pattern
  }

  /// Returns a Boolean value that indicates whether the whole text matches.
  /// - Parameter text: Valid UTF-8.
  /// - Complexity: O(*n* · *m*) for *n* bytes of text and *m* of the pattern, usually O(*n*); no allocation.
  func matches(_ text: Span<UInt8>) -> Bool {
    let parts = parts.span
    var (place, part) = (0, 0)
    // Where to go on if what follows the last run doesn't match. Earlier runs need no second try: taking as little as
    // possible leaves the most for what follows.
    var retry: (place: Int, part: Int)?
    while place < text.count || part < parts.count {
      if part < parts.count {
        switch parts[part] {
        case .anyRun:
          part += 1
          if part == parts.count { return true }
          retry = (place, part)
          continue
        case .byte(let byte):
          if place < text.count, text[place] == byte {
            (place, part) = (place + 1, part + 1)
            continue
          }
        case .anyScalar:
          if place < text.count {
            (place, part) = (text.endOfScalar(at: place), part + 1)
            continue
          }
        }
      }
      guard let last = retry, last.place < text.count else { return false }
      (place, part) = (text.endOfScalar(at: last.place), last.part)
      retry = (place, part)
    }
    return true
  }
}

extension Span<UInt8> {
  /// Returns the position after a scalar of valid UTF-8, from the position of its first byte.
  @inline(__always)
  fileprivate func endOfScalar(at position: Int) -> Int {
    switch self[position] {
    case ..<0x80: position + 1
    case ..<0xE0: position + 2
    case ..<0xF0: position + 3
    default: position + 4
    }
  }
}

extension LikePattern: ExpressibleByStringLiteral {
  /// Creates a pattern from a literal.
  /// - Precondition: The literal is a pattern. To read a pattern that isn't known when the program is written, call
  ///   `init(_:)` with a `String`, which returns nil in that case.
  public init(stringLiteral text: String) {
    guard let pattern = LikePattern(text) else {
      preconditionFailure("\"\(text)\" is no pattern: it ends with a single backslash, or is too long")
    }
    self = pattern
  }
}

extension LikePattern: CustomStringConvertible {
  /// The pattern as text, with as few escapes as possible. `init(_:)` reads it as an equal pattern.
  public var description: String {
    var text: [UInt8] = []
    for part in parts {
      switch part {
      case .anyRun: text.append(UInt8(ascii: "*"))
      case .anyScalar: text.append(UInt8(ascii: "?"))
      case .byte(let byte):
        if [UInt8(ascii: "*"), UInt8(ascii: "?"), UInt8(ascii: "\\")].contains(byte) {
          text.append(UInt8(ascii: "\\"))
        }
        text.append(byte)
      }
    }
    return String(decoding: text, as: UTF8.self)
  }
}
