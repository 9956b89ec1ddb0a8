import Storage
import Wire

/// Why a command of RESP has no ordinary reply.
enum RESPFailure: Error {
  /// An error, with its code.
  case error(String)
  /// What a store requires instead.
  case detour(Detour)

  static let syntax = RESPFailure.error("ERR syntax error")
  static let wrongType = RESPFailure.error("WRONGTYPE Operation against a key holding the wrong kind of value")
  static let notAnInteger = RESPFailure.error("ERR value is not an integer or out of range")
  static let notAFloat = RESPFailure.error("ERR value is not a valid float")

  /// - Parameter command: The name of the command, with that of its subcommand after a bar.
  static func wrongNumberOfArguments(_ command: String) -> RESPFailure {
    .error("ERR wrong number of arguments for '\(command)' command")
  }

  /// The error for a subcommand with more words than it takes. The table of commands has only the minimum.
  static func tooManyArguments(_ request: RESPRequest, _ bytes: RawSpan) -> RESPFailure {
    let subcommand = bytes.extracting(request.word(1, bytes)).toString()
    let name = request.command.name.uppercased()
    return .error("ERR unknown subcommand or wrong number of arguments for '\(subcommand)'. Try \(name) HELP.")
  }
}

/// The execution of one command of RESP on entries, or of those of a transaction, under the lock of their store.
///
/// The commands are in extensions: `+Strings`, `+Numbers`, `+Keys`, `+Expiry`, `+Scans`, `+Lists`, `+Scripts` and
/// `+Transactions`. They append their replies, or throw, with nothing changed.
struct RESPRun: ~Copyable {
  // Both outlive the run, because its caller has them. References that count cost as much as a short command.
  private unowned(unsafe) let unretainedClient: RESPClient
  private unowned(unsafe) let unretainedStore: Store
  /// What the client may execute.
  let permitted: OperationSet
  /// The time, in milliseconds of the clock that expiries are measured with.
  let now: UInt64
  let maxValueSize: Int
  /// The memory that the whole request is in, if a store can keep a value there.
  let memory: ValueMemory?
  /// Whether other commands are executed under the same acquisition of the lock, as one.
  private(set) var isTransaction = false
  /// Whether all entries of the store were deleted.
  private(set) var hasDeletedAll = false
  /// The revision of the transaction's commit.
  private var revision: UInt64 = 0
  /// The newest commit that the replies reveal.
  private(set) var shownRevision: UInt64 = 0

  /// - Parameter executor: It isn't changed, but a call that only borrows it copies it.
  init(
    _ client: RESPClient, store: Store, permitted: OperationSet, _ executor: inout Executor, memory: ValueMemory?
  ) {
    unsafe unretainedClient = client
    unsafe unretainedStore = store
    (self.permitted, self.memory) = (permitted, memory)
    (now, maxValueSize) = (executor.now, executor.limits.maxValueBytes)
  }

  var client: RESPClient { unsafe unretainedClient }
  var store: Store { unsafe unretainedStore }
  var version: RESPVersion { client.version }

  // MARK: Reading

  /// Notes that the reply depends on a commit.
  @inline(__always)
  mutating func reveal(_ revision: UInt64) { shownRevision = max(shownRevision, revision) }

  /// Returns an entry, whatever its kind. No entry has an invalid key.
  @inline(__always)
  mutating func entry(_ key: RawSpan, _ map: inout EntryMap) -> EntryView? {
    guard Key.isValidSize(key.byteCount), let entry = map.get(key, now: now) else {
      reveal(map.revisions.lastRemoval)
      return nil
    }
    reveal(entry.revision)
    return entry
  }

  /// Returns an entry with a single value.
  /// - Throws: `wrongType`.
  @inline(__always)
  mutating func string(_ key: RawSpan, _ map: inout EntryMap) throws(RESPFailure) -> EntryView? {
    guard let entry = entry(key, &map) else { return nil }
    guard case .single = entry.kind else { throw .wrongType }
    return entry
  }

