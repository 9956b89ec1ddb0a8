import Storage
import Wire

/// Commands on values.
extension RESPRun {
  @inline(__always)
  mutating func get(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    guard let entry = try string(bytes.extracting(request.word(1, bytes)), &map) else {
      return replies.bytes.appendRESPNull(version)
    }
    replies.appendRESP(valueOf: entry, attaches: !isTransaction)
  }

  private func appendValue(of entry: EntryView?, _ replies: inout ReplyBuffer) {
    if let entry { replies.appendRESP(valueOf: entry) } else { replies.bytes.appendRESPNull(version) }
  }

  // MARK: Setting

  mutating func set(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let key = bytes.extracting(request.word(1, bytes))
    let value = bytes.extracting(request.word(2, bytes))
    if request.count == 3 {
      try put(key, value, in: memory, &map)
      return replies.bytes.appendRESPOK()
    }
    let options = try RESPSetOptions(request, bytes)
    let expiry = try options.expiry?.mapTime(now: now, of: "set")
    let entry = options.needsEntry ? entry(key, &map) : nil
    if options.returnsValue || options.comparand != nil, let entry, entry.kind != .single { throw .wrongType }
    let isMet = try meets(options, entry, bytes)
    if options.returnsValue { appendValue(of: entry, &replies) }
    guard isMet else {
      if !options.returnsValue { replies.bytes.appendRESPNull(version) }
      return
    }
    let keptExpiry = options.keepsExpiry ? entry?.expiry ?? 0 : 0
    try put(key, value, expiry: expiry ?? keptExpiry, in: memory, &map)
    if !options.returnsValue { replies.bytes.appendRESPOK() }
  }

  private func meets(_ options: RESPSetOptions, _ entry: EntryView?, _ bytes: RawSpan) throws(RESPFailure) -> Bool {
    switch options.condition {
    case .always: return true
    case .absent: return entry == nil
    case .present: return entry != nil
    case .equal, .different:
      guard let comparand = options.comparand else { return false }
      let isWanted = options.condition == .equal
      guard let entry else { return !isWanted }
      let isEqual = try withValue(of: entry) { $0.hasSameBytes(as: bytes.extracting(comparand)) }
      return isEqual == isWanted
    }
  }

  mutating func setExpiring(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let unit: RESPExpiry.Unit = request.command == .setex ? .seconds : .milliseconds
    let expiry = RESPExpiry(bytes.extracting(request.word(2, bytes)), unit, isAbsolute: false)
    let key = bytes.extracting(request.word(1, bytes))
    try put(
      key, bytes.extracting(request.word(3, bytes)), expiry: try expiry.mapTime(now: now, of: request.command.name),
      &map)
    replies.bytes.appendRESPOK()
  }

  mutating func setIfAbsent(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let key = bytes.extracting(request.word(1, bytes))
    guard entry(key, &map) == nil else { return replies.bytes.appendRESP(0) }
    try put(key, bytes.extracting(request.word(2, bytes)), in: memory, &map)
    replies.bytes.appendRESP(1)
  }

  mutating func getAndSet(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let key = bytes.extracting(request.word(1, bytes))
    appendValue(of: try string(key, &map), &replies)
    try put(key, bytes.extracting(request.word(2, bytes)), in: memory, &map)
  }

  mutating func getAndDelete(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let key = bytes.extracting(request.word(1, bytes))
    let entry = try string(key, &map)
    appendValue(of: entry, &replies)
    if entry != nil { _ = try delete(key, &map) }
  }

  mutating func getAndSetExpiry(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let key = bytes.extracting(request.word(1, bytes))
    let options = try RESPSetOptions(request, bytes)
    guard let entry = try string(key, &map) else { return replies.bytes.appendRESPNull(version) }
    let expiry = try options.expiry?.mapTime(now: now, of: "getex")
    appendValue(of: entry, &replies)
    guard let expiry = expiry ?? (options.persists && entry.expiry != 0 ? 0 : nil) else { return }
    try replaceExpiry(of: entry, key, with: expiry, &map)
  }

