import Storage
import Wire

/// A request of RESP in the input of a connection: an array of words, or a line of them.
///
/// A word is a range of the request's bytes. The first four are found by the scan; the rest is found again when it is
/// needed, so that a request is of constant size, and small.
struct RESPRequest: EncodedRequest {
  private static let foundCount = 4

  private struct Slice: BitwiseCopyable {
    var start: UInt32 = 0
    var count: UInt32 = 0
  }

  private let byteCount: UInt32
  private let wordCount: UInt32
  private let found: RESPCommandNames.Found
  /// Whether it is a line, whose words are not found yet.
  let isLine: Bool
  private var slices = InlineArray<4, Slice>(repeating: Slice())

  @inline(__always)
  var size: Int { Int(byteCount) }
  /// The number of words, the name of the command among them.
  @inline(__always)
  var count: Int { Int(wordCount) }
  @inline(__always)
  var command: RESPCommand { found.command }
  var tag: UInt32 { 0 }
  @inline(__always)
  var operation: UInt8 { found.operation }
  /// The selected database is the only store that is open.
  @inline(__always)
  var store: UInt16 { found.isOnEntries ? 1 : 0 }
  var isRegular: Bool { true }
  /// Whether it changes entries.
  var isWrite: Bool { found.isWrite }
  /// The number of entries that it puts, unless it is executed although a store is full.
  var putCount: Int {
    guard command.descriptor.flags.contains(.refusedWhenFull) else { return 0 }
    return command == .mset || command == .msetnx ? count / 2 : 1
  }
  /// Whether it is executed at once within a transaction, instead of being queued.
  @inline(__always)
  var controlsTransaction: Bool { found.controlsTransaction }
  /// Whether it has as many words as its command takes; false if that depends on a subcommand.
  @inline(__always)
  var hasValidCount: Bool { found.accepts(count) }

  @inline(__always)
  func body(at offset: Int) -> Range<Int> { offset..<offset &+ size }

  /// The range of a word in the request's bytes, counted from the name of the command. O(1) for the first four.
  @inline(__always)
  func word(_ index: Int, _ bytes: RawSpan) -> Range<Int> {
    if index < Self.foundCount {
      let slice = slices[index]
      return Int(slice.start)..<Int(slice.start) &+ Int(slice.count)
    }
    return laterWord(index, bytes)
  }

  private func laterWord(_ index: Int, _ bytes: RawSpan) -> Range<Int> {
    var words = words(from: Self.foundCount - 1, bytes)
    for _ in Self.foundCount - 1..<index { _ = words.next(bytes) }
    return words.next(bytes) ?? 0..<0
  }

  /// The words from one of the first four on.
  func words(from index: Int, _ bytes: RawSpan) -> RESPWords {
    precondition(index < Self.foundCount)
    guard index < count else { return RESPWords(remaining: 0, position: 0) }
    return RESPWords(remaining: count - index, after: word(index, bytes))
  }

  // MARK: Scanning

  /// The maximum size of a line, and of the line with a length, in bytes.
  private static let maxLineSize = 64 << 10
  /// The maximum size of a request of a client that has yet to prove who it is, in bytes.
  static let maxSizeBeforeAuthentication = 4 << 10
  /// The maximum number of words.
  static let maxCount = 1 << 20
  /// The size of the smallest word, in bytes.
  private static let minWordSize = 6

