import Documents
import Storage
import Wire

/// The operations of an apply request that has updates, and what they make of the entries.
///
/// First, every entry of `readEntries` gets its current value with `setBase` and `setValue`; then `applyNext` goes
/// through the operations in their order; then `write` writes what has become of the entries. The store isn't needed,
/// and needn't be locked, in between: `outdatedEntries` are those that have been written meanwhile. Once they have their
/// new values, `applyNext` goes through their operations again, which depend on no other entry. The operations have
/// been decoded before, so the body is valid.
struct ApplyChanges {
  /// An entry that at least one update changes.
  private struct UpdatedEntry {
    let key: Range<Int>
    /// The position of the last operation that writes it.
    var last = -1
    /// Whether the first operation that writes it is a put or a delete, so that its value before doesn't matter.
    var isReplaced = false
    /// Whether its operations have yet to be applied.
    var isPending = true
    /// The revision before the request; 0 for an absent entry.
    var revision: UInt64 = 0
    var contents = Contents.absent
    var expiry = Expiry.never
    /// Whether an operation has made a difference.
    var isChanged = false
  }

  private enum Contents {
    case absent, list
    /// A single value that is no document, and was not copied.
    case other
    case single([UInt8])
  }

  private enum Expiry {
    case never
    /// In milliseconds of the store's clock.
    case at(UInt64)
    /// In milliseconds after the commit.
    case after(UInt64)
  }

  private let body: [UInt8]
  private let records: [ApplyRecord]
  private var entries: [UpdatedEntry] = []
  /// The position in `entries` of each operation's entry; -1 for one that no update changes.
  private let positions: [Int32]
  private let hasConditions: Bool
  /// The position of the next operation for `applyNext`.
  private var next = 0
  /// The size of the entries' values, in bytes.
  private var valueByteCount = 0
  /// The update that was parsed last, because many operations may have the same one.
  private var parsed: (json: Range<Int>, update: DocumentUpdate)?

  /// - Parameter body: The valid body of an apply request.
  init(_ body: [UInt8]) {
    self.body = body
    records = Self.records(of: body)
    hasConditions = records.contains { $0.hasCondition }
    var positionsOfKeys: [ArraySlice<UInt8>: Int32] = [:]
    for record in records where record.kind == .update {
      let key = body[record.key]
      guard positionsOfKeys[key] == nil else { continue }
      positionsOfKeys[key] = Int32(entries.count)
      entries.append(UpdatedEntry(key: record.key))
    }
    positions = records.map { positionsOfKeys[body[$0.key]] ?? -1 }
    for (number, record) in records.enumerated() where record.kind != .check {
      guard let position = position(ofOperation: number) else { continue }
      if entries[position].last < 0 { entries[position].isReplaced = record.kind != .update }
      entries[position].last = number
    }
  }

  /// The position of the updated entry that an operation is about; nil if it is about another one.
  private func position(ofOperation number: Int) -> Int? { positions[number] < 0 ? nil : Int(positions[number]) }

  private static func records(of body: [UInt8]) -> [ApplyRecord] {
    let bytes = unsafe body.span.bytes
    var records: [ApplyRecord] = []
    var offset = 4
    while let record = ApplyRecord(bytes, at: offset) {
      records.append(record)
      offset = record.end
    }
    return records
  }

  /// The size of what is kept, in bytes.
  var keptByteCount: Int {
    body.count + valueByteCount
      + records.count * (MemoryLayout<ApplyRecord>.stride + MemoryLayout<Int32>.stride)
      + entries.count * MemoryLayout<UpdatedEntry>.stride
  }

  // MARK: The entries before the request

  /// The positions of the entries whose values before the request matter.
  var readEntries: [Int] { entries.indices.filter { !entries[$0].isReplaced } }

  func key(ofEntry position: Int) -> Range<Int> { entries[position].key }

  /// Sets what an entry is before the request, apart from a single value, for which `setValue` follows. Its operations
  /// are yet to be applied then.
  /// - Parameter view: nil for an absent entry.
  mutating func setBase(_ view: EntryView?, ofEntry position: Int) {
    entries[position].revision = view?.revision ?? 0
    entries[position].expiry = view.map { $0.expiry == 0 ? .never : .at($0.expiry) } ?? .never
    entries[position].isChanged = false
    entries[position].isPending = true
    setContents(view.map { $0.kind == .list ? .list : .other } ?? .absent, ofEntry: position)
    next = 0
  }