  /// Calls `body` with the value of an entry.
  /// - Throws: A detour if the value has to be read from the disk first.
  func withValue<R>(of entry: EntryView, _ body: (RawSpan) -> R) throws(RESPFailure) -> R {
    if let value = unsafe entry.value { return unsafe body(RawSpan(_unsafeBytes: value)) }
    guard let value = entry.separatedValue else { return body(RawSpan()) }
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: value.byteCount, alignment: 8)
    defer { unsafe room.deallocate() }
    let isRead: Bool
    do throws(SeparatedValueError) {
      isRead = unsafe try value.readFromCache(into: room)
      // A transaction has changed something already.
      if !isRead, isTransaction { unsafe try value.read(into: room) }
    } catch { throw .detour(.failure(CommandFailure(error))) }
    guard isRead || isTransaction else { throw .detour(.needsValue(value)) }
    return unsafe body(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(room)))
  }

  /// Copies the value of an entry into the client's scratch buffer, where it stays when the entry is overwritten.
  func copyValue(of entry: EntryView) throws(RESPFailure) {
    client.scratch.removeAll()
    try withValue(of: entry) { client.scratch.append($0) }
  }

  // MARK: Writing

  /// The largest lifetime, in milliseconds.
  static let maxLifetime = 1 << 53

  /// Writes an entry.
  /// - Parameter isSameValue: Whether only its expiry changes.
  mutating func put(
    _ key: RawSpan, _ value: RawSpan, kind: EntryKind = .single, expiry: UInt64 = 0, in memory: ValueMemory? = nil,
    isSameValue: Bool = false, _ map: inout EntryMap
  ) throws(RESPFailure) {
    guard Key.isValid(key) else { throw Self.invalidKey(key) }
    try checkValueSize(value.byteCount)
    // The entry expires at once.
    if expiry != 0, expiry <= now {
      _ = try delete(key, &map)
      return
    }
    if !isTransaction, value.byteCount >= AttachedValue.minSize,
      map.evictBriefly(for: value.byteCount, at: key, now: now)
    {
      throw .detour(.deferred)
    }
    let revision = nextRevision(map.revisions)
    do throws(StorageError) {
      try map.put(
        key, value, kind: kind, expiry: expiry, revision: revision, now: now, in: memory, isSameValue: isSameValue)
    } catch { throw .detour(Detour(error, revealing: map.revisions.last)) }
    reveal(revision)
  }

  func checkValueSize(_ byteCount: Int) throws(RESPFailure) {
    guard byteCount <= maxValueSize else {
      throw .error("ERR a value has at most \(maxValueSize) bytes, limits.frame-bytes less 8 KiB")
    }
  }

  /// Deletes an entry.
  /// - Returns: Whether there was one.
  mutating func delete(_ key: RawSpan, _ map: inout EntryMap) throws(RESPFailure) -> Bool {
    guard Key.isValidSize(key.byteCount) else { return false }
    let revision = nextRevision(map.revisions)
    do throws(StorageError) {
      guard try map.delete(key, revision: revision, now: now) else {
        reveal(map.revisions.lastRemoval)
        return false
      }
    } catch { throw .detour(Detour(error, revealing: map.revisions.last)) }
    reveal(revision)
    return true
  }

  /// The revision of the next change.
  @inline(__always)
  func nextRevision(_ revisions: MapRevisions) -> UInt64 { isTransaction ? revision : revisions.last &+ 1 }

  /// Lets all changes that follow be one commit.
  mutating func beginTransaction(_ revisions: MapRevisions) { (isTransaction, revision) = (true, revisions.last + 1) }

  mutating func endTransaction() { isTransaction = false }

  /// Notes that all entries were deleted.
  mutating func didDeleteAll(_ revisions: MapRevisions) {
    hasDeletedAll = true
    reveal(revisions.last)
    // The deletion has a commit of its own.
    if isTransaction { revision = revisions.last + 1 }
  }

  static func invalidKey(_ key: RawSpan) -> RESPFailure {
    if key.isEmpty { return .error("ERR a key must not be empty") }
    if key.byteCount > Key.maxSize { return .error("ERR a key has at most \(Key.maxSize) bytes") }
    return .error(
      "ERR a key must be UTF-8; let the client serialize keys as text, as with Spring's StringRedisTemplate")
  }

  // MARK: Dispatch

  /// Executes a command.
  mutating func execute(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    switch request.command {
    case .get: try get(request, bytes, &map, &replies)
    case .set: try set(request, bytes, &map, &replies)
    default: try executeOther(request, bytes, &map, into: &replies)
    }
  }

  private mutating func executeOther(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let client = client
    defer { client.releaseLargeScratch() }
    switch request.command {
    case .append: try append(request, bytes, &map, &replies)
    case .copy: try copy(request, bytes, &map, &replies)
    case .dbsize: try countKeys(&map, &replies)
    case .decr: try add(-1, request, bytes, &map, &replies)
    case .decrby: try subtract(request, bytes, &map, &replies)
    case .del, .unlink: try deleteKeys(request, bytes, &map, &replies)
    case .delex: try deleteConditionally(request, bytes, &map, &replies)
    case .delifeq: try deleteIfEqual(request, bytes, &map, &replies)
    case .eval, .evalsha: try evaluate(request, bytes, &map, &replies)
    case .exec: try executeTransaction(&map, &replies)
    case .exists, .touch: countExisting(request, bytes, &map, &replies)
    case .expire, .expireat, .pexpire, .pexpireat: try setExpiry(request, bytes, &map, &replies)
    case .expiretime, .pexpiretime, .pttl, .ttl: appendExpiry(request, bytes, &map, &replies)
    case .flushall, .flushdb: try deleteAll(request, bytes, &map, &replies)
    case .getdel: try getAndDelete(request, bytes, &map, &replies)
    case .getex: try getAndSetExpiry(request, bytes, &map, &replies)
    case .getrange, .substr: try getRange(request, bytes, &map, &replies)
    case .getset: try getAndSet(request, bytes, &map, &replies)
    case .incr: try add(1, request, bytes, &map, &replies)
    case .incrby: try add(request, bytes, &map, &replies)
    case .incrbyfloat: try addFloat(request, bytes, &map, &replies)
    case .keys: try findKeys(request, bytes, &map, &replies)
    case .lindex: try listElement(request, bytes, &map, &replies)
    case .llen: try listLength(request, bytes, &map, &replies)
    case .lrange: try listRange(request, bytes, &map, &replies)
    case .memory: try memoryUsage(request, bytes, &map, &replies)
    case .mget: getMany(request, bytes, &map, &replies)
    case .mset: try setMany(request, bytes, &map, &replies)
    case .msetnx: try setManyIfAbsent(request, bytes, &map, &replies)
    case .object: try describe(request, bytes, &map, &replies)
    case .persist: try persist(request, bytes, &map, &replies)
    case .psetex, .setex: try setExpiring(request, bytes, &map, &replies)
    case .randomkey: try randomKey(&map, &replies)
    case .rename, .renamenx: try rename(request, bytes, &map, &replies)
    case .scan: try scan(request, bytes, &map, &replies)
    case .setnx: try setIfAbsent(request, bytes, &map, &replies)
    case .setrange: try setRange(request, bytes, &map, &replies)
    case .strlen: try length(request, bytes, &map, &replies)
    case .type: appendType(request, bytes, &map, &replies)
    case .watch: try watch(request, bytes, &map, &replies)
    default: preconditionFailure("\(request.command) is not a command on entries")
    }
  }
}

