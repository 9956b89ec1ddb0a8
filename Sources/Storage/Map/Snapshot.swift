/// A token for an immutable view of a store, from `EntryMap.snapshot` until `EntryMap.end`.
///
/// The token owns nothing: the map keeps what the view shows, and readers read it under the store's lock.
package struct Snapshot: Hashable, Sendable {
  let epoch: UInt64
  /// The number of entries in the view. Their ranks are 0 to `count - 1`.
  package let count: Int
  /// The store's revision when the view was taken.
  package let revision: UInt64
}

/// The living snapshots of a map, and the records and nodes that are kept for them.
///
/// A record or node that leaves the live tree is kept for the newest snapshot that sees it. When that snapshot ends,
/// the record passes to the next older snapshot if that one sees it too, and is freed otherwise: nothing is kept for
/// longer than it is visible. Owned by one `EntryMap` and used under its store's lock.
struct SnapshotTable {
  private struct Element {
    let epoch: UInt64
    let root: UInt32
    let count: Int
    let revision: UInt64
    /// The map's count of changes. A second snapshot of the same state shares the element.
    let changeCount: UInt64
    /// The number of tokens that share the element.
    var tokenCount = 1
    /// Whether it stays until it is released, whatever it keeps.
    let isPinned: Bool
    var records: [UInt32] = []
    var nodes: [UInt32] = []

    var token: Snapshot { Snapshot(epoch: epoch, count: count, revision: revision) }

    var memoryBytes: Int {
      MemoryLayout<Element>.stride + (records.capacity + nodes.capacity) * MemoryLayout<UInt32>.stride
    }
  }

  /// Oldest first, so that epochs ascend.
  private var elements: [Element] = []
  /// The newest revision that a living snapshot sees; 0 if there is none.
  private(set) var newestRevision: UInt64 = 0
  /// The epoch of the newest snapshot ever taken.
  private var lastEpoch: UInt64 = 0
  /// The bytes of records that only snapshots see, with their values.
  private(set) var retainedRecordBytes = 0
  private var retainedNodeCount = 0

  /// The number of snapshots; those of the same state count once.
  var count: Int { elements.count }
  @inline(__always)
  var isEmpty: Bool { elements.isEmpty }
  /// The epoch of the newest living snapshot; 0 if there is none.
  var newestEpoch: UInt64 { elements.last?.epoch ?? 0 }
  /// The bytes of order nodes that only snapshots see.
  var retainedNodeBytes: Int { retainedNodeCount * OrderNode.byteCount }
  /// The bytes of records and nodes that only snapshots see.
  var retainedBytes: Int { retainedRecordBytes + retainedNodeBytes }
  /// The memory of the table itself.
  var memoryBytes: Int { elements.reduce(0) { $0 + $1.memoryBytes } }

  /// Returns another token for the newest snapshot if the map hasn't changed since and both or neither are pinned;
  /// otherwise nil.
  mutating func share(changeCount: UInt64, isPinned: Bool) -> Snapshot? {
    guard let last = elements.last, last.changeCount == changeCount, last.isPinned == isPinned else { return nil }
    elements[elements.count - 1].tokenCount += 1
    return last.token
  }

  /// Adds a snapshot of the tree below a root.
  mutating func add(root: UInt32, count: Int, revision: UInt64, changeCount: UInt64, isPinned: Bool) -> Snapshot {
    lastEpoch += 1
    let element = Element(
      epoch: lastEpoch, root: root, count: count, revision: revision, changeCount: changeCount, isPinned: isPinned)
    elements.append(element)
    newestRevision = revision
    return element.token
  }

  /// A snapshot that has ended, and what was kept for it.
  struct Ended {
    let epoch: UInt64
    let records: [UInt32]
    let nodes: [UInt32]
    /// The epoch of the next older snapshot, which sees no newer nodes; 0 if there is none.
    let olderEpoch: UInt64
    /// The revision of the next older snapshot, which sees no newer records; 0 if there is none.
    let olderRevision: UInt64
    fileprivate let index: Int
  }

  /// Releases a token.
  /// - Returns: The snapshot if this ended it. The caller frees or passes on everything that was kept for it.
  mutating func release(_ snapshot: Snapshot) -> Ended? {
    guard let index = index(of: snapshot) else { return nil }
    elements[index].tokenCount -= 1
    return elements[index].tokenCount == 0 ? remove(at: index) : nil
  }

  /// Removes the oldest snapshot that is not pinned, whoever has tokens of it; nil if there is none.
  mutating func removeOldest() -> Ended? {
    elements.firstIndex { !$0.isPinned }.map { remove(at: $0) }
  }

  private mutating func remove(at index: Int) -> Ended {
    let element = elements.remove(at: index)
    newestRevision = elements.last?.revision ?? 0
    let older = index > 0 ? (elements[index - 1].epoch, elements[index - 1].revision) : (0, 0)
    return Ended(
      epoch: element.epoch, records: element.records, nodes: element.nodes, olderEpoch: older.0,
      olderRevision: older.1, index: index)
  }

  /// Passes a node of an ended snapshot to the next older one.
  mutating func pass(node: UInt32, of ended: Ended) { elements[ended.index - 1].nodes.append(node) }