  /// Looks for a request at an offset.
  /// - Parameter maxSize: The maximum size of a request, in bytes.
  @inline(__always)
  static func scan(_ bytes: RawSpan, at offset: Int, maxSize: Int) -> RequestScan<RESPRequest> {
    guard offset < bytes.byteCount else { return .partial(size: 0) }
    guard unsafe bytes.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self) == UInt8(ascii: "*") else {
      return scanLine(bytes, at: offset, maxSize: maxSize)
    }
    return scanArray(bytes, at: offset, maxSize: maxSize)
  }

  private static func scanArray(_ bytes: RawSpan, at offset: Int, maxSize: Int) -> RequestScan<RESPRequest> {
    guard case .length(let count, var position) = RESPLength(bytes, at: offset &+ 1), count > 0, count <= maxCount
    else {
      return scanCount(bytes, at: offset)
    }
    var slices = InlineArray<4, Slice>(repeating: Slice())
    var index = 0
    while index < count {
      guard position < bytes.byteCount,
        unsafe bytes.unsafeLoad(fromUncheckedByteOffset: position, as: UInt8.self) == UInt8(ascii: "$"),
        case .length(let length, let start) = RESPLength(bytes, at: position &+ 1), length >= 0,
        start &+ length &+ 2 <= bytes.byteCount
      else {
        return scanIncomplete(bytes, at: offset, word: position, remaining: count &- index, maxSize: maxSize)
      }
      if index < foundCount {
        slices[index] = Slice(
          start: UInt32(truncatingIfNeeded: start &- offset), count: UInt32(truncatingIfNeeded: length))
      }
      position = start &+ length &+ 2
      index &+= 1
    }
    guard position &- offset <= maxSize else { return .invalid(tooLarge(maxSize)) }
    let name = slices[0]
    let start = offset &+ Int(name.start)
    let found = RESPCommandNames.find(bytes, start, byteCount: Int(name.count))
    return .request(RESPRequest(size: position &- offset, found, count: count, isLine: false, slices))
  }

  /// Scans an array without words, or one whose number of words is incomplete or invalid.
  @inline(never)
  private static func scanCount(_ bytes: RawSpan, at offset: Int) -> RequestScan<RESPRequest> {
    switch RESPLength(bytes, at: offset &+ 1) {
    case .partial: return .partial(size: 0)
    case .length(let count, let end) where count <= 0: return .request(RESPRequest(nothing: end &- offset))
    case .invalid, .length: return .invalid(flaw("invalid multibulk length"))
    }
  }

  /// Scans a word that is incomplete, invalid or too large.
  /// - Parameters:
  ///   - position: Where the word begins.
  ///   - remaining: The number of words from this one on.
  @inline(never)
  private static func scanIncomplete(
    _ bytes: RawSpan, at offset: Int, word position: Int, remaining: Int, maxSize: Int
  ) -> RequestScan<RESPRequest> {
    let minSize = position &- offset &+ remaining &* minWordSize
    guard minSize <= maxSize else { return .invalid(tooLarge(maxSize)) }
    guard position < bytes.byteCount else { return .partial(size: minSize) }
    let type = unsafe bytes.unsafeLoad(fromUncheckedByteOffset: position, as: UInt8.self)
    guard type == UInt8(ascii: "$") else {
      return .invalid(flaw("expected '$', got '\(Character(UnicodeScalar(type)))'"))
    }
    switch RESPLength(bytes, at: position &+ 1) {
    case .partial:
      // At least the rest of the length's line is missing, and the end of the word.
      let size = max(minSize, bytes.byteCount &- offset &+ 3 &+ (remaining &- 1) &* minWordSize)
      return size <= maxSize ? .partial(size: size) : .invalid(tooLarge(maxSize))
    case .length(let length, let start) where length >= 0:
      let size = start &+ length &+ 2 &+ (remaining &- 1) &* minWordSize &- offset
      return size <= maxSize ? .partial(size: size) : .invalid(tooLarge(maxSize, "invalid bulk length; "))
    case .invalid, .length: return .invalid(flaw("invalid bulk length"))
    }
  }

  @inline(never)
  private static func scanLine(_ bytes: RawSpan, at offset: Int, maxSize: Int) -> RequestScan<RESPRequest> {
    let maxLineSize = min(maxLineSize, maxSize)
    let limit = min(bytes.byteCount, offset + maxLineSize)
    var end = offset
    while end < limit, unsafe bytes.unsafeLoad(fromUncheckedByteOffset: end, as: UInt8.self) != UInt8(ascii: "\n") {
      end += 1
    }
    guard end < limit else {
      return end - offset < maxLineSize ? .partial(size: 0) : .invalid(flaw("too big inline request"))
    }
    let size = end + 1 - offset
    var start = offset
    func byte(_ position: Int) -> UInt8 { unsafe bytes.unsafeLoad(fromUncheckedByteOffset: position, as: UInt8.self) }
    while start < end, RESPLine.isSpace(byte(start)) { start += 1 }
    var nameEnd = start
    while nameEnd < end, !RESPLine.isSpace(byte(nameEnd)) { nameEnd += 1 }
    guard start < nameEnd else { return .request(RESPRequest(nothing: size)) }
    let name = bytes.extracting(start..<nameEnd)
    if RESPLine.isHTTP(name) { return .invalid(CommandFailure(.malformed, "this is not an HTTP server")) }
    return .request(
      RESPRequest(
        size: size, RESPCommandNames.find(bytes, start, byteCount: nameEnd - start), count: 1, isLine: true,
        InlineArray(repeating: Slice())))
  }

  private static func flaw(_ text: String) -> CommandFailure { CommandFailure(.malformed, "Protocol error: \(text)") }

  /// - Parameter reason: What a client of Redis looks for in the message.
  private static func tooLarge(_ maxSize: Int, _ reason: String = "") -> CommandFailure {
    let cause = maxSize == maxSizeBeforeAuthentication ? " before AUTH" : ", limits.frame-bytes"
    return CommandFailure(.frameLength, "Protocol error: \(reason)a request has at most \(maxSize) bytes\(cause)")
  }

  @inline(__always)
  private init(
    size: Int, _ found: RESPCommandNames.Found, count: Int, isLine: Bool, _ slices: InlineArray<4, Slice>
  ) {
    (byteCount, wordCount) = (UInt32(truncatingIfNeeded: size), UInt32(truncatingIfNeeded: count))
    (self.found, self.isLine, self.slices) = (found, isLine, slices)
  }

  /// Creates a request without words, which has no reply.
  private init(nothing size: Int) {
    (byteCount, wordCount, found, isLine) = (UInt32(truncatingIfNeeded: size), 0, .unknown, false)
  }
}

