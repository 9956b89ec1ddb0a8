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
  private let automaton: Automaton

  /// The largest size of a pattern's text, in bytes. It bounds the time of a match.
  public static let maxByteCount = 16 * 1024

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
    automaton = Automaton(parts)
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
  /// - Parameters:
  ///   - text: Valid UTF-8.
  ///   - budget: Once it is exhausted, the result means nothing.
  /// - Complexity: O(*n* · (1 + *m* / 64)) for *n* bytes of text and *m* of the pattern.
  func matches(_ text: Span<UInt8>, _ budget: inout WorkBudget) -> Bool { automaton.matches(text, &budget) }

  /// Patterns are equal if they match the same way, however their characters are escaped.
  public static func == (left: LikePattern, right: LikePattern) -> Bool { left.parts == right.parts }
}

extension LikePattern {
  /// All states that a match can be in after some text, as bits. In state *i*, the text has matched the first *i* bytes
  /// and single scalars of the pattern; runs are loops in a state.
  ///
  /// All states take a step at once for each byte of the text, without ever going back.
  private struct Automaton: Sendable {
    private let wordCount: Int
    /// For each byte, `wordCount` words: the states from which the byte leads to the next one.
    private var steps: [UInt64]
    /// The states in which every byte is skipped.
    private var loops: [UInt64]
    /// The states after a single scalar, whose further bytes are skipped.
    private var tails: [UInt64]
    private let end: Int

    init(_ parts: [Part]) {
      end = parts.count { $0 != .anyRun }
      wordCount = end / 64 + 1
      steps = Array(repeating: 0, count: 256 * wordCount)
      loops = Array(repeating: 0, count: wordCount)
      tails = loops
      var state = 0
      for part in parts {
        let (word, bit) = (state / 64, UInt64(1) << (state % 64))
        switch part {
        case .anyRun:
          loops[word] |= bit
          continue
        case .byte(let byte): steps[Int(byte) * wordCount + word] |= bit
        case .anyScalar:
          for byte in 0..<256 where !Self.isContinuation(UInt8(byte)) { steps[byte * wordCount + word] |= bit }
          tails[(state + 1) / 64] |= 1 << ((state + 1) % 64)
        }
        state += 1
      }
    }

    @inline(__always)
    private static func isContinuation(_ byte: UInt8) -> Bool { byte & 0xC0 == 0x80 }

    func matches(_ text: Span<UInt8>, _ budget: inout WorkBudget) -> Bool {
      guard wordCount == 1 else { return matchesInManyWords(text, &budget) }
      return budget.spend(text.count / 8) && matchesInOneWord(text)
    }

    private func matchesInOneWord(_ text: Span<UInt8>) -> Bool {
      let (steps, loops, tails) = (steps.span, loops[0], tails[0])
      var states: UInt64 = 1
      for index in text.indices {
        let byte = text[index]
        let skipping = Self.isContinuation(byte) ? loops | tails : loops
        states = (states & steps[Int(byte)]) << 1 | states & skipping
        if states == 0 { return false }
      }
      return states >> end & 1 == 1
    }

    private func matchesInManyWords(_ text: Span<UInt8>, _ budget: inout WorkBudget) -> Bool {
      let (steps, loops, tails) = (steps.span, loops.span, tails.span)
      var storage = [UInt64](repeating: 0, count: wordCount)
      var states = storage.mutableSpan
      states[0] = 1
      for index in text.indices {
        if index & 63 == 0, !budget.spend(4 &* wordCount) { return false }
        let byte = text[index]
        let (first, tailMask) = (Int(byte) * wordCount, Self.isContinuation(byte) ? UInt64.max : 0)
        var (carry, all): (UInt64, UInt64) = (0, 0)
        for word in 0..<wordCount {
          let state = states[word]
          let stepped = state & steps[first + word]
          let next = stepped << 1 | carry | state & (loops[word] | tails[word] & tailMask)
          carry = stepped >> 63
          states[word] = next
          all |= next
        }
        if all == 0 { return false }
      }
      return states[end / 64] >> (end % 64) & 1 == 1
    }
  }
}

extension LikePattern: ExpressibleByStringLiteral {
  /// Creates a pattern from a literal.
  /// - Precondition: The literal is a pattern. To read a pattern that isn't known when the program is written, call
  ///   `init(_:)` with a `String`, which returns nil in that case.
  public init(stringLiteral text: String) {
    guard let pattern = LikePattern(text) else {
      preconditionFailure("\"\(text)\" is not a valid pattern: it ends with a single backslash, or is too long")
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