  /// Passes a record of an ended snapshot to the next older one.
  mutating func pass(record: UInt32, of ended: Ended) { elements[ended.index - 1].records.append(record) }

  /// Removes all snapshots, with whatever is kept for them.
  mutating func removeAll() {
    elements = []
    (newestRevision, retainedRecordBytes, retainedNodeCount) = (0, 0, 0)
  }

  /// Returns the root and the number of entries of a living snapshot; nil if it has ended. O(log snapshots).
  func tree(of snapshot: Snapshot) -> (root: UInt32, count: Int)? {
    guard let index = index(of: snapshot) else { return nil }
    return (elements[index].root, elements[index].count)
  }

  private func index(of snapshot: Snapshot) -> Int? {
    var (low, high) = (0, elements.count)
    while low < high {
      let middle = (low + high) / 2
      if elements[middle].epoch < snapshot.epoch { low = middle + 1 } else { high = middle }
    }
    return low < elements.count && elements[low].epoch == snapshot.epoch ? low : nil
  }

  /// Keeps a record that left the live tree for the newest snapshot.
  mutating func retain(record: UInt32, byteCount: Int) {
    elements[elements.count - 1].records.append(record)
    retainedRecordBytes += byteCount
  }

  /// Keeps nodes that left the live tree for the newest snapshot.
  mutating func retain(nodes: [UInt32]) {
    elements[elements.count - 1].nodes += nodes
    retainedNodeCount += nodes.count
  }

  /// Notes that the map has freed a record that only snapshots saw.
  mutating func didFreeRecord(byteCount: Int) { retainedRecordBytes -= byteCount }

  /// Notes that the map has freed a node that only snapshots saw.
  mutating func didFreeNode() { retainedNodeCount -= 1 }
}

extension EntryMap {
  /// The number of living snapshots; those of the same state count once.
  package var snapshotCount: Int { snapshots.count }

  /// Returns an immutable view of the map as it is. O(1) after removing expired entries, of which many may stay: see
  /// `expireBriefly`. Readers skip these, but ranks count them.
  ///
  /// Every snapshot must be ended: until then, everything it sees stays in memory. If all snapshots keep more than the
  /// map's `SnapshotBudget` permits, the next write ends the oldest ones, and reading them throws `snapshotEnded`.
  /// - Parameter isPinned: Whether the snapshot lasts until it is ended, whatever it keeps.
  package mutating func snapshot(now: UInt64, isPinned: Bool = false) -> Snapshot {
    _ = expireBriefly(now: now)
    if let shared = snapshots.share(changeCount: changeCount, isPinned: isPinned) { return shared }
    let snapshot = snapshots.add(
      root: order.root, count: order.count, revision: revision, changeCount: changeCount, isPinned: isPinned)
    order.beginEpoch(after: snapshot.epoch)
    indexes?.beginViews(epoch: snapshot.epoch, revision: revision)
    return snapshot
  }

  /// Ends a snapshot and frees whatever only it could see. Does nothing if it has ended already.
  package mutating func end(_ snapshot: Snapshot) {
    guard let ended = snapshots.release(snapshot) else { return }
    free(ended)
    updateSnapshotShare()
  }

  /// Ends the map's oldest snapshots while those of all maps keep more than their budget permits. O(what they keep).
  /// Call it after a change that may have added to what they keep.
  @inline(__always)
  mutating func enforceSnapshotBudget() {
    if !snapshots.isEmpty { endOldSnapshots() }
  }

  @inline(never)
  private mutating func endOldSnapshots() {
    updateSnapshotShare()
    while snapshotShare.isExceeded, let ended = snapshots.removeOldest() {
      free(ended)
      updateSnapshotShare()
      endedSnapshotCount &+= 1
    }
  }

  mutating func updateSnapshotShare() {
    snapshotShare.set(snapshots.retainedBytes + (indexes?.retainedBytes ?? 0))
  }

  /// Passes what was kept for a snapshot to the next older one, or frees it.
  private mutating func free(_ ended: SnapshotTable.Ended) {
    order.endEpochs(after: snapshots.newestEpoch)
    indexes?.endViews(epoch: ended.epoch)
    for node in ended.nodes {
      if order.epoch(of: node) <= ended.olderEpoch {
        snapshots.pass(node: node, of: ended)
      } else {
        snapshots.didFreeNode()
        order.free(node)
      }
    }
    for handle in ended.records {
      if record(handle).revision <= ended.olderRevision {
        snapshots.pass(record: handle, of: ended)
      } else {
        snapshots.didFreeRecord(byteCount: record(handle).memoryBytes)
        free(handle)
      }
    }
  }

  /// Checks that a snapshot is alive.
  /// - Throws: `snapshotEnded` or `storeDropped`.
  package func check(_ snapshot: Snapshot) throws(StorageError) { _ = try tree(of: snapshot) }

  /// Returns the root and the number of entries of a living snapshot. O(log snapshots).
  func tree(of snapshot: Snapshot) throws(StorageError) -> (root: UInt32, count: Int) {
    guard let tree = snapshots.tree(of: snapshot) else { throw isDropped ? .storeDropped : .snapshotEnded }
    return tree
  }
}
