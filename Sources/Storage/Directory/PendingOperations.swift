/// The operations that the journals of a directory store have and the entries' files may not have: the last one for
/// every key.
struct PendingOperations {
  struct Put {
    let kind: EntryKind
    let revision: UInt64
    /// In milliseconds since 1970; 0 for never.
    let expiry: UInt64
    /// The number of the journal that has the value.
    let journal: Int
    /// The position of the value in the journal.
    let value: Range<Int>
    /// The CRC32C of the value.
    let checksum: UInt32
  }

  /// A deletion, and the journal that has it.
  private struct Deletion {
    let journal: Int
    let revision: UInt64
  }

  private enum Write {
    case put(Put)
    /// A deletion; nil if no journal needs to have it, because the entry has expired.
    case delete(Deletion?)

    var journal: Int? {
      switch self {
      case .put(let put): put.journal
      case .delete(let deletion): deletion?.journal
      }
    }

    var revision: UInt64 {
      switch self {
      case .put(let put): put.revision
      case .delete(let deletion): deletion?.revision ?? 0
      }
    }

    var isDelete: Bool { if case .delete = self { true } else { false } }
  }

  private var operations: [[UInt8]: Write] = [:]
  /// The keys in the order of their puts and of their deletions. A key stays when its operation is replaced.
  private var putKeys = KeyQueue()
  private var deletedKeys = KeyQueue()
  /// The number of operations that each journal still has to keep.
  private var counts: [Int: Int] = [:]
  /// The deletion of every key that has no operation here; nil if there is none.
  private var deletionOfAll: Deletion?

  var isEmpty: Bool { operations.isEmpty && deletionOfAll == nil }

  /// The number of operations on single keys.
  var count: Int { operations.count }

  /// Returns whether any operation in this journal is still needed.
  func needs(_ journal: Int) -> Bool { counts[journal, default: 0] > 0 || deletionOfAll != nil }

  /// The puts by their keys, in the order of their journals.
  var puts: [(key: [UInt8], put: Put)] {
    let puts = operations.compactMap { key, operation -> (key: [UInt8], put: Put)? in
      guard case .put(let put) = operation else { return nil }
      return (key, put)
    }
    return puts.sorted { ($0.put.journal, $0.put.value.lowerBound) < ($1.put.journal, $1.put.value.lowerBound) }
  }

  /// Returns the pending put of a key; nil if there is none.
  func put(of key: [UInt8]) -> Put? {
    guard case .put(let put)? = operations[key] else { return nil }
    return put
  }

  /// Returns whether the files of a key are out of date.
  func affects(_ key: [UInt8]) -> Bool { operations[key] != nil || deletionOfAll != nil }

  /// Returns the revision of the last operation on a key; nil if there is none.
  func revision(of key: [UInt8]) -> UInt64? { operations[key]?.revision ?? deletionOfAll?.revision }

  // MARK: Settling

  /// Removes up to that many keys with puts from the queue, the oldest first. `forget` removes their operations, and
  /// `putBack` those that could not be carried out.
  mutating func takePuts(limit: Int) -> [[UInt8]] {
    var taken: [[UInt8]] = []
    while taken.count < limit, let key = putKeys.popFirst() {
      if operations[key]?.isDelete == false, !taken.contains(key) { taken.append(key) }
    }
    return taken
  }

  /// Removes up to that many deleted keys from the queue, the oldest first.
  mutating func takeDeletes(limit: Int) -> [[UInt8]] {
    var taken: [[UInt8]] = []
    while taken.count < limit, let key = deletedKeys.popFirst() {
      if operations[key]?.isDelete == true, !taken.contains(key) { taken.append(key) }
    }
    return taken
  }

  /// Returns keys that were taken and still have operations to the queues.
  mutating func putBack(_ keys: [[UInt8]]) {
    for key in keys {
      guard let operation = operations[key] else { continue }
      if operation.isDelete { deletedKeys.append(key) } else { putKeys.append(key) }
    }
  }

  /// Forgets the operation of a key, because its files are up to date or the journals can't be trusted about it.
  mutating func forget(_ key: [UInt8]) { release(operations.removeValue(forKey: key)) }

  private mutating func release(_ operation: Write?) {
    guard let journal = operation?.journal, let count = counts[journal] else { return }
    counts[journal] = count > 1 ? count - 1 : nil
  }

  // MARK: Adding

  /// Deletes the entry of a key without a pending operation, because the entry has expired.
  mutating func deleteUnlessPending(_ key: [UInt8]) { delete(key, nil) }

  private mutating func delete(_ key: [UInt8], _ deletion: Deletion?) {
    if operations[key] == nil { set(key, .delete(deletion)) }
  }

  /// Turns the deletion of all entries into one deletion for each of the existing keys.
  mutating func expandDeleteAll(_ keys: @autoclosure () -> [[UInt8]]) {
    guard let deletion = deletionOfAll else { return }
    for key in keys() { delete(key, deletion) }
    deletionOfAll = nil
  }

  /// Gives a key its own deletion if the deletion of all entries applies to it.
  mutating func expandDeleteAll(of key: [UInt8]) {
    if let deletion = deletionOfAll { delete(key, deletion) }
  }

  /// - Parameters:
  ///   - journal: The number of the journal that has the operation.
  ///   - start: The offset in the journal of the bytes from which the operation was read.
  mutating func add(_ operation: CommitOperation, in journal: Int, at start: Int) {
    let key = unsafe Array(operation.key)
    switch operation.kind {
    case .single, .list:
      let valueStart = start + operation.valueOffset
      let byteCount = unsafe operation.value.count
      let put = Put(
        kind: operation.kind == .list ? .list : .single, revision: operation.revision, expiry: operation.expiry,
        journal: journal, value: valueStart..<valueStart + byteCount, checksum: operation.valueChecksum)
      set(key, .put(put))
    case .delete: set(key, .delete(Deletion(journal: journal, revision: operation.revision)))
    case .deleteAll:
      operations.removeAll()
      counts.removeAll()
      (putKeys, deletedKeys) = (KeyQueue(), KeyQueue())
      deletionOfAll = Deletion(journal: journal, revision: operation.revision)
    }
  }

  private mutating func set(_ key: [UInt8], _ operation: Write) {
    let old = operations.updateValue(operation, forKey: key)
    release(old)
    if let journal = operation.journal { counts[journal, default: 0] += 1 }
    guard old?.isDelete != operation.isDelete else { return }
    if operation.isDelete { deletedKeys.append(key) } else { putKeys.append(key) }
  }
}

/// Keys, the oldest first. O(1) for each.
private struct KeyQueue {
  private var keys: [[UInt8]] = []
  private var first = 0

  mutating func append(_ key: [UInt8]) { keys.append(key) }

  mutating func popFirst() -> [UInt8]? {
    guard first < keys.count else { return nil }
    defer { removeTaken() }
    first += 1
    return keys[first - 1]
  }

  private mutating func removeTaken() {
    guard first == keys.count || first > 1_024 && first > keys.count / 2 else { return }
    keys.removeFirst(first)
    first = 0
  }
}
