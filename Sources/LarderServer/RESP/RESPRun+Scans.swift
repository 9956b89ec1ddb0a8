import Storage
import Wire

/// Commands that look for keys.
extension RESPRun {
  /// What KEYS looks at before others get their turn: keys, and what comparing them with the pattern costs.
  private static var keysPerSlice: Int { 4_096 }
  private static var costPerSlice: Int { 256 << 10 }
  /// The maximum size of the reply to KEYS, in bytes.
  private static var maxFoundByteCount: Int { 64 << 20 }

  /// Looks for keys that match a pattern, a slice at a time. The request is executed again until all have been looked at.
  mutating func findKeys(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    try prepareToCount(&map)
    let pattern = try GlobPattern(bytes.extracting(request.word(1, bytes)))
    var search = client.takeKeySearch()
    let prefix = unsafe pattern.prefix.span.bytes
    let matches: Range<Int>
    if prefix.byteCount > Key.maxSize {
      matches = 0..<0
    } else if search.last.isEmpty {
      matches = map.ranks(prefix: prefix, after: nil, reverse: false, now: now)
    } else {
      matches = unsafe map.ranks(prefix: prefix, after: search.last.span.bytes, reverse: false, now: now)
    }
    // Nothing may come between the commands of a transaction.
    let slice = isTransaction ? matches : matches.prefix(Self.keysPerSlice)
    let maxCost = isTransaction ? Int.max : Self.costPerSlice
    var last: UnsafeRawBufferPointer?
    var (visited, cost) = (0, 0)
    do throws(StorageError) {
      visited = try map.scan(ranks: slice, reverse: false, now: now) { entry in
        unsafe last = entry.key
        cost += unsafe pattern.cost(ofMatching: entry.key.count)
        if unsafe pattern.matches(entry.key) {
          unsafe search.found.appendRESP(bulk: RawSpan(_unsafeBytes: entry.key))
          search.count += 1
        }
        return cost < maxCost
      }
    } catch { throw .detour(Detour(error, revealing: map.revisions.last)) }
    if let last = unsafe last { search.last = unsafe Array(last) }
    guard search.found.count <= Self.maxFoundByteCount else {
      throw .error("ERR more keys match than a reply may have; use SCAN")
    }
    if matches.lowerBound + visited < matches.upperBound {
      client.keepKeySearch(search)
      throw .detour(.deferred)
    }
    replies.bytes.appendRESP(arrayOf: search.count)
    replies.bytes.append(unsafe RawSpan(_unsafeBytes: search.found.bytes))
  }

  // MARK: Scan

  /// The number of keys that SCAN looks at if the client doesn't say it, and at most.
  private static var defaultScanCount: Int { 10 }
  private static var maxScanCount: Int { 10_000 }
  /// What looking at a key costs, as comparing it with a pattern does.
  private static var costOfKey: Int { 64 }
  /// The number of matches up to which a scan for a prefix returns all of them at once.
  private static var maxOrderedMatches: Int { 1_000 }
  /// What comparing them with the pattern costs at most, if all of them are of the maximum size.
  private static var maxOrderedCost: Int { 4 << 20 }

