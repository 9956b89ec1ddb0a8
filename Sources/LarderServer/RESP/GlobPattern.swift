/// A pattern of keys or channels: `*`, `?`, `[a-c]`, `[^a]`, and `\` before any of these that stands for itself.
///
/// It is compiled to an automaton whose states are bits. Bit *n* of a set of states says that the first *n* elements of
/// the pattern match the text so far; stars are not elements, but states that stay, whatever follows. A byte moves 64
/// states at once, so that the time of a match depends on the size of the text, and not on what the pattern has.
struct GlobPattern {
  /// The maximum size of a pattern, in bytes.
  static let maxSize = 4_096

  /// The bytes that every match begins with.
  let prefix: [UInt8]
  /// Whether everything that begins with the prefix matches.
  let isPrefixOnly: Bool
  /// Whether only one text can match.
  private let isLiteral: Bool
  /// The number of elements, each of which matches one byte.
  private let elementCount: Int
  private let hasStars: Bool
  /// The number of words of a set of states.
  private let wordCount: Int
  /// The row of each byte; 0 for bytes that the pattern doesn't mention.
  private var rows: [UInt8] = []
  /// For each row, the states that its bytes lead to from the state before.
  private var targets: [UInt64] = []
  /// The states before a star.
  private var lasting: [UInt64] = []

  init(_ pattern: RawSpan) throws(RESPFailure) {
    guard pattern.byteCount <= Self.maxSize else { throw .error("ERR a pattern has at most \(Self.maxSize) bytes") }
    let (elements, stars) = Self.parse(unsafe pattern.withUnsafeBytes { unsafe Array($0) })
    let literals = elements.prefix(stars.first ?? elements.count).prefix { $0.literal != nil }
    prefix = literals.compactMap(\.literal)
    hasStars = !stars.isEmpty
    isLiteral = !hasStars && prefix.count == elements.count
    isPrefixOnly = hasStars && prefix.count == elements.count && stars.allSatisfy { $0 == elements.count }
    elementCount = elements.count
    wordCount = elements.count / 64 + 1
    if !isLiteral, !isPrefixOnly { compile(elements, stars) }
  }

  /// The memory that it takes, in bytes.
  var byteCount: Int { prefix.count + rows.count + 8 * (targets.count + lasting.count) }

  /// What a match takes at most, in bytes of a text that a short pattern is compared with.
  func cost(ofMatching byteCount: Int) -> Int { isPrefixOnly ? 1 : byteCount * wordCount }

  // MARK: Compiling

  /// What matches one byte.
  private struct Element {
    /// The only byte that it matches; nil if there may be several.
    let literal: UInt8?
    /// The bytes that it mentions.
    let bytes: ByteSet
    /// Whether it matches the other bytes.
    let isNegated: Bool

    static let any = Element(literal: nil, bytes: ByteSet(), isNegated: true)

    init(_ byte: UInt8) {
      var bytes = ByteSet()
      bytes.insert(byte...byte)
      self.init(literal: byte, bytes: bytes, isNegated: false)
    }

    init(literal: UInt8?, bytes: ByteSet, isNegated: Bool) {
      (self.literal, self.bytes, self.isNegated) = (literal, bytes, isNegated)
    }
  }

  /// - Returns: The elements, and the number of elements before each star.
  private static func parse(_ pattern: [UInt8]) -> (elements: [Element], stars: [Int]) {
    var (elements, stars): ([Element], [Int]) = ([], [])
    var position = 0
    while position < pattern.count {
      let byte = pattern[position]
      position += 1
      switch byte {
      case UInt8(ascii: "*"): stars.append(elements.count)
      case UInt8(ascii: "?"): elements.append(.any)
      case UInt8(ascii: "["): elements.append(parseClass(pattern, &position))
      case UInt8(ascii: "\\") where position < pattern.count:
        elements.append(Element(pattern[position]))
        position += 1
      default: elements.append(Element(byte))
      }
    }
    return (elements, stars)
  }

  /// Parses a class of bytes. One without an end has the rest of the pattern.
  private static func parseClass(_ pattern: [UInt8], _ position: inout Int) -> Element {
    let isNegated = position < pattern.count && pattern[position] == UInt8(ascii: "^")
    if isNegated { position += 1 }
    var bytes = ByteSet()
    while position < pattern.count, pattern[position] != UInt8(ascii: "]") {
      if pattern[position] == UInt8(ascii: "\\"), position + 1 < pattern.count {
        position += 1
        bytes.insert(pattern[position]...pattern[position])
      } else if position + 2 < pattern.count, pattern[position + 1] == UInt8(ascii: "-") {
        let bounds = (pattern[position], pattern[position + 2])
        bytes.insert(min(bounds.0, bounds.1)...max(bounds.0, bounds.1))
        position += 2
      } else {
        bytes.insert(pattern[position]...pattern[position])
      }
      position += 1
    }
    position = min(position + 1, pattern.count)
    return Element(literal: nil, bytes: bytes, isNegated: isNegated)
  }

