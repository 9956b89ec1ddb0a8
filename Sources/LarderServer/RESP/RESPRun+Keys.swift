import Storage
import Wire

/// Commands on keys.
extension RESPRun {
  /// Lets the changes in `body` be one commit.
  /// - Parameters:
  ///   - records: The number of puts.
  ///   - bytes: The size of their keys and values.
  mutating func changeTogether(
    records: Int, bytes: Int, _ map: inout EntryMap,
    _ body: (inout RESPRun, inout EntryMap) throws(RESPFailure) -> Void
  ) throws(RESPFailure) {
    if isTransaction { return try body(&self, &map) }
    do throws(StorageError) { try map.reserve(records: records, bytes: bytes) } catch {
      throw .detour(Detour(error, revealing: map.revisions.last))
    }
    beginTransaction(map.revisions)
    defer { endTransaction() }
    try body(&self, &map)
  }

  mutating func deleteKeys(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    var count = 0
    if request.count == 2 {
      count = try delete(bytes.extracting(request.word(1, bytes)), &map) ? 1 : 0
    } else {
      try changeTogether(records: 0, bytes: 0, &map) { (run, map) throws(RESPFailure) in
        var keys = request.words(from: 1, bytes)
        while let key = keys.next(bytes) {
          if try run.delete(bytes.extracting(key), &map) { count += 1 }
        }
      }
    }
    replies.bytes.appendRESP(count)
  }

  mutating func deleteIfEqual(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let comparand = bytes.extracting(request.word(2, bytes))
    try delete(bytes.extracting(request.word(1, bytes)), &map, &replies) { $0.hasSameBytes(as: comparand) }
  }

  mutating func deleteConditionally(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let key = bytes.extracting(request.word(1, bytes))
    guard request.count != 2 else { return replies.bytes.appendRESP(try delete(key, &map) ? 1 : 0) }
    guard request.count == 4 else { throw .wrongNumberOfArguments(request.command.name) }
    let option = bytes.extracting(request.word(2, bytes))
    let isEqual = option.isWord("IFEQ")
    guard isEqual || option.isWord("IFNE") else { throw .error("ERR Invalid condition. Use IFEQ or IFNE") }
    let comparand = bytes.extracting(request.word(3, bytes))
    try delete(key, &map, &replies) { $0.hasSameBytes(as: comparand) == isEqual }
  }

  /// Deletes an entry if its value meets a condition.
  private mutating func delete(
    _ key: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer, if isMet: (RawSpan) -> Bool
  ) throws(RESPFailure) {
    guard let entry = try string(key, &map), try withValue(of: entry, isMet) else {
      return replies.bytes.appendRESP(0)
    }
    replies.bytes.appendRESP(try delete(key, &map) ? 1 : 0)
  }

  mutating func countExisting(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) {
    var count = 0
    var keys = request.words(from: 1, bytes)
    while let key = keys.next(bytes) {
      if entry(bytes.extracting(key), &map) != nil { count += 1 }
    }
    replies.bytes.appendRESP(count)
  }

  mutating func appendType(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) {
    switch entry(bytes.extracting(request.word(1, bytes)), &map)?.kind {
    case .single: replies.bytes.appendRESP(simple: "string")
    case .list: replies.bytes.appendRESP(simple: "list")
    case nil: replies.bytes.appendRESP(simple: "none")
    }
  }

  mutating func copy(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    var replaces = false
    var words = request.words(from: 3, bytes)
    while let word = words.next(bytes) {
      let option = bytes.extracting(word)
      if option.isWord("REPLACE") {
        replaces = true
      } else if option.isWord("DB"), let number = words.next(bytes) {
        guard let database = bytes.extracting(number).decimalNumber else { throw .notAnInteger }
        guard database == client.database else { throw .error("ERR a key can be copied only within its database") }
      } else {
        throw .syntax
      }
    }
    let (source, target) = (bytes.extracting(request.word(1, bytes)), bytes.extracting(request.word(2, bytes)))
    guard !source.hasSameBytes(as: target) else { throw .error("ERR source and destination objects are the same") }
    guard let entry = entry(source, &map) else { return replies.bytes.appendRESP(0) }
    if !replaces, self.entry(target, &map) != nil { return replies.bytes.appendRESP(0) }
    try copy(entry, to: target, &map)
    replies.bytes.appendRESP(1)
  }

  private mutating func copy(_ entry: EntryView, to key: RawSpan, _ map: inout EntryMap) throws(RESPFailure) {
    let (kind, expiry) = (entry.kind, entry.expiry)
    try copyValue(of: entry)
    let client = client
    try put(key, unsafe RawSpan(_unsafeBytes: client.scratch.bytes), kind: kind, expiry: expiry, &map)
  }

