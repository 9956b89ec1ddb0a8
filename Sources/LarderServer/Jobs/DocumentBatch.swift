import Platform
import Storage
import Wire

/// Copies of a few documents of a store, which are looked at without the store's lock. So neither an expensive selector
/// nor a slow disk keeps others from the store.
///
/// Under the lock, at most `maxCount` entries and about `maxByteCount` bytes are copied at a time. A larger value in
/// memory is copied in pieces, and one in a file is read without the lock. Owned and reused by one thread.
struct DocumentBatch: ~Copyable {
  /// The number of entries that are copied under one acquisition of the lock.
  static let maxCount = 256
  /// The size of keys and values, in bytes, at which no more of them are copied under the same acquisition.
  private static let maxByteCount = 64 << 10
  /// The size of the pieces in which a large value is copied.
  private static let pieceByteCount = 256 << 10
  /// The size of the memory for a large value, in bytes, that is kept for the next one.
  private static let maxKeptByteCount = 1 << 20

  /// An entry with a single value. Whether that is a document is not known.
  struct Entry {
    let head: EntryHead
    fileprivate let key: Range<Int>
    fileprivate let value: Value
  }

  fileprivate enum Value {
    /// In the batch, at this place.
    case copied(Range<Int>)
    /// In the store's memory, and too large to be copied with others.
    case large(byteCount: Int)
    case inFile(SeparatedValue)
  }

  private var entries: [Entry] = []
  /// The keys and values that were copied.
  private var bytes: [UInt8] = []
  /// The value that was read last because it is large or in a file.
  private var readValue = ByteBuffer()

  var count: Int { entries.count }
  /// The size of all keys and values, in bytes, wherever they are.
  private(set) var byteCount = 0
  private var hasValuesInFiles = false

  subscript(index: Int) -> Entry { entries[index] }

  func key(of index: Int) -> ArraySlice<UInt8> { bytes[entries[index].key] }

  // MARK: Copying

  /// Whether no more entries should be copied under the same acquisition of the lock.
  var isFull: Bool { entries.count >= Self.maxCount || bytes.count >= Self.maxByteCount }

