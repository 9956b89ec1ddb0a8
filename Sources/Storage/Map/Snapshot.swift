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
/// A record or node that leaves the live tree is kept for the newest snapshot that sees it. When that snapshot has
/// ended, the record passes to the next older snapshot if that one sees it too, and is freed otherwise. What is freed
/// may be much, so it is reclaimed in slices. Owned by one `EntryMap` and used under its store's lock.
struct SnapshotTable: ~Copyable {
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
    var isPinned: Bool
    /// How many readers read its records without the store's lock.
    var readerCount = 0
    var records: [UInt32] = []
    /// The bytes of the records, with their values, those of the trees included.
    var recordBytes = 0
    var nodes: [UInt32] = []
    /// The roots of trees whose nodes and records are not listed yet.
    var trees: [UInt32] = []
    /// The number of nodes, those of the trees included.
    var nodeCount = 0

    /// The bytes of the records and nodes, those of the trees included.
    var retainedBytes: Int { recordBytes + nodeCount * OrderNode.byteCount }

    var token: Snapshot { Snapshot(epoch: epoch, count: count, revision: revision) }

    /// Lists the root of a tree and what is directly below it.
    mutating func list(_ tree: UInt32, in order: borrowing OrderTree<Records>) {
      let node = order.node(tree)
      nodes.append(tree)
      if node.isLeaf {
        for index in 0..<node.count { unsafe records.append(node.handles[index]) }
      } else {
        for index in 0..<node.count { unsafe trees.append(node.children[index]) }
      }
    }