  /// Sets the value of an entry before the request.
  /// - Parameter value: Empty if it is no document.
  mutating func setValue(_ value: [UInt8], ofEntry position: Int) {
    setContents(value.isEmpty ? .other : .single(value), ofEntry: position)
  }

  /// Forgets what operations have made of entries, before all `readEntries` get new values.
  mutating func restart() {
    for position in entries.indices { (entries[position].isPending, entries[position].isChanged) = (true, false) }
    next = 0
  }

  private mutating func setContents(_ contents: Contents, ofEntry position: Int) {
    if case .single(let old) = entries[position].contents { valueByteCount -= old.count }
    if case .single(let new) = contents { valueByteCount += new.count }
    entries[position].contents = contents
  }

  // MARK: Updating

  /// An estimate of the work of all updates, in bytes. Each of them reads and writes the value before the request, with
  /// all that earlier operations have added to it, and what it adds itself.
  var workByteCount: Int {
    var byteCounts = entries.map { entry in if case .single(let value) = entry.contents { value.count } else { 0 } }
    var sum = 0
    for (number, record) in records.enumerated() {
      guard let position = position(ofOperation: number) else { continue }
      switch record.kind {
      case .check: break
      case .putSingle, .putList, .delete: byteCounts[position] = record.value.count
      case .update:
        byteCounts[position] += record.value.count
        sum += byteCounts[position]
      }
    }
    return sum
  }

  /// Goes through the next operations up to an update.
  /// - Returns: false if there are no more.
  mutating func applyNext(_ limits: JSONLimits) throws(CommandFailure) -> Bool {
    while next < records.count {
      let number = next
      next += 1
      let record = records[number]
      guard let position = position(ofOperation: number), entries[position].isPending else { continue }
      if entries[position].last == number { entries[position].isPending = false }
      switch record.kind {
      case .check: break
      case .putSingle, .putList:
        setContents(record.kind == .putList ? .list : .single(Array(body[record.value])), ofEntry: position)
        entries[position].expiry = record.expiry == 0 ? .never : .after(record.expiry)
        entries[position].isChanged = true
      case .delete:
        setContents(.absent, ofEntry: position)
        entries[position].isChanged = true
      case .update:
        try update(position, record, number, limits)
        return true
      }
    }
    return false
  }

  private mutating func update(
    _ position: Int, _ record: ApplyRecord, _ number: Int, _ limits: JSONLimits
  ) throws(CommandFailure) {
    let document = try document(at: position, record, number)
    do throws(DocumentUpdateError) {
      if let changed = try parsedUpdate(record.value).change(of: document.span, limits: limits) {
        setContents(.single(changed), ofEntry: position)
        entries[position].isChanged = true
      }
    } catch {
      let code: ErrorCode = error.code == .resultTooLarge ? .valueTooLarge : .illegalArgument
      throw failure(code, number, "\(error)")
    }
  }

  private mutating func parsedUpdate(_ json: Range<Int>) throws(DocumentUpdateError) -> DocumentUpdate {
    if let parsed, body[parsed.json] == body[json] { return parsed.update }
    let update = try DocumentUpdate(parsing: body.span.extracting(json))
    parsed = (json, update)
    return update
  }

  /// Returns the document that an operation updates. An absent one is created if the operation says so.
  private mutating func document(
    at position: Int, _ record: ApplyRecord, _ number: Int
  ) throws(CommandFailure) -> [UInt8] {
    switch entries[position].contents {
    case .single(let value): return value
    case .list: throw failure(.illegalArgument, number, "the entry is a list, and only documents can be updated")
    case .other:
      throw failure(.illegalArgument, number, "the value is not a JSON object, and only documents can be updated")
    case .absent:
      guard record.flags & RecordFlags.create != 0 else {
        throw failure(.notFound, number, "there is no entry to update")
      }
      let document = Array("{}".utf8)
      setContents(.single(document), ofEntry: position)
      entries[position].expiry = .never
      entries[position].isChanged = true
      return document
    }
  }