  mutating func rename(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let (source, target) = (bytes.extracting(request.word(1, bytes)), bytes.extracting(request.word(2, bytes)))
    guard let entry = entry(source, &map) else { throw .error("ERR no such key") }
    let keepsTarget = request.command == .renamenx
    if !source.hasSameBytes(as: target) {
      if keepsTarget, self.entry(target, &map) != nil { return replies.bytes.appendRESP(0) }
      try changeTogether(records: 1, bytes: source.byteCount + target.byteCount + entry.valueByteCount, &map) {
        (run, map) throws(RESPFailure) in
        // To make room for its changes, the map may have evicted the entry.
        guard let entry = run.entry(source, &map) else { throw .error("ERR no such key") }
        try run.copy(entry, to: target, &map)
        _ = try run.delete(source, &map)
      }
    } else if keepsTarget {
      return replies.bytes.appendRESP(0)
    }
    if keepsTarget { replies.bytes.appendRESP(1) } else { replies.bytes.appendRESPOK() }
  }

  // MARK: All

  /// Removes expired entries, so that those that are left can be counted.
  mutating func prepareToCount(_ map: inout EntryMap) throws(RESPFailure) {
    do throws(StorageError) { try map.checkCounting(now: now) } catch {
      throw .detour(Detour(error, revealing: map.revisions.last))
    }
    if map.expireBriefly(now: now), !isTransaction { throw .detour(.deferred) }
    reveal(max(map.revisions.lastRemoval, map.revisions.lastInsertion))
  }

  mutating func countKeys(_ map: inout EntryMap, _ replies: inout ReplyBuffer) throws(RESPFailure) {
    try prepareToCount(&map)
    replies.bytes.appendRESP(map.count(now: now))
  }

  mutating func deleteAll(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    try RESPFlush.check(request, bytes)
    if map.expireBriefly(now: now), !isTransaction { throw .detour(.deferred) }
    do throws(StorageError) { _ = try map.deleteAll(now: now) } catch {
      throw .detour(Detour(error, revealing: map.revisions.last))
    }
    didDeleteAll(map.revisions)
    replies.bytes.appendRESPOK()
  }

  mutating func randomKey(_ map: inout EntryMap, _ replies: inout ReplyBuffer) throws(RESPFailure) {
    try prepareToCount(&map)
    let count = map.count(now: now)
    guard count > 0 else { return replies.bytes.appendRESPNull(version) }
    let rank = Int.random(in: 0..<count)
    do throws(StorageError) {
      _ = try map.scan(ranks: rank..<count, reverse: false, now: now) { entry in
        unsafe replies.bytes.appendRESP(bulk: RawSpan(_unsafeBytes: entry.key))
        return false
      }
    } catch { throw .detour(Detour(error, revealing: map.revisions.last)) }
  }

  // MARK: Descriptions

  mutating func memoryUsage(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    if bytes.extracting(request.word(1, bytes)).isWord("DOCTOR") {
      return replies.bytes.appendRESP(bulk: "Ask `larder stats` for the memory.")
    }
    var options = request.words(from: 3, bytes)
    while let option = options.next(bytes) {
      guard bytes.extracting(option).isWord("SAMPLES"), let number = options.next(bytes) else { throw .syntax }
      guard let count = bytes.extracting(number).decimalNumber else { throw .notAnInteger }
      guard count >= 0 else { throw .syntax }
    }
    guard let entry = entry(bytes.extracting(request.word(2, bytes)), &map) else {
      return replies.bytes.appendRESPNull(version)
    }
    unsafe replies.bytes.appendRESP(entry.key.count + entry.valueByteCount + RESPRun.entryOverhead)
  }

  /// What an entry takes beside its key and its value, in bytes, on average: its record's header, and its places in the
  /// hash and in the order.
  private static var entryOverhead: Int { 32 }

  mutating func describe(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let subcommand = bytes.extracting(request.word(1, bytes))
    guard let entry = entry(bytes.extracting(request.word(2, bytes)), &map) else {
      return replies.bytes.appendRESPNull(version)
    }
    if subcommand.isWord("ENCODING") {
      replies.bytes.appendRESP(bulk: Self.encoding(of: entry))
    } else if subcommand.isWord("FREQ") {
      throw .error(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching "
          + "between policies at runtime LRU and LFU data will take some time to adjust.")
    } else {
      replies.bytes.appendRESP(subcommand.isWord("REFCOUNT") ? 1 : 0)
    }
  }

  private static func encoding(of entry: EntryView) -> String {
    guard entry.kind == .single else { return "listpack" }
    guard let value = unsafe entry.value else { return "raw" }
    if unsafe RawSpan(_unsafeBytes: value).decimalNumber != nil { return "int" }
    return value.count <= 44 ? "embstr" : "raw"
  }
}

/// The option of commands that remove everything. Memory is always freed in the background.
enum RESPFlush {
  static func check(_ request: RESPRequest, _ bytes: RawSpan) throws(RESPFailure) {
    guard isValid(request, bytes, option: 1) else { throw .syntax }
  }

  /// Whether a request has no option or a valid one, as the word at an index.
  static func isValid(_ request: RESPRequest, _ bytes: RawSpan, option index: Int) -> Bool {
    guard request.count > index else { return true }
    let option = bytes.extracting(request.word(index, bytes))
    return request.count == index + 1 && (option.isWord("SYNC") || option.isWord("ASYNC"))
  }
}