  /// Copies the entries of the first handles: those that have not expired and are no lists. The handle 0 has none.
  /// - Returns: The number of handles that were looked at.
  mutating func copy(
    _ handles: ArraySlice<UInt32>, of store: Store, in snapshot: Snapshot, now: UInt64
  ) throws(StorageError) -> Int {
    removeAll()
    return try store.accessInTurn { map throws(StorageError) in
      try map.check(snapshot)
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

  mutating func removeAll() {
    entries.removeAll(keepingCapacity: true)
    bytes.removeAll(keepingCapacity: true)
    byteCount = 0
    hasValuesInFiles = false
    if readValue.capacity > Self.maxKeptByteCount { readValue.releaseStorage() }
  }

  /// Copies an entry, unless it is a list.
  mutating func append(_ entry: EntryView, _ head: EntryHead) {
    guard entry.kind == .single else { return }
    let start = bytes.count
    unsafe bytes.append(contentsOf: entry.key)
    let key = start..<bytes.count
    var value = Value.copied(key.upperBound..<key.upperBound)
    if let contents = unsafe entry.value {
      if contents.count < Self.maxByteCount {
        unsafe bytes.append(contentsOf: contents)
        value = .copied(key.upperBound..<bytes.count)
      } else if unsafe Self.mayBeObject(contents) {
        value = .large(byteCount: entry.valueByteCount)
      }
    } else if let separatedValue = entry.separatedValue {
      value = .inFile(separatedValue)
      hasValuesInFiles = true
    }
    byteCount += key.count + entry.valueByteCount
    entries.append(Entry(head: head, key: key, value: value))
  }

  /// Whether a value begins like an object or with white space. Others are no documents, and not worth copying.
  private static func mayBeObject(_ value: UnsafeRawBufferPointer) -> Bool {
    unsafe value.first.map { $0 <= 0x20 || $0 == UInt8(ascii: "{") } ?? false
  }

  // MARK: Reading

  /// The values that must probably be read from a disk.
  var uncachedValues: [SeparatedValue] {
    guard hasValuesInFiles else { return [] }
    return entries.compactMap { entry in
      if case .inFile(let value) = entry.value, !value.isProbablyCached { value } else { nil }
    }
  }

  /// Calls `body` with the key and the value of an entry. Locks the store if the value is large, and waits for the disk
  /// if it is in a file.
  /// - Throws: If the value can't be read, or the snapshot has ended.
  mutating func withContents<Result>(
    of index: Int, _ store: Store, in snapshot: Snapshot, _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) -> Result
  ) throws(CommandFailure) -> Result {
    if case .copied(let range) = entries[index].value {
      return body(bytes.span.extracting(entries[index].key), bytes.span.extracting(range))
    }
    let entry = entries[index]
    if let value = try copyLarge(entry, store, in: snapshot) {
      unsafe try read(value, of: entry) { (value, room) throws(SeparatedValueError) in unsafe try value.read(into: room)
      }
    }
    return unsafe body(bytes.span.extracting(entry.key), readValue.bytes.bindMemory(to: UInt8.self).span)
  }

  /// What `withCachedContents` comes to.
  enum CachedContents<Result> {
    case result(Result)
    /// The value must be read from the disk.
    case onDisk(MissingValue)
  }

  /// Calls `body` with the key and the value of an entry, unless that has to wait for the disk.
  /// - Throws: If the value can't be read, or the snapshot has ended.
  mutating func withCachedContents<Result>(
    of index: Int, _ store: Store, in snapshot: Snapshot, _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) -> Result
  ) throws(CommandFailure) -> CachedContents<Result> {
    if case .copied(let range) = entries[index].value {
      return .result(body(bytes.span.extracting(entries[index].key), bytes.span.extracting(range)))
    }
    let entry = entries[index]
    if let value = try copyLarge(entry, store, in: snapshot) {
      let isRead = unsafe try read(value, of: entry) { (value, room) throws(SeparatedValueError) in
        unsafe try value.readFromCache(into: room)
      }
      guard isRead else { return .onDisk(MissingValue(value: value, offset: 0, key: bytes[entry.key])) }
    }
    return unsafe .result(body(bytes.span.extracting(entry.key), readValue.bytes.bindMemory(to: UInt8.self).span))
  }

  /// Copies a large value in pieces, and unlocks the store in between.
  /// - Returns: The value instead if it is in a file.
  private mutating func copyLarge(
    _ entry: Entry, _ store: Store, in snapshot: Snapshot
  ) throws(CommandFailure) -> SeparatedValue? {
    let byteCount: Int
    switch entry.value {
    case .copied: return nil
    case .inFile(let value): return value
    case .large(let count): byteCount = count
    }
    readValue.removeAll()
    while readValue.count < byteCount {
      var separatedValue: SeparatedValue?
      do throws(StorageError) {
        separatedValue = try store.accessInTurn { map throws(StorageError) in
          try map.check(snapshot)
          let view = map.entry(at: entry.head.handle)
          // The commit writer may have moved the value to a file meanwhile.
          guard let value = unsafe view.value else { return view.separatedValue }
          let piece = readValue.count..<min(readValue.count + Self.pieceByteCount, byteCount)
          unsafe readValue.append(UnsafeRawBufferPointer(rebasing: value[piece]))
          return nil
        }
      } catch { throw CommandFailure(error) }
      if let separatedValue { return separatedValue }
    }
    return nil
  }

  private mutating func read<Result>(
    _ value: SeparatedValue, of entry: Entry,
    _ read: (SeparatedValue, UnsafeMutableRawBufferPointer) throws(SeparatedValueError) -> Result
  ) throws(CommandFailure) -> Result {
    readValue.removeAll()
    let offset = readValue.extend(by: value.byteCount)
    do throws(SeparatedValueError) {
      return unsafe try readValue.overwrite(at: offset, byteCount: value.byteCount) {
        (room) throws(SeparatedValueError) in unsafe try read(value, room)
      }
    } catch {
      throw MissingValue(value: value, offset: 0, key: bytes[entry.key]).failure(error)
    }
  }
}