    var memoryBytes: Int {
      MemoryLayout<Element>.stride
        + (records.capacity + nodes.capacity + trees.capacity) * MemoryLayout<UInt32>.stride
    }
  }

  /// Oldest first, so that epochs ascend.
  private var elements: [Element] = []
  /// The snapshots that have ended, with what is still to be reclaimed of them.
  private var ended: [Element] = []
  /// The newest revision that a living snapshot sees; 0 if there is none.
  private(set) var newestRevision: UInt64 = 0
  /// The epoch of the newest snapshot ever taken.
  private var lastEpoch: UInt64 = 0
  /// The bytes of records that only snapshots see or saw, with their values.
  private(set) var retainedRecordBytes = 0
  private(set) var retainedNodeCount = 0
  /// How many readers read records without the store's lock.
  private(set) var readerCount = 0
  /// What the living snapshots keep, as part of what those of all stores do.
  private var share: SnapshotShare
  /// The number of snapshots that were ended because all of them kept too much.
  private(set) var endedForBudgetCount: UInt64 = 0

  init(_ budget: SnapshotBudget) { share = SnapshotShare(budget) }

  /// The number of snapshots; those of the same state count once.
  var count: Int { elements.count }
  @inline(__always)
  var isEmpty: Bool { elements.isEmpty }
  /// Whether anything is still to be reclaimed of snapshots that have ended.
  @inline(__always)
  var hasEnded: Bool { !ended.isEmpty }
  /// The epoch of the newest living snapshot; 0 if there is none.
  var newestEpoch: UInt64 { elements.last?.epoch ?? 0 }
  /// The bytes of order nodes that only snapshots see or saw.
  var retainedNodeBytes: Int { retainedNodeCount * OrderNode.byteCount }
  /// The bytes of records and nodes that only snapshots see or saw.
  var retainedBytes: Int { retainedRecordBytes + retainedNodeBytes }
  /// How much of that is kept for living snapshots. O(snapshots that have ended).
  private var visibleBytes: Int { ended.reduce(retainedBytes) { $0 - $1.retainedBytes } }
  /// The memory of the table itself.
  var memoryBytes: Int { (elements + ended).reduce(0) { $0 + $1.memoryBytes } }

  /// Returns another token for the newest snapshot if the map hasn't changed since and both or neither are pinned;
  /// otherwise nil.
  mutating func share(changeCount: UInt64, isPinned: Bool) -> Snapshot? {
    guard let last = elements.last, last.changeCount == changeCount, last.isPinned == isPinned else { return nil }
    elements[elements.count - 1].tokenCount += 1
    return last.token
  }

  /// Returns another token for the newest snapshot.
  mutating func shareNewest() -> Snapshot {
    elements[elements.count - 1].tokenCount += 1
    return elements[elements.count - 1].token
  }

  /// Lets a snapshot be ended for the budget.
  mutating func unpin(_ snapshot: Snapshot) {
    if let index = index(of: snapshot) { elements[index].isPinned = false }
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

  /// Releases a token.
  /// - Returns: The epoch of the snapshot if this ended it.
  mutating func release(_ snapshot: Snapshot) -> UInt64? {
    guard let index = index(of: snapshot) else { return nil }
    elements[index].tokenCount -= 1
    return elements[index].tokenCount == 0 ? end(at: index) : nil
  }

  /// Keeps a snapshot for a reader, even if all others release it.
  mutating func beginReading(_ snapshot: Snapshot) {
    guard let index = index(of: snapshot) else { preconditionFailure("the snapshot is alive") }
    elements[index].tokenCount += 1
    elements[index].readerCount += 1
    readerCount += 1
  }

  /// Ends what `beginReading` began. Call `release` next.
  mutating func endReading(_ snapshot: Snapshot) {
    readerCount -= 1
    if let index = index(of: snapshot) { elements[index].readerCount -= 1 }
  }

  /// Updates the share of the budget that the living snapshots use. O(snapshots that have ended).
  /// - Parameter indexBytes: What they keep of the indexes, in bytes.
  mutating func updateShare(indexBytes: Int) { share.set(visibleBytes + indexBytes) }

  /// Ends the oldest snapshot that is neither pinned nor read without the lock, even if others still hold tokens for it,
  /// if those of all stores keep too much.
  /// - Returns: Its epoch; nil if none was ended.
  mutating func endOldestForBudget() -> UInt64? {
    guard share.isExceeded, let index = elements.firstIndex(where: { !$0.isPinned && $0.readerCount == 0 }) else {
      return nil
    }
    endedForBudgetCount &+= 1
    return end(at: index)
  }

  /// Ends the oldest snapshot.
  /// - Returns: Its epoch; nil if there is none.
  mutating func endOldest() -> UInt64? { elements.isEmpty ? nil : end(at: 0) }

  private mutating func end(at index: Int) -> UInt64 {
    let element = elements.remove(at: index)
    newestRevision = elements.last?.revision ?? 0
    if !element.records.isEmpty || !element.nodes.isEmpty { ended.append(element) }
    return element.epoch
  }

  /// Something that was kept for a snapshot that has ended.
  enum Retained {
    case record(UInt32)
    case node(UInt32)
  }

  /// The newest living snapshot that is older than one that has ended, or nothing.
  struct Older {
    /// No newer node is visible in it; 0 if there is none.
    let epoch: UInt64
    /// No newer record is visible in it; 0 if there is none.
    let revision: UInt64
    fileprivate let index: Int
  }

  /// Takes something from a snapshot that has ended. The caller frees it, or passes it to the next older snapshot if
  /// that one sees it, too, and says so at once.
  /// - Returns: Nil if everything has been reclaimed.
  mutating func takeRetained(in order: borrowing OrderTree<Records>) -> (Retained, Older)? {
    while let last = ended.indices.last {
      let index = count(before: ended[last].epoch) - 1
      let older =
        index < 0
        ? Older(epoch: 0, revision: 0, index: index)
        : Older(epoch: elements[index].epoch, revision: elements[index].revision, index: index)
      if let node = ended[last].nodes.popLast() { return (.node(node), older) }
      if let record = ended[last].records.popLast() { return (.record(record), older) }
      if let tree = ended[last].trees.popLast() {
        ended[last].list(tree, in: order)
      } else {
        ended.removeLast()
      }
    }
    return nil
  }

  mutating func pass(node: UInt32, to older: Older) {
    ended[ended.count - 1].nodeCount -= 1
    elements[older.index].nodes.append(node)
    elements[older.index].nodeCount += 1
  }

  mutating func pass(record: UInt32, byteCount: Int, to older: Older) {
    ended[ended.count - 1].recordBytes -= byteCount
    elements[older.index].records.append(record)
    elements[older.index].recordBytes += byteCount
  }

  mutating func didFreeNode() {
    ended[ended.count - 1].nodeCount -= 1
    retainedNodeCount -= 1
  }

  mutating func didFreeRecord(byteCount: Int) {
    ended[ended.count - 1].recordBytes -= byteCount
    retainedRecordBytes -= byteCount
  }

  /// Removes all snapshots, with whatever is kept for them.
  mutating func removeAll() {
    elements = []
    newestRevision = 0
    forgetEnded()
  }

  /// Forgets what is still to be reclaimed, because all records and nodes are gone.
  mutating func forgetEnded() {
    precondition(elements.isEmpty, "living snapshots see records")
    ended = []
    (retainedRecordBytes, retainedNodeCount) = (0, 0)
  }

  /// Returns the root and the number of entries of a living snapshot; nil if it has ended. O(log snapshots).
  func tree(of snapshot: Snapshot) -> (root: UInt32, count: Int)? {
    guard let index = index(of: snapshot) else { return nil }
    return (elements[index].root, elements[index].count)
  }

  private func index(of snapshot: Snapshot) -> Int? {
    let index = count(before: snapshot.epoch)
    return index < elements.count && elements[index].epoch == snapshot.epoch ? index : nil
  }

  /// Returns the number of living snapshots that are older than an epoch.
  private func count(before epoch: UInt64) -> Int {
    var (low, high) = (0, elements.count)
    while low < high {
      let middle = (low + high) / 2
      if elements[middle].epoch < epoch { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Keeps a record that left the live tree for the newest snapshot.
  mutating func retain(record: UInt32, byteCount: Int) {
    elements[elements.count - 1].records.append(record)
    elements[elements.count - 1].recordBytes += byteCount
    retainedRecordBytes += byteCount
  }

  /// Keeps nodes that left the live tree for the newest snapshot.
  mutating func retain(nodes: [UInt32]) {
    elements[elements.count - 1].nodes += nodes
    elements[elements.count - 1].nodeCount += nodes.count
    retainedNodeCount += nodes.count
  }

  /// Keeps the whole live tree, which its records and nodes have left together, as what a snapshot saw that has ended.
  /// - Parameters:
  ///   - recordBytes: The bytes of its records, with their values.
  ///   - nodeCount: The number of its nodes.
  mutating func retain(tree root: UInt32, recordBytes: Int, nodeCount: Int) {
    lastEpoch += 1
    ended.append(
      Element(
        epoch: lastEpoch, root: root, count: 0, revision: 0, changeCount: 0, isPinned: false, recordBytes: recordBytes,
        trees: [root], nodeCount: nodeCount))
    retainedRecordBytes += recordBytes
    retainedNodeCount += nodeCount
  }
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
    if isDiverted {
      precondition(!isPinned, "a pinned snapshot waits for the end of a large commit")
      return snapshots.shareNewest()
    }
    return snapshots.share(changeCount: revisions.changeCount, isPinned: isPinned) ?? addSnapshot(isPinned: isPinned)
  }

  mutating func addSnapshot(isPinned: Bool) -> Snapshot {
    let snapshot = snapshots.add(
      root: order.root, count: order.count, revision: revisions.last, changeCount: revisions.changeCount,
      isPinned: isPinned)
    order.beginEpoch(after: snapshot.epoch)
    indexes?.beginViews(epoch: snapshot.epoch, revision: revisions.last)
    return snapshot
  }

  /// How many records and nodes are reclaimed at a time, which takes a fraction of a millisecond.
  private static var reclaimLimit: Int { 1_024 }
  /// How many are reclaimed when snapshots have ended for the budget, and then by one of so many changes, which is more
  /// than the changes add. Freed a few at a time, records would leave holes everywhere that new ones fill, and no chunk
  /// of the arena would ever become empty.
  private static var burstReclaimLimit: Int { 4_096 }
  private static var changesPerBurst: UInt64 { 128 }

  /// Ends a snapshot. Does nothing if it has ended already. Frees some of what only it could see; changes of the map and
  /// `reclaimBriefly` free the rest.
  package mutating func end(_ snapshot: Snapshot) {
    guard let epoch = snapshots.release(snapshot) else { return }
    didEnd(epoch)
    reclaim(limit: Self.reclaimLimit)
    updateSnapshotShare()
  }

  /// Ends all snapshots, even if readers still hold tokens for them. O(everything that is kept for them).
  mutating func endAllSnapshots() {
    while let epoch = snapshots.endOldest() { didEnd(epoch) }
    reclaim()
    updateSnapshotShare()
  }

  mutating func unpin(_ snapshot: Snapshot) { snapshots.unpin(snapshot) }

  /// Begins to read entries of a snapshot without the store's lock: the keys of its entries, and the values that are
  /// neither large nor in files, stay where they are until `endReading`, even if the snapshot ends or the store is dropped
  /// meanwhile. That should be soon, because it keeps memory.
  /// - Throws: `snapshotEnded` or `storeDropped`.
  package mutating func beginReading(_ snapshot: Snapshot) throws(StorageError) {
    try check(snapshot)
    snapshots.beginReading(snapshot)
  }

  /// Whether anyone reads entries without the store's lock.
  var hasReaders: Bool { snapshots.readerCount > 0 }

  /// Ends what `beginReading` began.
  /// - Parameter objects: The handles of entries that turned out to be I-JSON objects, which the map remembers unless it was
  ///   dropped meanwhile.
  package mutating func endReading(_ snapshot: Snapshot, objects: [UInt32] = []) {
    if !objects.isEmpty, snapshots.tree(of: snapshot) != nil {
      for handle in objects { noteObject(at: handle) }
    }
    snapshots.endReading(snapshot)
    end(snapshot)
    if snapshots.readerCount == 0 { freeDiscardedContents() }
  }

  /// Remembers that the value of an entry is an I-JSON object.
  /// - Precondition: The entry is one of the map, or of a living snapshot.
  package func noteObject(at handle: UInt32) { record(handle).setKnownObject() }

  /// Frees some of what snapshots that have ended could see, for a fraction of a millisecond, because others wait for
  /// the store's lock meanwhile.
  /// - Returns: Whether there is more.
  package mutating func reclaimBriefly() -> Bool {
    guard hasEndedSnapshots else { return false }
    reclaim(limit: Self.reclaimLimit)
    updateSnapshotShare()
    return hasEndedSnapshots
  }

  /// Whether anything is still to be reclaimed of snapshots that have ended.
  @inline(__always)
  private var hasEndedSnapshots: Bool { snapshots.hasEnded || indexes?.hasEndedViews ?? false }

  /// Ends the map's oldest snapshots while those of all maps keep more than their budget permits, and frees some of what
  /// snapshots that have ended could see. Call it after a change that may have added to what they keep.
  @inline(__always)
  mutating func enforceSnapshotBudget() {
    if !snapshots.isEmpty || hasEndedSnapshots { endOldSnapshots() }
  }

  @inline(never)
  private mutating func endOldSnapshots() {
    var reclaims = revisions.changeCount.isMultiple(of: Self.changesPerBurst)
    updateSnapshotShare()
    while let epoch = snapshots.endOldestForBudget() {
      didEnd(epoch)
      updateSnapshotShare()
      reclaims = true
    }
    guard reclaims else { return }
    reclaim(limit: Self.burstReclaimLimit)
    updateSnapshotShare()
  }

  mutating func updateSnapshotShare() {
    snapshots.updateShare(indexBytes: indexes?.visibleBytes ?? 0)
  }

  private mutating func didEnd(_ epoch: UInt64) {
    order.endEpochs(after: snapshots.newestEpoch)
    indexes?.endViews(epoch: epoch)
  }

  /// Frees that many of the records, nodes and entries of indexes that were kept for snapshots that have ended, or passes
  /// them to the next older snapshots.
  /// - Returns: Whether there were any.
  @discardableResult
  mutating func reclaim(limit: Int = .max) -> Bool {
    var left = limit
    while left > 0, let (retained, older) = snapshots.takeRetained(in: order) {
      left -= 1
      switch retained {
      case .node(let node) where order.epoch(of: node) <= older.epoch:
        snapshots.pass(node: node, to: older)
      case .node(let node):
        snapshots.didFreeNode()
        order.free(node)
      case .record(let handle) where record(handle).revision <= older.revision:
        snapshots.pass(record: handle, byteCount: record(handle).memoryBytes, to: older)
      case .record(let handle):
        snapshots.didFreeRecord(byteCount: record(handle).memoryBytes)
        free(handle)
      }
    }
    if left > 0, let indexes { left -= indexes.reclaim(limit: left) }
    return left < limit
  }

  /// Checks that a snapshot is alive.
  /// - Throws: `snapshotEnded` or `storeDropped`.
  package func check(_ snapshot: Snapshot) throws(StorageError) { _ = try tree(of: snapshot) }

  /// Returns the root and the number of entries of a living snapshot. O(log snapshots).
  func tree(of snapshot: Snapshot) throws(StorageError) -> (root: UInt32, count: Int) {
    guard let tree = snapshots.tree(of: snapshot) else { throw isDropped ? removalError : .snapshotEnded }
    return tree
  }
}