  private mutating func compile(_ elements: [Element], _ stars: [Int]) {
    var mentioned = ByteSet()
    for element in elements { mentioned.formUnion(element.bytes) }
    rows = [UInt8](repeating: 0, count: 256)
    var rowCount = 1
    // If all bytes are mentioned, none is in row 0, which the last one can have.
    mentioned.visit { byte in
      rows[Int(byte)] = UInt8(truncatingIfNeeded: rowCount)
      rowCount += 1
    }
    targets = [UInt64](repeating: 0, count: min(rowCount, 256) * wordCount)
    for (index, element) in elements.enumerated() {
      let (word, bit) = ((index + 1) / 64, UInt64(1) << UInt64((index + 1) % 64))
      if element.isNegated {
        for start in stride(from: 0, to: targets.count, by: wordCount) { targets[start + word] |= bit }
      }
      element.bytes.visit { byte in
        let target = Int(rows[Int(byte)]) * wordCount + word
        if element.isNegated { targets[target] &= ~bit } else { targets[target] |= bit }
      }
    }
    lasting = [UInt64](repeating: 0, count: wordCount)
    for state in stars { lasting[state / 64] |= 1 << UInt64(state % 64) }
  }

  // MARK: Matching

  /// Returns whether a text matches.
  func matches(_ text: UnsafeRawBufferPointer) -> Bool {
    guard text.count >= elementCount, hasStars || text.count == elementCount, unsafe text.starts(with: prefix) else {
      return false
    }
    if isPrefixOnly || isLiteral { return true }
    let rest = unsafe UnsafeRawBufferPointer(rebasing: text[prefix.count...])
    return wordCount == 1 ? unsafe matchesInOneWord(rest) : unsafe matchesInWords(rest)
  }

  /// Returns whether a text matches whose prefix has been read.
  private func matchesInOneWord(_ text: UnsafeRawBufferPointer) -> Bool {
    let lasting = lasting[0]
    var states: UInt64 = 1 << UInt64(prefix.count)
    for index in text.indices {
      let byte = unsafe text[index]
      states = (states << 1) & targets[Int(rows[Int(byte)])] | states & lasting
      if states == 0 { return false }
    }
    return states >> UInt64(elementCount) & 1 != 0
  }

  private func matchesInWords(_ text: UnsafeRawBufferPointer) -> Bool {
    unsafe withUnsafeTemporaryAllocation(of: UInt64.self, capacity: wordCount) { states in
      unsafe states.initialize(repeating: 0)
      unsafe states[prefix.count / 64] = 1 << UInt64(prefix.count % 64)
      // Each byte leads at most one state farther.
      var last = prefix.count
      for index in text.indices {
        let byte = unsafe text[index]
        last = min(last + 1, elementCount)
        let row = Int(rows[Int(byte)]) * wordCount
        var carried: UInt64 = 0
        var found: UInt64 = 0
        for word in 0...last / 64 {
          let former = unsafe states[word]
          unsafe states[word] = (former << 1 | carried) & targets[row + word] | former & lasting[word]
          carried = former >> 63
          unsafe found |= states[word]
        }
        if found == 0 { return false }
      }
      return unsafe states[elementCount / 64] >> UInt64(elementCount % 64) & 1 != 0
    }
  }
}

/// A set of bytes, as 256 bits.
private struct ByteSet {
  private var words = InlineArray<4, UInt64>(repeating: 0)

  mutating func insert(_ bytes: ClosedRange<UInt8>) {
    for byte in bytes { words[Int(byte >> 6)] |= 1 << UInt64(byte & 63) }
  }

  mutating func formUnion(_ other: ByteSet) {
    for index in 0..<4 { words[index] |= other.words[index] }
  }

  /// Calls `body` with each byte, in ascending order.
  func visit(_ body: (UInt8) -> Void) {
    for index in 0..<4 {
      var rest = words[index]
      while rest != 0 {
        body(UInt8(index * 64 + rest.trailingZeroBitCount))
        rest &= rest - 1
      }
    }
  }
}
