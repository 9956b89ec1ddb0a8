import Storage
import Wire

/// The requests on entries: `Protocol/wire.md` §6.4. All of them run with the store's map to themselves.
extension Batch {
  /// Whether an operation works on the entries of a store, and is run under that store's lock.
  @inline(__always)
  static func isOnEntries(_ kind: UInt8) -> Bool { kind >= Operation.get.rawValue && kind <= Operation.watch.rawValue }

  /// Whether a request on entries shows what it finds and changes nothing.
  @inline(__always)
  private static func reads(_ kind: UInt8) -> Bool {
    switch Operation(rawValue: kind) {
    case .get, .getMany, .count, .page, .all, .watch: true
    default: false
    }
  }

  /// Runs the request at `place` and those behind it that name the same store, whose lock is held when it returns.
  /// - Returns: where the first frame begins that was not run.
  mutating func run(
    _ first: FrameHeader, _ bytes: RawSpan, at start: Int, lookedAt: Int, of connection: inout Connection,
    on opened: OpenStores.Opened
  ) -> Int {
    let store = opened.store
    let largest = limits.maxFrameBytes
    var place = start
    var header = first
    var lookedAt = lookedAt
    hold(store)
    while true {
      // A request by itself gains nothing from looking ahead.
      if place >= lookedAt, place &+ header.frameSize < bytes.byteCount {
        lookedAt = lookAhead(bytes, at: place, store: first.detail, on: store)
        unsafe askForRecords(&store.map)
      }
      let body = unsafe bytes.extracting(unchecked: header.body(at: place))
      let mark = output.count
      let hasRun = unsafe run(header, body, &connection, store, &store.map)
      if !hasRun { runAfterWaiting(header, body, &connection, store) }
      if !unread.isEmpty {
        readValues(of: header.id, from: mark, &connection)
        hold(store)
      }
      count(header.kind)
      place &+= header.frameSize
      guard connection.executes, !isFull, case .frame(let next) = FrameScan(bytes, at: place, largest: largest),
        next.detail == first.detail, next.flags == 0, next.id != 0, opened.permitted.contains(next.kind)
      else { break }
      header = next
    }
    heldBytes &+= place &- start
    // Others may wait for the store.
    if heldBytes > Self.maxHeldBytes { letGo() }
    return place
  }

  /// Runs a request for which the store's journal has to write first: more was written than the disk takes, and everyone waits for it.
  private mutating func runAfterWaiting(
    _ header: FrameHeader, _ body: RawSpan, _ connection: inout Connection, _ store: Store
  ) {
    for _ in 0..<Self.maxWaits {
      letGo()
      let hasRoom = store.commitWriter?.waitForRoom() ?? false
      hold(store)
      if unsafe run(header, body, &connection, store, &store.map) { return }
      if !hasRoom { break }
    }
    fail(ErrorCode(.diskTooSlow), header.id, "\(StorageError.diskTooSlow)")
  }

  /// - Returns: false when it was not run, because the store's journal has to write first.
  @inline(__always)
  private mutating func run(
    _ header: FrameHeader, _ body: RawSpan, _ connection: inout Connection, _ store: Store, _ map: inout EntryMap
  ) -> Bool {
    shownRevision = 0
    defer {
      if let commitWriter = store.commitWriter {
        gate(Self.reads(header.kind) ? shownRevision : map.revision, commitWriter)
      }
    }
    if map.isDropped {
      fail(.storeUnknown, header.id, "store \(store.name) was dropped")
      return true
    }
    let mark = output.count
    do throws(StorageError) {
      switch Operation(rawValue: header.kind) {
      case .get: get(body, header.id, &map)
      case .put: try put(body, header.id, &map)
      case .getMany: getMany(body, header.id, &connection, store, &map)
      case .putMany: try putMany(body, header.id, &map)
      case .delete: try delete(body, header.id, &map)
      case .deleteMany: try deleteMany(body, header.id, &map)
      case .deleteAll: try deleteAll(body, header.id, &map)
      case .count: count(body, header.id, &map)
      case .page: try scan(.page, body, header.id, &connection, store, &map)
      case .all: try scan(.all, body, header.id, &connection, store, &map)
      case .watch: watch(body, header.id, &connection, store, &map)
      default: fail(.unknownOperation, header.id)
      }
    } catch {
      takeBack(to: mark)
      if error == .diskTooSlow { return false }
      fail(ErrorCode(error), header.id, "\(error)")
    }
    return true
  }