  // MARK: Many

  mutating func getMany(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) {
    replies.bytes.appendRESP(arrayOf: request.count - 1)
    var keys = request.words(from: 1, bytes)
    var prefetcher = Prefetcher()
    var prefetchedCount = 0
    while true {
      if prefetchedCount == 0 { prefetchedCount = prefetcher.prefetch(keys, of: bytes, &map) }
      guard let key = keys.next(bytes) else { return }
      prefetchedCount -= 1
      let entry = entry(bytes.extracting(key), &map)
      appendValue(of: entry?.kind == .single ? entry : nil, &replies)
    }
  }

  mutating func setMany(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    try putPairs(request, bytes, &map)
    replies.bytes.appendRESPOK()
  }

  mutating func setManyIfAbsent(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    guard request.count % 2 == 1 else { throw .wrongNumberOfArguments(request.command.name) }
    var keys = request.words(from: 1, bytes)
    while let key = keys.next(bytes) {
      if entry(bytes.extracting(key), &map) != nil { return replies.bytes.appendRESP(0) }
      _ = keys.next(bytes)
    }
    try putPairs(request, bytes, &map)
    replies.bytes.appendRESP(1)
  }

  /// Puts the pairs of a request, all or none of them.
  private mutating func putPairs(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap
  ) throws(RESPFailure) {
    guard request.count % 2 == 1 else { throw .wrongNumberOfArguments(request.command.name) }
    var checked = request.words(from: 1, bytes)
    while let key = checked.next(bytes), let value = checked.next(bytes) {
      guard Key.isValid(bytes.extracting(key)) else { throw Self.invalidKey(bytes.extracting(key)) }
      try checkValueSize(value.count)
    }
    try changeTogether(records: request.count / 2, bytes: bytes.byteCount, &map) {
      (run, map) throws(RESPFailure) in
      var pairs = request.words(from: 1, bytes)
      while let key = pairs.next(bytes), let value = pairs.next(bytes) {
        try run.put(bytes.extracting(key), bytes.extracting(value), &map)
      }
    }
  }

  // MARK: Parts

  mutating func length(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    replies.bytes.appendRESP(try string(bytes.extracting(request.word(1, bytes)), &map)?.valueByteCount ?? 0)
  }

  mutating func append(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let key = bytes.extracting(request.word(1, bytes))
    let addition = bytes.extracting(request.word(2, bytes))
    guard let entry = try string(key, &map) else {
      try put(key, addition, in: memory, &map)
      return replies.bytes.appendRESP(addition.byteCount)
    }
    try checkSize(entry.valueByteCount + addition.byteCount)
    try copyValue(of: entry)
    client.scratch.append(addition)
    try putScratch(key, expiry: entry.expiry, &map)
    replies.bytes.appendRESP(client.scratch.count)
  }

  /// Puts what is in the client's scratch buffer.
  mutating func putScratch(_ key: RawSpan, expiry: UInt64, _ map: inout EntryMap) throws(RESPFailure) {
    let client = client
    let value = unsafe RawSpan(_unsafeBytes: client.scratch.bytes)
    try put(key, value, expiry: expiry, &map)
  }

  private func checkSize(_ byteCount: Int) throws(RESPFailure) {
    guard byteCount <= maxValueSize else {
      throw .error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
    }
  }

  mutating func getRange(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let (first, last) = try bounds(request, bytes)
    guard let entry = try string(bytes.extracting(request.word(1, bytes)), &map) else {
      return replies.bytes.appendRESP(bulk: RawSpan())
    }
    let range = Self.range(from: first, through: last, count: entry.valueByteCount)
    replies.bytes.appendRESPBulkHeader(range.count)
    if let value = unsafe entry.value {
      unsafe replies.bytes.append(UnsafeRawBufferPointer(rebasing: value[range]))
    } else if !range.isEmpty, let value = entry.separatedValue {
      unsafe replies.leaveRoom(for: value.part(range), key: entry.key)
    }
    replies.bytes.appendRESPEnd()
  }

