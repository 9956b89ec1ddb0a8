import Platform

/// What a store with a journal does beside: every change is noted as a commit, for the journal to take. And in the feed, if there is one.
extension EntryMap {
  /// The most that an operation takes in a commit beside key and value, with the commit's own header.
  private static let operationByteCount = 36

  /// Makes sure that commits of so many operations, with so many bytes of keys and values in all, can be taken.
  /// - Throws: `readOnly`, `diskFull` or `diskTooSlow`.
  @inline(__always)
  package func checkCommit(operations: Int, bytes: Int) throws(StorageError) {
    guard isJournaled else { return }
    try checkJournal(byteCount: operations * Self.operationByteCount + bytes)
  }

  private func checkJournal(byteCount: Int) throws(StorageError) {
    if let writeFault, writeFault != .diskFull { throw writeFault }
    guard commits.count + byteCount <= commitLimit else { throw writeFault ?? .diskTooSlow }
  }

  @inline(__always)
  mutating func notePut(
    _ key: Key, _ value: UnsafeRawBufferPointer, kind: EntryKind, expiry: UInt64, revision: UInt64
  ) {
    if notesChanges { unsafe notePutOutside(key, value, kind: kind, expiry: expiry, revision: revision) }
  }

  private mutating func notePutOutside(
    _ key: Key, _ value: UnsafeRawBufferPointer, kind: EntryKind, expiry: UInt64, revision: UInt64
  ) {
    let key = unsafe UnsafeRawBufferPointer(start: key.start, count: key.count)
    unsafe feed?.note(kind == .list ? .list : .single, key, value, expiry: expiry, revision: revision)
    guard isJournaled else { return }
    if expiry != 0 { lastRemoval = revision }
    unsafe commits.put(
      key, value, kind: kind == .list ? .list : .single,
      expiry: expiry == 0 ? 0 : ClockReading.now.wall(ofMonotonic: expiry), revision: revision)
  }

  @inline(__always)
  mutating func noteDelete(_ key: Key, revision: UInt64) {
    lastRemoval = revision
    guard notesChanges else { return }
    let key = unsafe UnsafeRawBufferPointer(start: key.start, count: key.count)
    let none = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    unsafe feed?.note(.delete, key, none, expiry: 0, revision: revision)
    if isJournaled { unsafe commits.delete(key, revision: revision) }
  }

  mutating func noteDeleteAll(revision: UInt64) {
    lastRemoval = revision
    let none = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    unsafe feed?.note(.deleteAll, none, none, expiry: 0, revision: revision)
    if isJournaled { commits.deleteAll(revision: revision) }
  }

  // MARK: The journal's side

  /// Begins to keep commits.
  package mutating func beginCommits(commitLimit: Int) {
    isJournaled = true
    notesChanges = true
    self.commitLimit = commitLimit
  }

  /// Whether there is anything for the journal to take.
  package var hasCommits: Bool { !commits.isEmpty }

  /// Hands the commits over, sealed, in exchange for an empty buffer.
  package mutating func takeCommits(into buffer: inout CommitBuffer) {
    precondition(buffer.isEmpty)
    commits.seal()
    swap(&commits, &buffer)
  }

  /// Says how much more may be committed, and whether the disk is full.
  package mutating func setCommitLimit(_ byteCount: Int, isDiskFull: Bool) {
    commitLimit = byteCount
    if writeFault == nil || writeFault == .diskFull { writeFault = isDiskFull ? .diskFull : nil }
  }

  /// Ends all writing: the journal has failed. What was committed and not taken is forgotten.
  package mutating func endWriting(_ failure: StorageError) {
    writeFault = failure
    commits.seal()
    commits.removeAll()
  }
}