  private mutating func get(_ key: RawSpan, _ id: UInt32, _ map: inout EntryMap) {
    guard Key.isValid(key) else { return fail(.keyInvalid, id) }
    guard let entry = map.get(key, now: now) else {
      shownRevision = map.lastRemoval
      return fail(.notFound, id)
    }
    let start = output.beginReply(id: id)
    append(entry, withKey: false)
    output.endFrame(start)
  }

  private mutating func put(_ body: RawSpan, _ id: UInt32, _ map: inout EntryMap) throws(StorageError) {
    guard let write = WriteRecord(body, at: 0), write.end == body.byteCount else { return fail(.malformed, id) }
    if let code = failure(in: write, of: body) { return fail(code, id) }
    let key = unsafe body.extracting(unchecked: write.key)
    guard meets(write, key, &map) else { return fail(.conditionFailed, id) }
    let revision = map.revision &+ 1
    try store(write, body, revision: revision, &map)
    output.appendReply(id: id, number: revision)
  }

  private mutating func putMany(_ body: RawSpan, _ id: UInt32, _ map: inout EntryMap) throws(StorageError) {
    guard let count = body.integer(at: 0, as: UInt32.self) else { return fail(.malformed, id) }
    guard count <= limits.keysInRequest else { return failTooMany(Int(count), id) }
    var place = 4
    var conditionHolds = true
    for _ in 0..<count {
      guard let write = WriteRecord(body, at: place) else { return fail(.malformed, id) }
      if let code = failure(in: write, of: body) { return fail(code, id) }
      conditionHolds = conditionHolds && meets(write, body.extracting(write.key), &map)
      place = write.end
    }
    guard place == body.byteCount else { return fail(.malformed, id) }
    guard conditionHolds else { return fail(.conditionFailed, id) }
    guard count > 0 else { return output.appendReply(id: id, number: 0) }
    try map.reserve(records: Int(count), bytes: body.byteCount)
    let revision = map.revision + 1
    place = 4
    do throws(StorageError) {
      var lookedAt = 0
      while let write = WriteRecord(body, at: place) {
        if lookedAt == 0 { lookedAt = lookAhead(body, at: place, &map) }
        lookedAt -= 1
        try store(write, body, revision: revision, &map)
        place = write.end
      }
      output.appendReply(id: id, number: revision)
    } catch {
      // Only a system that refuses memory comes here, behind some of the records: nobody may take it for nothing done.
      fail(.failed, id, "\(error)")
    }
  }

  /// What is wrong with a write that is well formed, or nil.
  private func failure(in write: WriteRecord, of body: RawSpan) -> ErrorCode? {
    guard unsafe Key.isValid(body.extracting(unchecked: write.key)) else { return .keyInvalid }
    if write.value.count > maxValueSize { return .valueTooLarge }
    if write.kind == .list, !ListValue.isValid(body.extracting(write.value)) { return .dataSerialization }
    if write.flags != 0 {
      let both = RecordFlags.ifAbsent | RecordFlags.ifRevision
      if write.flags & both == both { return .illegalArgument }
      if write.flags & RecordFlags.expiry != 0, write.expiry == 0 || write.expiry > 1 << 53 { return .illegalArgument }
    }
    return nil
  }

  private func meets(_ write: WriteRecord, _ key: RawSpan, _ map: inout EntryMap) -> Bool {
    if write.flags & ~RecordFlags.expiry == 0 { return true }
    let condition = WriteCondition(
      ifAbsent: write.flags & RecordFlags.ifAbsent != 0,
      ifRevision: write.flags & RecordFlags.ifRevision != 0 ? write.revision : nil)
    return map.meets(condition, key, now: now)
  }

