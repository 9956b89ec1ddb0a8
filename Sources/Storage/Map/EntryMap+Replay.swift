extension EntryMap {
  /// Makes changes that a map with the same history has made: those in records that a `CommitBuffer` has written.
  /// - Returns: Whether any value is separated.
  /// - Throws: `RecordLoadingError`, after some of the changes.
  @unsafe
  package mutating func replay(
    _ records: UnsafeRawBufferPointer, at now: ClockReading
  ) throws(RecordLoadingError) -> Bool {
    var reader = unsafe CommitReader(records)
    var hasSeparatedValues = false
    while let operation = try reader.nextVerified() {
      guard operation.revision >= revisions.last, CommitBuffer.revisions.contains(operation.revision) else {
        throw .damaged("revisions are out of order")
      }
      do throws(StorageError) { try replay(operation, at: now) } catch { throw .noMemory(error) }
      if operation.isSeparated { hasSeparatedValues = true }
    }
    return hasSeparatedValues
  }

  private mutating func replay(_ operation: CommitOperation, at now: ClockReading) throws(StorageError) {
    let revision = operation.revision
    switch operation.kind {
    case .single, .list:
      // Entries that have expired are removed like all others.
      let expiry = operation.expiry == 0 ? 0 : now.monotonic(ofWall: operation.expiry)
      unsafe try put(
        operation.key.bytes, operation.value.bytes, kind: operation.kind == .list ? .list : .single, expiry: expiry,
        revision: revision)
    case .delete:
      guard unsafe try !delete(operation.key.bytes, revision: revision, now: 0) else { return }
      // The entry had expired here.
      revisions.advance(to: revision)
      unsafe recordDelete(Key(operation.key.bytes), revision: revision)
    case .deleteAll:
      revisions.advance(to: revision - 1)
      guard try deleteAll(now: 0) == 0 else { return }
      revisions.advance(to: revision)
      recordDeleteAll(revision: revision)
    }
  }

  /// Hands everything over to an empty map, and ends this one's life, as `drop` does. Indexes that are not complete stay
  /// behind.
  /// - Precondition: Nobody reads it without the lock.
  mutating func move(to other: inout EntryMap, because error: StorageError) {
    for index in indexReports where index.state != .complete { try? deleteIndex(named: index.index.name) }
    precondition(!hasReaders, "others read what would be changed")
    endAllSnapshots()
    swap(&self, &other)
    drop(because: error)
  }
}

extension CommitReader {
  /// Returns the next operation, which a map can make; nil after the last one.
  mutating func nextVerified() throws(RecordLoadingError) -> CommitOperation? {
    let operation: CommitOperation?
    do throws(CommitDamage) { operation = try next() } catch { throw .damaged(error.reason) }
    if let problem = operation?.invalidContents { throw .damaged(problem) }
    return operation
  }
}