  mutating func scan(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    guard let cursor = bytes.extracting(request.word(1, bytes)).decimalNumber, cursor >= 0 else {
      throw .error("ERR invalid cursor")
    }
    let options = try ScanOptions(request, bytes)
    try prepareToCount(&map)
    var found = ByteBuffer()
    var count = 0
    let now = now
    /// Adds a key if it matches, and returns what that costs.
    func add(_ entry: EntryView) -> Int {
      guard !options.isOfOtherType, options.kind == nil || options.kind == entry.kind, !entry.isExpired(at: now) else {
        return 1
      }
      let cost = unsafe 1 + (options.pattern?.cost(ofMatching: entry.key.count) ?? 0) / Self.costOfKey
      if let pattern = options.pattern, unsafe !pattern.matches(entry.key) { return cost }
      unsafe found.appendRESP(bulk: RawSpan(_unsafeBytes: entry.key))
      count += 1
      return cost
    }
    var next = 0
    if cursor == 0, let ranks = orderedMatches(options, &map) {
      do throws(StorageError) {
        _ = try map.scan(ranks: ranks, reverse: false, now: now) { entry in
          _ = add(entry)
          return true
        }
      } catch { throw .detour(Detour(error, revealing: map.revisions.last)) }
    } else {
      guard let position = ScanCursor(cursor, of: map) else { throw .error("ERR invalid cursor") }
      do throws(StorageError) {
        next = ScanCursor.number(
          of: try map.scanHashes(from: position.hash, count: min(options.count, Self.maxScanCount), add), in: map)
      } catch { throw .detour(Detour(error, revealing: map.revisions.last)) }
    }
    replies.bytes.appendRESP(arrayOf: 2)
    replies.bytes.appendRESP(bulk: "\(next)")
    replies.bytes.appendRESP(arrayOf: count)
    replies.bytes.append(unsafe RawSpan(_unsafeBytes: found.bytes))
  }

  /// Returns the ranks of the keys that may match if they are few.
  private func orderedMatches(_ options: ScanOptions, _ map: inout EntryMap) -> Range<Int>? {
    guard let pattern = options.pattern, !pattern.prefix.isEmpty, pattern.prefix.count <= Key.maxSize else {
      return nil
    }
    let ranks = unsafe map.ranks(prefix: pattern.prefix.span.bytes, after: nil, reverse: false, now: now)
    let limit = min(max(options.count, Self.maxOrderedMatches), Self.maxScanCount)
    // Keys that the pattern takes long for are looked at by the hash, some at a time.
    return ranks.count <= limit && ranks.count * pattern.cost(ofMatching: Key.maxSize) <= Self.maxOrderedCost
      ? ranks : nil
  }

  private struct ScanOptions {
    private(set) var pattern: GlobPattern?
    private(set) var count = RESPRun.defaultScanCount
    private(set) var kind: EntryKind?
    /// Whether only entries of a type are wanted that there is none of.
    private(set) var isOfOtherType = false

    init(_ request: RESPRequest, _ bytes: RawSpan) throws(RESPFailure) {
      var words = request.words(from: 2, bytes)
      while let word = words.next(bytes) {
        let option = bytes.extracting(word)
        guard let range = words.next(bytes) else { throw .syntax }
        let value = bytes.extracting(range)
        if option.isWord("MATCH") {
          pattern = try GlobPattern(value)
        } else if option.isWord("COUNT") {
          guard let number = value.decimalNumber else { throw .notAnInteger }
          guard number > 0 else { throw .syntax }
          count = number
        } else if option.isWord("TYPE") {
          isOfOtherType = !value.isWord("STRING") && !value.isWord("LIST")
          kind = value.isWord("LIST") ? .list : .single
        } else {
          throw .syntax
        }
      }
    }
  }
}

/// Where a SCAN goes on: after which hash, in which table of hashes. It is below 2^53, because some clients take it for a
/// floating-point number.
private struct ScanCursor {
  private static let hashBits = 33
  private static let tagMask = 1 << 20 - 1

  let hash: UInt64

  /// - Returns: Nil if it is the cursor of another table.
  init?(_ number: Int, of map: borrowing EntryMap) {
    hash = UInt64(number & (1 << Self.hashBits - 1))
    guard number == 0 || number >> Self.hashBits == Self.tag(of: map) else { return nil }
  }

  /// - Parameter hash: Nil at the end.
  static func number(of hash: UInt64?, in map: borrowing EntryMap) -> Int {
    hash.map { tag(of: map) << hashBits | Int($0) } ?? 0
  }

  private static func tag(of map: borrowing EntryMap) -> Int { Int(map.hashTag) & tagMask }
}
