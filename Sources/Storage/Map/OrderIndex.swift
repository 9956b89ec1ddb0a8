/// The handles of all live records in the order of their keys: a counted B+tree.
///
/// Every node above the leaves knows how many records lie below each child, so that the n-th record and the rank of a
/// key are found in O(log n), and the first record below each child, whose key guides a search. All leaves have one
/// level.
///
/// Snapshots: a node remembers the epoch it was made in, and one that a snapshot can see (`epoch <= sharedEpoch`) is
/// never written: a change copies it first, and what it replaces goes to `replacedNodes` for the owner to free in time.
///
/// Owned by one `EntryMap` and used under its store's lock. It refers to records and never owns them.
@safe
struct OrderIndex: ~Copyable {
  var pool = NodePool()
  /// The root's handle; 0 while there is nothing.
  var root: UInt32 = 0
  var count = 0
  /// The epoch of nodes made now; a snapshot begins the next.
  var epoch: UInt64 = 1
  /// The newest epoch that a living snapshot sees; 0 when there is none.
  var sharedEpoch: UInt64 = 0
  /// Nodes that are no longer in the tree, but that a snapshot may see.
  var replacedNodes: [UInt32] = []

  var memoryBytes: Int { pool.memoryBytes }

  /// Makes sure that so many insertions, or one removal or replacement, need nothing of the system.
  ///
  /// Each insertion may split a leaf that is full already, and every node above that is full, though none twice; under a
  /// snapshot it may first copy a node and two siblings on every level, again none twice.
  @inline(__always)
  mutating func reserve(insertions: Int = 1) throws(StorageError) {
    let height = root == 0 ? 1 : pool.node(root).level + 2
    let copies = sharedEpoch == 0 ? 0 : min(pool.nodesInUse, insertions * height * 3)
    let splits = min(pool.nodesInUse, insertions * height)
    try pool.reserve(insertions * 2 + splits + height * 3 + copies)
  }

  /// The node itself when only the live tree sees it, else a copy of it that replaces it.
  @inline(__always)
  mutating func writable(_ handle: UInt32) -> UInt32 {
    pool.node(handle).epoch > sharedEpoch ? handle : copy(handle)
  }

  private mutating func copy(_ handle: UInt32) -> UInt32 {
    let copy = pool.make()
    pool.node(copy).copy(from: pool.node(handle))
    pool.node(copy).epoch = epoch
    replacedNodes.append(handle)
    return copy
  }

  /// Leaves the nodes there are to the snapshot of that epoch; changes make others from now on.
  mutating func beginEpoch(after epoch: UInt64) {
    sharedEpoch = epoch
    self.epoch = epoch + 1
  }

  mutating func makeNode(level: Int) -> UInt32 {
    let handle = pool.make()
    pool.node(handle).initialize(level: level, epoch: epoch)
    return handle
  }

  /// Lets go of a node that left the tree.
  mutating func discard(_ handle: UInt32) {
    if pool.node(handle).epoch > sharedEpoch { pool.free(handle) } else { replacedNodes.append(handle) }
  }
}
