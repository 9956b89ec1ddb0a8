import Documents
import Storage
import Wire

/// The operations of an apply request that has updates, and what they make of the entries.
///
/// First, every entry that an update changes gets its current value with `setBase` and `setValue`; then `applyNext`
/// goes through the operations in their order; then `write` writes what has become of the entries. The store isn't needed,
/// and needn't be locked, in between: `isCurrent` says whether the entries are still the same. The operations have been
/// decoded before, so the body is valid.
struct ApplyChanges {
  /// An entry that at least one update changes.
  private struct UpdatedEntry {
    let key: Range<Int>
    var updateCount = 0
    /// The position of the last operation that writes it.
    var last = 0
    /// The revision before the request; 0 for an absent entry.
    var revision: UInt64 = 0
    var contents = Contents.absent
    var expiry = Expiry.never
    /// Whether an operation has made a difference.
    var isChanged = false
  }

  private enum Contents {
    case absent, list
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
  /// The positions of the updated entries, by their keys.
  private var positions: [ArraySlice<UInt8>: Int] = [:]
  /// The position of the next operation for `applyNext`.
  private var next = 0
  /// The size of the entries' values, in bytes.
  private var valueByteCount = 0

  /// - Parameter body: The valid body of an apply request.
  init(_ body: [UInt8]) {
    self.body = body
    records = Self.records(of: body)
    for record in records where record.kind == .update {
      let position = positions[body[record.key]] ?? entries.count
      if position == entries.count {
        positions[body[record.key]] = position
        entries.append(UpdatedEntry(key: record.key))
      }
      entries[position].updateCount += 1
    }
    for (number, record) in records.enumerated() where record.kind != .check {
      if let position = positions[body[record.key]] { entries[position].last = number }
    }
  }

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
    body.count + valueByteCount + records.count * MemoryLayout<ApplyRecord>.stride
      + entries.count * MemoryLayout<UpdatedEntry>.stride
  }

  // MARK: The entries before the request

  /// The number of entries that updates change.
  var entryCount: Int { entries.count }

  func key(ofEntry position: Int) -> Range<Int> { entries[position].key }

  /// The number of updates of an entry.
  func updateCount(ofEntry position: Int) -> Int { entries[position].updateCount }

  /// Sets what an entry is before the request, apart from a single value, for which `setValue` follows.
  mutating func setBase(_ view: EntryView, ofEntry position: Int) {
    entries[position].revision = view.revision
    entries[position].expiry = view.expiry == 0 ? .never : .at(view.expiry)
    entries[position].contents = view.kind == .list ? .list : .single([])
  }

  /// Sets the value of an entry before the request.
  mutating func setValue(_ value: [UInt8], ofEntry position: Int) { setContents(.single(value), ofEntry: position) }

  private mutating func setContents(_ contents: Contents, ofEntry position: Int) {
    if case .single(let old) = entries[position].contents { valueByteCount -= old.count }
    if case .single(let new) = contents { valueByteCount += new.count }
    entries[position].contents = contents
  }

  // MARK: Updating

