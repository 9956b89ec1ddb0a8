import Documents
import Platform
import Storage
import Wire

/// A few entries of a store, which are looked at where they are, without the store's lock. So neither an expensive
/// selector nor a slow disk keeps others from the store.
///
/// While the batch has entries, the map keeps their snapshot for a reader, so that keys and small values stay as they are.
/// The batch itself keeps large values. Those in files are read one by one, without the lock. Owned and reused by one
/// thread.
struct DocumentBatch: ~Copyable {
  /// The number of entries that are gathered under one acquisition of the lock.
  static let maxCount = 256
  /// The size of the memory for a value of a file, in bytes, that is kept for the next one.
  private static let maxKeptByteCount = 1 << 20
  /// The size of the small values that are looked at, in bytes, after which a batch ends.
  private static let maxByteCount = 256 << 10

  private var entries: [StoredEntry] = []
  /// The values that are in files, with the positions of their entries, ascending.
  private var separatedValues: [(index: Int, value: SeparatedValue)] = []
  /// The value of a file that was read last.
  private var readValue = ByteBuffer()
  /// Large values that entries refer to.
  private var largeValues: [LargeValue] = []
  /// The snapshot that the map keeps for the batch.
  private var snapshot: Snapshot?
  /// The handles of entries that turned out to be I-JSON objects.
  private var objects: [UInt32] = []
  private var checker = IJSON()

  var count: Int { entries.count }
  /// The size of all keys and values, in bytes.
  private(set) var byteCount = 0

  subscript(index: Int) -> StoredEntry { entries[index] }

  // MARK: Gathering

  /// Whether no more entries should be added under the same acquisition of the lock.
  var isFull: Bool { entries.count >= Self.maxCount || byteCount >= Self.maxByteCount }

  /// Begins a batch of entries of a snapshot, after the one before has ended.
  mutating func begin(_ snapshot: Snapshot, in map: inout EntryMap) throws(StorageError) {
    end(in: &map)
    try map.beginReading(snapshot)
    self.snapshot = snapshot
  }

  /// Removes the entries, and has the map remember what they turned out to be.
  mutating func end(in map: inout EntryMap) {
    guard let snapshot = snapshot.take() else { return }
    map.endReading(snapshot, objects: objects)
    objects.removeAll(keepingCapacity: true)
    entries.removeAll(keepingCapacity: true)
    if !separatedValues.isEmpty { separatedValues.removeAll() }
    if !largeValues.isEmpty { largeValues.removeAll() }
    byteCount = 0
    if readValue.capacity > Self.maxKeptByteCount { readValue.releaseStorage() }
  }

  /// Ends the batch if there is one.
  mutating func end(in store: Store) {
    if snapshot == nil { return }
    store.lock()
    defer { store.unlock() }
    unsafe end(in: &store.map)
  }

  /// Gathers the entries of the first handles: those that have not expired and are no lists. The handle 0 has none.
  /// - Returns: The number of handles that were looked at.
  mutating func gather(
    _ handles: ArraySlice<UInt32>, of store: Store, in snapshot: Snapshot, now: UInt64
  ) throws(StorageError) -> Int {
    try store.accessInTurn { map throws(StorageError) in
      try begin(snapshot, in: &map)
      var next = handles.startIndex
      while next < handles.endIndex, !isFull {
        let handle = handles[next]
        next += 1
        guard handle != 0 else { continue }
        let entry = map.entry(at: handle)
        if entry.expiry == 0 || entry.expiry > now { append(entry, EntryHead(handle, entry)) }
      }
      return next - handles.startIndex
    }
  }

  /// Adds an entry, unless it is a list.
  @inline(__always)
  mutating func append(_ entry: EntryView, _ head: EntryHead) {
    guard entry.kind == .single else { return }
    byteCount &+= unsafe entry.key.count &+ entry.valueByteCount
    if entry.isExternal { return appendExternal(entry, head) }
    unsafe entries.append(StoredEntry(entry, head, value: entry.value))
  }

  @inline(never)
  private mutating func appendExternal(_ entry: EntryView, _ head: EntryHead) {
    if let value = entry.largeValue {
      largeValues.append(value)
      unsafe entries.append(StoredEntry(entry, head, value: value.bytes))
    } else if let value = entry.separatedValue {
      separatedValues.append((entries.count, value))
      unsafe entries.append(StoredEntry(entry, head, value: nil))
    } else {
      preconditionFailure("a value is in memory or in a file")
    }
  }

