/// Loads records that a `CommitBuffer` has written, wherever they were kept, into an empty map: first those of a
/// snapshot, if there is one, and then those of the commits after it.
///
/// It verifies all of them, so that no damage reaches the map or traps in it.
package struct RecordLoader {
  private let now: ClockReading
  private var loader = BulkLoader()
  private var lastRevision: UInt64 = 0
  private var lastKey: [UInt8] = []
  /// The latest changes, for watches that began elsewhere.
  private var feed: ChangeFeed?
  private let feedByteCount: Int
  private let notifiesImmediately: Bool
  private let values: any ValuesInCommits

  /// - Parameters:
  ///   - now: The current time.
  ///   - feedByteCount: The size of the latest changes that are kept for watches, in bytes.
  ///   - notifiesImmediately: Whether watches may see changes before they are durable.
  ///   - entries: About how many entries there are.
  ///   - values: What reads separated values, which are not loaded.
  package init(
    at now: ClockReading, expecting entries: Int, keeping feedByteCount: Int, notifiesImmediately: Bool,
    values: any ValuesInCommits, into map: inout EntryMap
  ) throws(RecordLoadingError) {
    (self.now, self.feedByteCount, self.notifiesImmediately) = (now, feedByteCount, notifiesImmediately)
    self.values = values
    do throws(StorageError) { try map.beginLoading(entries: entries) } catch { throw .noMemory(error) }
  }

  /// Loads some of the records of a snapshot, which are in the order of their keys.
  /// - Parameter revision: The revision of the snapshot. No record has a later one.
  package mutating func loadSnapshot(
    _ bytes: UnsafeRawBufferPointer, revision: UInt64, into map: inout EntryMap
  ) throws(RecordLoadingError) {
    let reader = unsafe CommitReader(bytes, mayHaveReferences: true)
    try load(reader, ofCommitAt: nil, into: &map) { loader, operation throws(RecordLoadingError) in
      guard operation.kind == .single || operation.kind == .list, (1...revision).contains(operation.revision),
        unsafe loader.lastKey.isEmpty || loader.lastKey.lexicographicallyPrecedes(operation.key)
      else { throw .damaged("the records of a snapshot are out of order") }
      loader.lastKey.removeAll(keepingCapacity: true)
      unsafe loader.lastKey.append(contentsOf: operation.key)
      return true
    }
    lastRevision = revision
  }

  /// Loads the records of a commit. Revisions ascend. Skips those that the snapshot includes.
  package mutating func loadCommit(
    _ bytes: UnsafeRawBufferPointer, at position: Int64, into map: inout EntryMap
  ) throws(RecordLoadingError) {
    let first = lastRevision
    beginFeed()
    try load(unsafe CommitReader(bytes), ofCommitAt: position, into: &map) {
      loader, operation throws(RecordLoadingError) in
      guard operation.revision > first else { return false }
      guard operation.revision >= loader.lastRevision, CommitBuffer.revisions.contains(operation.revision) else {
        throw .damaged("revisions are out of order")
      }
      loader.lastRevision = operation.revision
      loader.addToFeed(operation)
      return true
    }
  }

  /// Begins to keep changes, unless that has begun.
  private mutating func beginFeed() {
    guard feed == nil else { return }
    feed = ChangeFeed(after: lastRevision, limit: feedByteCount, notifiesImmediately: notifiesImmediately)
  }

  private mutating func addToFeed(_ operation: CommitOperation) {
    let expiry = operation.expiry == 0 ? 0 : now.monotonic(ofWall: operation.expiry)
    let kind: ChangeView.Kind =
      switch operation.kind {
      case .single: .single
      case .list: .list
      case .delete: .delete
      case .deleteAll: .deleteAll
      }
    unsafe feed?.append(kind, operation.key, operation.value, expiry: expiry, revision: operation.revision)
  }

  /// Finishes loading the map, and returns its revision.
  package mutating func finish(_ map: inout EntryMap) throws(RecordLoadingError) -> UInt64 {
    do throws(StorageError) { try loader.finish(&map, revision: lastRevision) } catch { throw .noMemory(error) }
    beginFeed()
    if let feed { map.keepFeed(feed) }
    return lastRevision
  }

  /// - Parameters:
  ///   - position: The position of the commit; nil for a snapshot.
  ///   - accepts: Returns whether an operation is to be loaded.
  private mutating func load(
    _ reader: CommitReader, ofCommitAt position: Int64?, into map: inout EntryMap,
    where accepts: (inout RecordLoader, CommitOperation) throws(RecordLoadingError) -> Bool
  ) throws(RecordLoadingError) {
    var reader = reader
    while let operation = try reader.nextVerified() {
      guard try accepts(&self, operation) else { continue }
      let reference =
        operation.reference ?? position.map { ValueReference(position: $0, offset: operation.valueOffset) }
      do throws(StorageError) { try apply(operation, at: reference, to: &map) } catch { throw .noMemory(error) }
    }
    do throws(StorageError) { try loader.flush(into: &map) } catch { throw .noMemory(error) }
  }

  /// - Parameter reference: Where the value is, if it is in a commit.
  private mutating func apply(
    _ operation: CommitOperation, at reference: ValueReference?, to map: inout EntryMap
  ) throws(StorageError) {
    let revision = operation.revision
    switch operation.kind {
    case .single, .list:
      guard operation.expiry == 0 || operation.expiry > now.wall else {
        return unsafe try loader.remove(operation.key, revision: revision, from: &map)
      }
      let expiry = operation.expiry == 0 ? 0 : now.monotonic(ofWall: operation.expiry)
      let kind: EntryKind = operation.kind == .single ? .single : .list
      if let reference, operation.isSeparated {
        let value = SeparatedValue(
          reference, byteCount: operation.valueByteCount, checksum: operation.valueChecksum, in: values)
        return unsafe try loader.put(operation.key, value, kind: kind, expiry: expiry, revision: revision, into: &map)
      }
      unsafe try loader.put(
        operation.key, operation.value, kind: kind, expiry: expiry, revision: revision, into: &map)
    case .delete: unsafe try loader.remove(operation.key, revision: revision, from: &map)
    case .deleteAll: try loader.removeAll(revision: revision, from: &map)
    }
  }
}

/// Why records can't be loaded.
package enum RecordLoadingError: Error, Equatable, Sendable {
  /// They are not what was written, for this reason.
  case damaged(String)
  /// The entries don't fit into memory.
  case noMemory(StorageError)
}

extension RecordLoadingError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .damaged(let reason): reason
    case .noMemory(let error): "\(error)"
    }
  }
}
