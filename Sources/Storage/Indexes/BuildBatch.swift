import Documents

/// Copies of some entries of a snapshot, from which an index is built.
struct BuildBatch {
  /// The limits of what is copied under one acquisition of the store's lock.
  private static let maxCount = 256
  private static let maxByteCount = 64 << 10
  /// The size of the pieces in which a large value is copied.
  private static let pieceByteCount = 256 << 10

  private struct Item {
    let handle: UInt32
    let revision: UInt64
    let isExternal: Bool
    let key: Range<Int>
    let value: Range<Int>
    /// The size of a value in memory that is too large to be copied with others.
    let largeByteCount: Int?
    let separatedValue: SeparatedValue?
  }

  private var items: [Item] = []
  private var bytes: [UInt8] = []
  /// A value that was too large to be copied with others, or was in a file.
  private var largeValue: [UInt8] = []

  var count: Int { items.count }

  /// Copies entries from a rank on, expired or not. Call this under the store's lock.
  /// - Returns: The number of ranks that were read.
  /// - Throws: `snapshotEnded` or `storeDropped`.
  mutating func copy(from rank: Int, of snapshot: Snapshot, _ map: borrowing EntryMap) throws(StorageError) -> Int {
    items.removeAll(keepingCapacity: true)
    bytes.removeAll(keepingCapacity: true)
    let ranks = rank..<min(rank + Self.maxCount, snapshot.count)
    return try map.scanHandles(ranks: ranks, reverse: false, in: snapshot, now: 0) { handle, entry in
      if entry.kind == .single { append(handle, entry) }
      return bytes.count < Self.maxByteCount
    }
  }

  /// Copies one entry. Call this under the store's lock.
  mutating func copy(_ handle: UInt32, _ map: borrowing EntryMap) {
    items.removeAll(keepingCapacity: true)
    bytes.removeAll(keepingCapacity: true)
    append(handle, map.entry(at: handle))
  }

  private mutating func append(_ handle: UInt32, _ entry: EntryView) {
    let start = bytes.count
    unsafe bytes.append(contentsOf: entry.key)
    let keyEnd = bytes.count
    var largeByteCount: Int?
    if let value = unsafe entry.value {
      if value.count < Self.maxByteCount {
        unsafe bytes.append(contentsOf: value)
      } else {
        largeByteCount = value.count
      }
    }
    items.append(
      Item(
        handle: handle, revision: entry.revision, isExternal: entry.isExternal, key: start..<keyEnd,
        value: keyEnd..<bytes.count, largeByteCount: largeByteCount, separatedValue: entry.separatedValue))
  }

  /// Returns an entry as a document of a tree. Its id is valid until the next change of the batch.
  func document(_ position: Int) -> IndexTree.Document {
    let item = items[position]
    let id = unsafe Key(bytes.span.bytes.extracting(item.key))
    return IndexTree.Document(item.handle, revision: item.revision, id: id, isExternal: item.isExternal)
  }

  /// Reads the value of an entry, if it was not copied yet.
  /// - Returns: Whether there is a value to make keys of.
  mutating func readValue(_ position: Int, of store: Store) -> Bool {
    largeValue.removeAll(keepingCapacity: largeValue.capacity <= 1 << 20)
    let item = items[position]
    if let separatedValue = item.separatedValue { return read(separatedValue) }
    guard let byteCount = item.largeByteCount else { return true }
    largeValue.reserveCapacity(byteCount)
    while largeValue.count < byteCount {
      // The snapshot lives, and so does the record.
      let moved: SeparatedValue? = store.accessInTurn { map in
        guard !map.isDropped else { return nil }
        let entry = map.entry(at: item.handle)
        guard let value = unsafe entry.value else { return entry.separatedValue }
        let end = min(largeValue.count + Self.pieceByteCount, value.count)
        unsafe largeValue.append(contentsOf: value[largeValue.count..<end])
        return nil
      }
      if let moved { return read(moved) }
      if store.accessInTurn({ $0.isDropped }) { return false }
    }
    return true
  }

  private mutating func read(_ value: SeparatedValue) -> Bool {
    largeValue = [UInt8](repeating: 0, count: value.byteCount)
    return unsafe largeValue.withUnsafeMutableBytes { bytes in
      do throws(SeparatedValueError) {
        unsafe try value.read(into: bytes)
        return true
      } catch {
        return false
      }
    }
  }

  // MARK: Keys

  /// Finds the keys of an entry whose value is in a file.
  /// - Returns: Whether they were kept. Otherwise, the keys are undefined.
  func findKeys(of position: Int, in keptKeys: KeptKeys?, _ keys: inout IndexKeys) -> Bool {
    let item = items[position]
    guard let keptKeys, let file = item.separatedValue else { return false }
    let value = KeptKeyRecord.Value(revision: item.revision, byteCount: file.byteCount, checksum: file.checksum)
    return keptKeys.find(value, id: bytes.span.extracting(item.key), into: &keys)
  }

  /// Makes the keys of an entry whose value was read, and keeps them if the value may leave the memory.
  func makeKeys(of position: Int, _ maker: IndexKeyMaker, keeping keptKeys: KeptKeys?, _ keys: inout IndexKeys) {
    let item = items[position]
    let isLarge = item.separatedValue != nil || item.largeByteCount != nil
    let id = bytes.span.extracting(item.key)
    let value = isLarge ? largeValue.span : bytes.span.extracting(item.value)
    maker.makeKeys(of: value, key: id, revision: item.revision, into: &keys)
    guard let keptKeys, item.isExternal else { return }
    let checksum = unsafe value.withUnsafeBytes { unsafe $0.checksum() }
    keptKeys.keep(
      keys, of: KeptKeyRecord.Value(revision: item.revision, byteCount: value.count, checksum: checksum), id: id)
  }
}