  // MARK: Examining

  /// Notes which entries are I-JSON objects.
  /// - Parameter budget: Once it is exhausted, no more entries are looked at.
  mutating func checkObjects(_ budget: inout WorkBudget) {
    for index in entries.indices where !entries[index].isTrusted {
      guard !budget.isExhausted else { return }
      guard entries[index].withValue({ checker.isObject($0, &budget) }) else { continue }
      entries[index].isTrusted = true
      objects.append(entries[index].handle)
    }
  }

  /// Calls `body` with the entries from one on, as many as are in memory, but at least with that one. Waits for the disk
  /// if it is in a file.
  /// - Throws: If the value can't be read, and what `body` throws.
  mutating func withEntries<Result>(
    from first: Int, _ body: (Span<StoredEntry>) throws(ExaminationFailure) -> Result
  ) throws(ExaminationFailure) -> Result {
    guard let separated = separatedValues.first(where: { $0.index >= first }) else {
      return try body(entries.span.extracting(first...))
    }
    guard separated.index == first else { return try body(entries.span.extracting(first..<separated.index)) }
    do throws(CommandFailure) {
      unsafe try read(separated.value, of: first) { (value, room) throws(SeparatedValueError) in
        unsafe try value.read(into: room)
      }
    } catch { throw .failed(error) }
    let entry = unsafe entries[first].replacingValue(readValue.bytes)
    return try body([entry].span)
  }

  /// Calls `body` with an entry, unless that has to wait for the disk.
  /// - Returns: What `body` returns; nil if the value must be read from the disk.
  /// - Throws: If the value can't be read.
  mutating func withCachedEntry<Result>(
    _ index: Int, _ body: (StoredEntry) -> Result
  ) throws(CommandFailure) -> Result? {
    guard let separated = separatedValues.first(where: { $0.index == index }) else { return body(entries[index]) }
    let isRead = unsafe try read(separated.value, of: index) { (value, room) throws(SeparatedValueError) in
      unsafe try value.readFromCache(into: room)
    }
    return isRead ? body(unsafe entries[index].replacingValue(readValue.bytes)) : nil
  }

  // MARK: Values in files

  /// The values that must probably be read from a disk.
  var uncachedValues: [SeparatedValue] { separatedValues.map(\.value).filter { !$0.isProbablyCached } }

  /// The value of an entry, which is in a file.
  func missingValue(of index: Int) -> MissingValue {
    guard let separated = separatedValues.first(where: { $0.index == index }) else {
      preconditionFailure("the value is in memory")
    }
    return missingValue(separated.value, of: index)
  }

  private func missingValue(_ value: SeparatedValue, of index: Int) -> MissingValue {
    MissingValue(
      value: value, offset: 0,
      key: ArraySlice(entries[index].withKey { unsafe $0.withUnsafeBufferPointer { unsafe Array($0) } }))
  }

  private mutating func read<Result>(
    _ value: SeparatedValue, of index: Int,
    _ read: (SeparatedValue, UnsafeMutableRawBufferPointer) throws(SeparatedValueError) -> Result
  ) throws(CommandFailure) -> Result {
    readValue.removeAll()
    let offset = readValue.extend(by: value.byteCount)
    do throws(SeparatedValueError) {
      return unsafe try readValue.overwrite(at: offset, byteCount: value.byteCount) {
        (room) throws(SeparatedValueError) in unsafe try read(value, room)
      }
    } catch {
      throw missingValue(value, of: index).failure(error)
    }
  }
}

extension StoredEntry {
  /// - Parameter value: The value; nil if it is in a file.
  @unsafe @inline(__always)
  init(_ entry: EntryView, _ head: EntryHead, value: UnsafeRawBufferPointer?) {
    unsafe self.init(
      key: entry.key, value: value ?? UnsafeRawBufferPointer(start: nil, count: 0), revision: head.revision,
      expiry: head.expiry, handle: head.handle, documentCount: head.documentCount, isTrusted: entry.isKnownObject)
  }
}