/// The words of a request, one after the other.
struct RESPWords {
  private(set) var remaining: Int
  /// Where the `$` of the next word is.
  private var position: Int
  private var first: Range<Int>?

  fileprivate init(remaining: Int, position: Int) {
    (self.remaining, self.position, first) = (remaining, position, nil)
  }

  fileprivate init(remaining: Int, after first: Range<Int>) {
    (self.remaining, position, self.first) = (remaining, first.upperBound + 2, first)
  }

  /// - Returns: Nil at the end.
  @inline(__always)
  mutating func next(_ bytes: RawSpan) -> Range<Int>? {
    guard remaining > 0 else { return nil }
    remaining &-= 1
    if let first = first.take() { return first }
    guard case .length(let length, let start) = RESPLength(bytes, at: position &+ 1) else { return nil }
    position = start &+ length &+ 2
    return start..<start &+ length
  }
}

extension Prefetcher {
  /// Prefetches everything that the next keys among words need.
  /// - Returns: The number of those words.
  mutating func prefetch(_ keys: RESPWords, of bytes: RawSpan, _ map: inout EntryMap) -> Int {
    var keys = keys
    let count = keys.remaining
    while !isFull, let key = keys.next(bytes) {
      if Key.isValidSize(key.count) { add(bytes.extracting(key), &map) }
    }
    prefetchRecords(&map)
    return count - keys.remaining
  }
}

/// A length in the input, with the end of its line.
private enum RESPLength {
  case length(Int, end: Int)
  case partial
  case invalid

  /// The digits of the largest length, with its sign.
  private static var maxDigits: Int { 20 }

  @inline(__always)
  init(_ bytes: RawSpan, at start: Int) {
    if let short = Self.short(bytes, at: start) {
      self = .length(short.value, end: short.end)
    } else {
      self.init(anySize: bytes, at: start)
    }
  }

  /// Returns a length of one to three digits, read at once; nil if it may be anything else.
  @inline(__always)
  private static func short(_ bytes: RawSpan, at start: Int) -> (value: Int, end: Int)? {
    guard start &+ 8 <= bytes.byteCount else { return nil }
    let word = unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: start, as: UInt64.self)
    let first = (word & 0xFF) &- 0x30
    guard first < 10 else { return nil }
    if word >> 8 & 0xFFFF == 0x0A0D { return (Int(truncatingIfNeeded: first), start &+ 3) }
    let second = (word >> 8 & 0xFF) &- 0x30
    guard second < 10 else { return nil }
    let two = first &* 10 &+ second
    if word >> 16 & 0xFFFF == 0x0A0D { return (Int(truncatingIfNeeded: two), start &+ 4) }
    let third = (word >> 16 & 0xFF) &- 0x30
    guard third < 10, word >> 24 & 0xFFFF == 0x0A0D else { return nil }
    return (Int(truncatingIfNeeded: two &* 10 &+ third), start &+ 5)
  }

  @inline(never)
  private init(anySize bytes: RawSpan, at start: Int) {
    var (position, value, isNegative) = (start, 0, false)
    let limit = min(bytes.byteCount, start &+ Self.maxDigits)
    while position < limit {
      let byte = unsafe bytes.unsafeLoad(fromUncheckedByteOffset: position, as: UInt8.self)
      if byte &- 0x30 < 10 {
        value = value &* 10 &+ Int(byte &- 0x30)
        // No valid length is as large, and no larger one overflows.
        guard value < 1 << 40 else {
          self = .invalid
          return
        }
      } else if byte == UInt8(ascii: "-"), position == start {
        isNegative = true
      } else {
        guard byte == UInt8(ascii: "\r"), position > start &+ (isNegative ? 1 : 0) else {
          self = .invalid
          return
        }
        self = position &+ 2 <= bytes.byteCount ? .length(isNegative ? -value : value, end: position &+ 2) : .partial
        return
      }
      position &+= 1
    }
    self = position < start &+ Self.maxDigits ? .partial : .invalid
  }
}