extension RawSpan {
  /// Whether the bytes are a word of uppercase letters, whatever their case.
  func isWord(_ word: StaticString) -> Bool {
    guard byteCount == word.utf8CodeUnitCount else { return false }
    for index in 0..<byteCount {
      var byte = unsafe unsafeLoad(fromUncheckedByteOffset: index, as: UInt8.self)
      if byte &- UInt8(ascii: "a") < 26 { byte &-= 32 }
      if unsafe byte != word.utf8Start[index] { return false }
    }
    return true
  }

  /// Whether the bytes are the same.
  func hasSameBytes(as other: RawSpan) -> Bool {
    unsafe withUnsafeBytes { own in
      unsafe other.withUnsafeBytes { other in unsafe own.elementsEqual(other) }
    }
  }

  /// The number that the bytes are in decimal digits; nil if they are anything else, such as a number with a leading
  /// zero.
  var decimalNumber: Int? {
    guard byteCount > 0, byteCount <= 20 else { return nil }
    func byte(_ index: Int) -> UInt8 { unsafe unsafeLoad(fromUncheckedByteOffset: index, as: UInt8.self) }
    let isNegative = byte(0) == UInt8(ascii: "-")
    var index = isNegative ? 1 : 0
    guard index < byteCount else { return nil }
    if byte(index) == UInt8(ascii: "0") { return byteCount == 1 ? 0 : nil }
    // Negative, because there is one negative number more than positive ones.
    var number = 0
    while index < byteCount {
      let digit = byte(index) &- 0x30
      guard digit < 10 else { return nil }
      let (product, overflows) = number.multipliedReportingOverflow(by: 10)
      let (difference, overflowsAgain) = product.subtractingReportingOverflow(Int(digit))
      if overflows || overflowsAgain { return nil }
      number = difference
      index += 1
    }
    if isNegative { return number }
    return number == .min ? nil : -number
  }
}