  private func failure(_ code: ErrorCode, _ number: Int, _ reason: String) -> CommandFailure {
    unsafe CommandFailure(code, records[number].message(reason, number, in: body.span.bytes))
  }

  // MARK: Writing

  /// The number of operations.
  var operationCount: Int { records.count }
  /// The number of entries that at least one update changes.
  var entryCount: Int { entries.count }

  /// Returns why the request fails; nil if the conditions of these operations hold.
  /// - Parameter operations: The positions of operations; nil for all.
  func failedCondition(
    ofOperations operations: Range<Int>? = nil, in map: inout EntryMap, now: UInt64
  ) -> CommandFailure? {
    guard hasConditions else { return nil }
    for number in operations ?? records.indices where records[number].hasCondition {
      let record = records[number]
      let key = unsafe body.span.bytes.extracting(record.key)
      guard !map.satisfies(EntryCondition(record), key, now: now) else { continue }
      let revision = map.get(key, now: now)?.revision
      return CommandFailure(
        .conditionFailed, unsafe record.conditionMessage(number, actual: revision, in: body.span.bytes),
        shownRevision: map.revisions.last)
    }
    return nil
  }

  /// Returns the positions of the entries that have been written since their values were set.
  func outdatedEntries(in map: inout EntryMap, now: UInt64) -> [Int] {
    entries.indices.filter { isOutdated($0, in: &map, now: now) }
  }

  /// Returns whether an entry has been written since its value was set.
  func isOutdated(_ position: Int, in map: inout EntryMap, now: UInt64) -> Bool {
    let entry = entries[position]
    if entry.isReplaced { return false }
    let view = unsafe map.get(body.span.bytes.extracting(entry.key), now: now)
    return view?.revision ?? 0 != entry.revision
  }

  /// What `write` writes once all operations have been applied. Making it needs no lock.
  var writeSize: WriteSize {
    var size = WriteSize()
    for (number, record) in records.enumerated() where record.kind != .check {
      var byteCount = record.value.count
      if let position = position(ofOperation: number) {
        let entry = entries[position]
        guard entry.last == number else { continue }
        if record.kind == .update {
          guard entry.isChanged, case .single(let value) = entry.contents else { continue }
          byteCount = value.count
        }
      }
      size.add(byteCount: record.key.count + byteCount, isPut: record.kind != .delete)
    }
    return size
  }

  /// Writes all entries.
  /// - Parameter revision: The revision of this commit, which is the store's next.
  /// - Throws: As `EntryMap.put` after `WriteSize.reserve`.
  func write(to map: inout EntryMap, revision: UInt64, now: UInt64) throws(StorageError) {
    var none = CopiedValue()
    for number in records.indices { try write(number, with: &none, to: &map, revision: revision, now: now) }
  }

  /// Writes what has become of an operation.
  /// - Parameter copy: A copy of its value, if one is needed.
  func write(
    _ number: Int, with copy: inout CopiedValue, to map: inout EntryMap, revision: UInt64, now: UInt64
  ) throws(StorageError) {
    guard let (record, entry) = writtenOperation(number) else { return }
    let bytes = unsafe body.span.bytes
    let key = bytes.extracting(record.key)
    switch record.kind {
    case .check: break
    case .delete: _ = try map.delete(key, revision: revision, now: now)
    case .putSingle, .putList:
      try copy.put(
        key, bytes.extracting(record.value), kind: record.kind == .putList ? .list : .single,
        expiry: record.expiry == 0 ? 0 : now + record.expiry, to: &map, revision: revision, now: now)
    case .update:
      guard let entry, case .single(let value) = entry.contents else { return }
      let expiry: UInt64 =
        switch entry.expiry {
        case .never: 0
        case .at(let time): time
        case .after(let milliseconds): now + milliseconds
        }
      unsafe try copy.put(key, value.span.bytes, expiry: expiry, to: &map, revision: revision, now: now)
    }
  }

