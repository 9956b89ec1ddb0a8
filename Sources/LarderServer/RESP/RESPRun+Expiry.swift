import Storage
import Wire

/// Commands on the expiry of entries.
extension RESPRun {
  /// Writes an entry again, with another expiry.
  mutating func replaceExpiry(
    of entry: EntryView, _ key: RawSpan, with expiry: UInt64, _ map: inout EntryMap
  ) throws(RESPFailure) {
    if expiry != 0, expiry <= now {
      _ = try delete(key, &map)
      return
    }
    let kind = entry.kind
    try copyValue(of: entry)
    let client = client
    let value = unsafe RawSpan(_unsafeBytes: client.scratch.bytes)
    try put(key, value, kind: kind, expiry: expiry, isSameValue: true, &map)
  }

  mutating func setExpiry(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let command = request.command
    let unit: RESPExpiry.Unit = command == .expire || command == .expireat ? .seconds : .milliseconds
    let isAbsolute = command == .expireat || command == .pexpireat
    let key = bytes.extracting(request.word(1, bytes))
    let condition = try ExpiryCondition(request, bytes)
    let number = RESPExpiry(bytes.extracting(request.word(2, bytes)), unit, isAbsolute: isAbsolute)
    let expiry = try number.mapTime(now: now, of: command.name, permitsPast: true)
    guard let entry = entry(key, &map), condition.isMet(by: expiry, replacing: entry.expiry) else {
      return replies.bytes.appendRESP(0)
    }
    try replaceExpiry(of: entry, key, with: expiry, &map)
    replies.bytes.appendRESP(1)
  }

  /// A condition on the expiry that is replaced.
  private struct ExpiryCondition {
    private var isAbsent = false
    private var isPresent = false
    private var isGreater = false
    private var isLess = false

    init(_ request: RESPRequest, _ bytes: RawSpan) throws(RESPFailure) {
      var words = request.words(from: 3, bytes)
      while let word = words.next(bytes) {
        let option = bytes.extracting(word)
        if option.isWord("NX") {
          isAbsent = true
        } else if option.isWord("XX") {
          isPresent = true
        } else if option.isWord("GT") {
          isGreater = true
        } else if option.isWord("LT") {
          isLess = true
        } else {
          throw .error("ERR Unsupported option \(option.toString())")
        }
      }
      if isAbsent, isPresent || isGreater || isLess {
        throw .error("ERR NX and XX, GT or LT options at the same time are not compatible")
      }
      if isGreater, isLess { throw .error("ERR GT and LT options at the same time are not compatible") }
    }

    /// - Parameter former: 0 if the entry doesn't expire, which is later than any time.
    func isMet(by expiry: UInt64, replacing former: UInt64) -> Bool {
      if isAbsent, former != 0 { return false }
      if isPresent, former == 0 { return false }
      if isGreater, former == 0 || expiry <= former { return false }
      return !isLess || former == 0 || expiry < former
    }
  }

  mutating func persist(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let key = bytes.extracting(request.word(1, bytes))
    guard let entry = entry(key, &map), entry.expiry != 0 else { return replies.bytes.appendRESP(0) }
    try replaceExpiry(of: entry, key, with: 0, &map)
    replies.bytes.appendRESP(1)
  }

  /// Appends when an entry expires, or how long it exists.
  mutating func appendExpiry(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) {
    guard let entry = entry(bytes.extracting(request.word(1, bytes)), &map) else {
      return replies.bytes.appendRESP(-2)
    }
    guard entry.expiry != 0 else { return replies.bytes.appendRESP(-1) }
    let time = Int(entry.expiry) + WallClock.offset
    let lifetime = max(0, time - WallClock.microseconds() / 1_000)
    switch request.command {
    case .ttl: replies.bytes.appendRESP((lifetime + 500) / 1_000)
    case .pttl: replies.bytes.appendRESP(lifetime)
    case .expiretime: replies.bytes.appendRESP((time + 500) / 1_000)
    default: replies.bytes.appendRESP(time)
    }
  }
}