  /// Returns the third and fourth word of a request as numbers.
  func bounds(_ request: RESPRequest, _ bytes: RawSpan) throws(RESPFailure) -> (first: Int, last: Int) {
    guard let first = bytes.extracting(request.word(2, bytes)).decimalNumber,
      let last = bytes.extracting(request.word(3, bytes)).decimalNumber
    else { throw .notAnInteger }
    return (first, last)
  }

  /// Returns the range between two positions. Negative positions count from the end.
  static func range(from first: Int, through last: Int, count: Int) -> Range<Int> {
    if first < 0, last < 0, first > last { return 0..<0 }
    let lower = first < 0 ? max(0, first &+ count) : first
    let upper = min(last < 0 ? max(0, last &+ count) : last, count - 1)
    return count == 0 || lower > upper ? 0..<0 : lower..<upper + 1
  }

  mutating func setRange(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let key = bytes.extracting(request.word(1, bytes))
    guard let offset = bytes.extracting(request.word(2, bytes)).decimalNumber else { throw .notAnInteger }
    guard offset >= 0 else { throw .error("ERR offset is out of range") }
    let part = bytes.extracting(request.word(3, bytes))
    let entry = try string(key, &map)
    let count = entry?.valueByteCount ?? 0
    guard !part.isEmpty else { return replies.bytes.appendRESP(count) }
    // The sum of two valid sizes doesn't overflow.
    try checkSize(offset)
    try checkSize(offset + part.byteCount)
    if let entry { try copyValue(of: entry) } else { client.scratch.removeAll() }
    let missing = offset + part.byteCount - count
    if missing > 0 { client.scratch.append([UInt8](repeating: 0, count: missing)) }
    unsafe client.scratch.overwrite(at: offset, byteCount: part.byteCount) { room in
      unsafe part.withUnsafeBytes { part in unsafe room.copyMemory(from: part) }
    }
    try putScratch(key, expiry: entry?.expiry ?? 0, &map)
    replies.bytes.appendRESP(client.scratch.count)
  }
}

/// The options of SET and GETEX.
struct RESPSetOptions {
  enum Condition {
    case always, absent, present, equal, different
  }

  private(set) var condition = Condition.always
  /// What the value is compared with.
  private(set) var comparand: Range<Int>?
  private(set) var returnsValue = false
  private(set) var keepsExpiry = false
  private(set) var persists = false
  private(set) var expiry: RESPExpiry?

  /// Whether the former entry matters.
  var needsEntry: Bool { condition != .always || returnsValue || keepsExpiry }

  init(_ request: RESPRequest, _ bytes: RawSpan) throws(RESPFailure) {
    let isSet = request.command == .set
    var words = request.words(from: isSet ? 3 : 2, bytes)
    while let word = words.next(bytes) {
      let option = bytes.extracting(word)
      if isSet, option.isWord("NX"), condition == .always || condition == .absent {
        condition = .absent
      } else if isSet, option.isWord("XX"), condition == .always || condition == .present {
        condition = .present
      } else if isSet, option.isWord("GET") {
        returnsValue = true
      } else if isSet, option.isWord("IFEQ") || option.isWord("IFNE"), condition == .always,
        let value = words.next(bytes)
      {
        condition = option.isWord("IFEQ") ? .equal : .different
        comparand = value
      } else if isSet, option.isWord("KEEPTTL"), expiry == nil {
        keepsExpiry = true
      } else if !isSet, option.isWord("PERSIST"), expiry == nil {
        persists = true
      } else if !keepsExpiry, !persists, let (unit, isAbsolute) = RESPExpiry.unit(option),
        expiry?.hasUnit(unit, isAbsolute: isAbsolute) != false, let number = words.next(bytes)
      {
        expiry = RESPExpiry(bytes.extracting(number), unit, isAbsolute: isAbsolute)
      } else {
        throw .syntax
      }
    }
  }
}