  /// Calls `body` with the value that an operation writes, if there is one.
  func withWrittenValue(_ number: Int, _ body: (RawSpan) -> Void) {
    guard let (record, entry) = writtenOperation(number) else { return }
    switch record.kind {
    case .putSingle, .putList: unsafe body(self.body.span.bytes.extracting(record.value))
    case .update: if let entry, case .single(let value) = entry.contents { unsafe body(value.span.bytes) }
    case .check, .delete: break
    }
  }

  /// Returns an operation and its entry if it is the last one that writes the entry, and makes a difference.
  private func writtenOperation(_ number: Int) -> (ApplyRecord, UpdatedEntry?)? {
    let record = records[number]
    guard record.kind != .check else { return nil }
    guard let position = position(ofOperation: number) else { return (record, nil) }
    let entry = entries[position]
    guard entry.last == number, record.kind != .update || entry.isChanged else { return nil }
    return (record, entry)
  }
}

/// The number of the puts and deletes of one commit, and their size.
struct WriteSize {
  private var putCount = 0
  private var putByteCount = 0
  private var deleteCount = 0
  private var deleteByteCount = 0

  var isEmpty: Bool { operationCount == 0 }
  var operationCount: Int { putCount + deleteCount }
  var byteCount: Int { putByteCount + deleteByteCount }

  /// - Parameter byteCount: The size of the key and the value, in bytes.
  mutating func add(byteCount: Int, isPut: Bool) {
    if isPut {
      putCount += 1
      putByteCount += byteCount
    } else {
      deleteCount += 1
      deleteByteCount += byteCount
    }
  }

  /// Reserves what the commit needs, which is nothing if it is empty.
  /// - Throws: As `EntryMap.reserve`, with nothing changed.
  func reserve(in map: inout EntryMap) throws(StorageError) {
    if !isEmpty {
      try map.checkCommit(
        operations: putCount + deleteCount, bytes: putByteCount + deleteByteCount, isRemoval: putCount == 0)
    }
    if putCount > 0 { try map.reserve(records: putCount, bytes: putByteCount) }
  }

  /// Evicts some entries if the process lacks the memory for the puts.
  /// - Returns: Whether more may have to be evicted.
  func makeRoom(in map: inout EntryMap) -> Bool {
    putCount > 0 && map.evictSome(forRecords: putCount, bytes: putByteCount)
  }
}

extension EntryCondition {
  init(_ record: ApplyRecord) {
    self.init(
      ifAbsent: record.flags & RecordFlags.ifAbsent != 0,
      ifRevision: record.flags & RecordFlags.ifRevision != 0 ? record.revision : nil)
  }
}

extension ApplyRecord {
  /// Returns the error in the operation, whose form is valid, and its reason; nil if there is none.
  func error(in body: RawSpan, maxValueSize: Int) -> (ErrorCode, String)? {
    guard unsafe Key.isValid(body.extracting(unchecked: key)) else {
      return (.keyInvalid, unsafe BodyFlaw.ofKey(body.extracting(unchecked: key)))
    }
    if value.count > maxValueSize {
      return (.valueTooLarge, "the value has \(value.count) bytes; the limit is \(maxValueSize)")
    }
    if kind == .putList, !ListValue.isValid(body.extracting(value)) {
      return (.dataSerialization, "the value is not a list in its wire format")
    }
    if flags != 0 {
      let both = RecordFlags.ifAbsent | RecordFlags.ifRevision
      if flags & both == both || flags & RecordFlags.expiry != 0 && (expiry == 0 || expiry > 1 << 53) {
        return (.illegalArgument, Executor.illegalArgument(flags: flags, expiry: expiry))
      }
    }
    return kind == .check && !hasCondition ? (.illegalArgument, "a check needs a condition") : nil
  }

  /// Returns a message that names the operation and its key.
  /// - Parameter position: The operation's position among all; the message counts from 1.
  func message(_ reason: String, _ position: Int, in body: RawSpan) -> String {
    "operation \(position + 1) on \(body.quoted(key)): \(reason)"
  }

  /// Returns the message for a condition that doesn't hold.
  /// - Parameter actual: The revision of the entry; nil if there is none.
  func conditionMessage(_ position: Int, actual: UInt64?, in body: RawSpan) -> String {
    message(EntryCondition(self).failure(actual: actual), position, in: body)
  }
}
