/// What the journal has and the entries' files may not have: the last operation of every key.
struct PendingOperations {
  struct Put {
    let kind: EntryKind
    let revision: UInt64
    /// In milliseconds since 1970; 0 for never.
    let expiry: UInt64
    /// Where the value lies in the journal.
    let value: Range<Int>
  }

  enum Operation {
    /// With the CRC32C of the value.
    case put(Put, checksum: UInt32)
    case delete
  }

  var operations: [[UInt8]: Operation] = [:]
  /// Whether every key goes that has no operation here.
  var clears = false

  var isEmpty: Bool { operations.isEmpty && !clears }

  /// - Parameter start: where the bytes begin in the journal that the operation was read from.
  mutating func note(_ operation: CommitOperation, at start: Int) {
    let key = unsafe Array(operation.key)
    switch operation.kind {
    case .single, .list:
      let valueStart = start + operation.valueOffset
      let byteCount = unsafe operation.value.count
      operations[key] = .put(
        Put(
          kind: operation.kind == .list ? .list : .single, revision: operation.revision, expiry: operation.expiry,
          value: valueStart..<valueStart + byteCount),
        checksum: operation.valueChecksum)
    case .delete: operations[key] = .delete
    case .deleteAll:
      operations.removeAll()
      clears = true
    }
  }
}