  /// Goes through the next operations up to an update.
  /// - Returns: false if there are no more.
  mutating func applyNext(_ limits: JSONLimits) throws(JobFailure) -> Bool {
    while next < records.count {
      let number = next
      next += 1
      let record = records[number]
      guard let position = positions[body[record.key]] else { continue }
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
  ) throws(JobFailure) {
    let document = try document(at: position, record, number)
    do throws(DocumentUpdateError) {
      let body = body
      let update = try DocumentUpdate(parsing: body.span.extracting(record.value))
      if let changed = try update.change(of: document.span, limits: limits) {
        setContents(.single(changed), ofEntry: position)
        entries[position].isChanged = true
      }
    } catch {
      let code: ErrorCode = error.code == .resultTooLarge ? .valueTooLarge : .illegalArgument
      throw failure(code, number, "\(error)")
    }
  }

  /// Returns the document that an operation updates. An absent one is created if the operation says so.
  private mutating func document(
    at position: Int, _ record: ApplyRecord, _ number: Int
  ) throws(JobFailure) -> [UInt8] {
    switch entries[position].contents {
    case .single(let value): return value
    case .list: throw failure(.illegalArgument, number, "the entry is a list, and only documents can be updated")
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

  private func failure(_ code: ErrorCode, _ number: Int, _ reason: String) -> JobFailure {
    unsafe JobFailure(code, records[number].message(reason, number, in: body.span.bytes))
  }

  // MARK: Writing

  /// Returns why the request fails; nil if every condition holds.
  func failedCondition(in map: inout EntryMap, now: UInt64) -> JobFailure? {
    for (number, record) in records.enumerated() where record.hasCondition {
      let key = unsafe body.span.bytes.extracting(record.key)
      guard !map.satisfies(WriteCondition(record), key, now: now) else { continue }
      let revision = map.get(key, now: now)?.revision
      return JobFailure(
        .conditionFailed, unsafe record.conditionMessage(number, actual: revision, in: body.span.bytes),
        shownRevision: map.revision)
    }
    return nil
  }

  /// Returns whether the entries have not been written since their values were set.
  func isCurrent(in map: inout EntryMap, now: UInt64) -> Bool {
    for entry in entries {
      let view = unsafe map.get(body.span.bytes.extracting(entry.key), now: now)
      if view?.revision ?? 0 != entry.revision { return false }
    }
    return true
  }

  /// Reserves what `write` needs.
  /// - Throws: As `EntryMap.reserve`, with nothing changed.
  func reserve(in map: inout EntryMap) throws(StorageError) {
    var (puts, putBytes, operations, bytes) = (0, 0, 0, 0)
    for (number, record) in records.enumerated() where record.kind != .check {
      var byteCount = record.key.count + record.value.count
      var isPut = record.valueKind != nil
      if let position = positions[body[record.key]] {
        guard entries[position].last == number else { continue }
        if record.kind == .update, case .single(let value) = entries[position].contents {
          byteCount = record.key.count + value.count
          isPut = true
        }
      }
      operations += 1
      bytes += byteCount
      if isPut {
        puts += 1
        putBytes += byteCount
      }
    }
    try map.checkCommit(operations: operations, bytes: bytes)
    if puts > 0 { try map.reserve(records: puts, bytes: putBytes) }
  }

  /// Writes all entries.
  /// - Parameter revision: The revision of this commit, which is the store's next.
  /// - Throws: As `EntryMap.put` after `reserve`.
  func write(to map: inout EntryMap, revision: UInt64, now: UInt64) throws(StorageError) {
    let bytes = unsafe body.span.bytes
    for (number, record) in records.enumerated() where record.kind != .check {
      let entry = positions[body[record.key]].map { entries[$0] }
      if let entry, entry.last != number { continue }
      let key = bytes.extracting(record.key)
      switch record.kind {
      case .check: break
      case .delete: _ = try map.delete(key, revision: revision, now: now)
      case .putSingle, .putList:
        try map.put(
          key, bytes.extracting(record.value), kind: record.kind == .putList ? .list : .single,
          expiry: record.expiry == 0 ? 0 : now + record.expiry, revision: revision, now: now)
      case .update:
        guard let entry, entry.isChanged, case .single(let value) = entry.contents else { continue }
        let expiry: UInt64 =
          switch entry.expiry {
          case .never: 0
          case .at(let time): time
          case .after(let milliseconds): now + milliseconds
          }
        unsafe try map.put(key, value.span.bytes, expiry: expiry, revision: revision, now: now)
      }
    }
  }
}

extension WriteCondition {
  init(_ record: ApplyRecord) {
    self.init(
      ifAbsent: record.flags & RecordFlags.ifAbsent != 0,
      ifRevision: record.flags & RecordFlags.ifRevision != 0 ? record.revision : nil)
  }
}

extension ApplyRecord {
  /// Returns a message that names the operation and its key.
  /// - Parameter position: The operation's position among all; the message counts from 1.
  func message(_ reason: String, _ position: Int, in body: RawSpan) -> String {
    let key = body.extracting(key.lowerBound..<min(key.upperBound, key.lowerBound + 128)).toString()
    return "operation \(position + 1) on \"\(key)\": \(reason)"
  }

  /// Returns the message for a condition that doesn't hold.
  /// - Parameter actual: The revision of the entry; nil if there is none.
  func conditionMessage(_ position: Int, actual: UInt64?, in body: RawSpan) -> String {
    let reason =
      if flags & RecordFlags.ifAbsent != 0 {
        "the key has an entry"
      } else if let actual {
        "the entry has revision \(actual), not \(revision)"
      } else {
        "there is no entry, and revision \(revision) was expected"
      }
    return message(reason, position, in: body)
  }
}