  private func store(_ write: WriteRecord, _ body: RawSpan, revision: UInt64, _ map: inout EntryMap)
    throws(StorageError)
  {
    unsafe try map.put(
      body.extracting(unchecked: write.key), body.extracting(unchecked: write.value),
      kind: EntryKind(write.kind),
      expiry: write.expiry == 0 ? 0 : now &+ write.expiry, revision: revision, now: now)
  }

  private mutating func delete(_ body: RawSpan, _ id: UInt32, _ map: inout EntryMap) throws(StorageError) {
    guard let flags = body.integer(at: 0, as: UInt8.self), flags & ~RecordFlags.ifRevision == 0 else {
      return fail(.malformed, id)
    }
    var place = 1
    var condition = WriteCondition()
    if flags != 0 {
      guard let revision = body.integer(at: 1, as: UInt64.self) else { return fail(.malformed, id) }
      condition.ifRevision = revision
      place = 9
    }
    let key = body.extracting(place..<body.byteCount)
    guard Key.isValid(key) else { return fail(.keyInvalid, id) }
    guard condition.ifRevision == nil || map.meets(condition, key, now: now) else { return fail(.conditionFailed, id) }
    output.appendReply(id: id, number: try map.delete(key, revision: map.revision + 1, now: now) ? 1 : 0)
  }

  private mutating func deleteMany(_ body: RawSpan, _ id: UInt32, _ map: inout EntryMap) throws(StorageError) {
    guard var keys = checkedKeys(body, id) else { return }
    try map.checkCommit(operations: keys.count, bytes: body.byteCount)
    let revision = map.revision + 1
    var count: UInt64 = 0
    while let key = keys.next(body) {
      if try map.delete(body.extracting(key), revision: revision, now: now) { count += 1 }
    }
    output.appendReply(id: id, number: count)
  }

  private mutating func deleteAll(_ body: RawSpan, _ id: UInt32, _ map: inout EntryMap) throws(StorageError) {
    guard body.byteCount == 0 else { return fail(.malformed, id) }
    output.appendReply(id: id, number: UInt64(try map.deleteAll(now: now)))
  }

  private mutating func count(_ prefix: RawSpan, _ id: UInt32, _ map: inout EntryMap) {
    guard prefix.byteCount <= Key.largest else { return fail(.illegalArgument, id) }
    shownRevision = max(map.lastRemoval, map.lastInsertion)
    output.appendReply(id: id, number: UInt64(map.count(prefix: prefix, now: now)))
  }

  /// The key list of a body, all keys valid, or nil once the fault is in the output.
  mutating func checkedKeys(_ body: RawSpan, _ id: UInt32) -> KeyList? {
    guard let keys = KeyList(body) else {
      fail(.malformed, id)
      return nil
    }
    guard keys.count <= limits.keysInRequest else {
      failTooMany(keys.count, id)
      return nil
    }
    var check = keys
    while let key = check.next(body) {
      guard Key.isValid(body.extracting(key)) else {
        fail(.keyInvalid, id)
        return nil
      }
    }
    guard check.isComplete(body) else {
      fail(.malformed, id)
      return nil
    }
    return keys
  }

  private mutating func failTooMany(_ count: Int, _ id: UInt32) {
    fail(.illegalArgument, id, "\(count) keys, and one request takes at most \(limits.keysInRequest)")
  }

  /// An entry's record, as a reply or a frame of an answer has it.
  @inline(__always)
  mutating func append(_ entry: EntryView, withKey: Bool, withValue: Bool = true) {
    shownRevision = max(shownRevision, entry.revision)
    let nothing = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    let key = unsafe withKey ? entry.key : nothing
    guard let value = unsafe withValue ? entry.value : nothing else { return unsafe appendUnread(entry, key: key) }
    unsafe output.appendEntry(
      kind: ValueKind(entry.kind), revision: entry.revision, expiry: entry.expiry == 0 ? 0 : entry.expiry &- now,
      key: key, value: value)
  }
}
