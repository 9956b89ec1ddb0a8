/// Handles of blocks in the order of the blocks' keys, as a counted B+tree: the order of a map's records, or of the
/// entries of one of its indexes.
///
/// Every inner node knows the number of blocks below each child, so that the n-th block and the rank of a key are found
/// in O(log n), and the first block below each child, whose key guides a search. All leaves are at the same level.
///
/// Snapshots: a node remembers the epoch it was created in. A node that a snapshot can see (`epoch <= sharedEpoch`) is
/// never written: a change copies it first, and adds the original to `replacedNodes` for the owner to free in time.
///
/// Used under its store's lock. It refers to blocks but doesn't own them.
@safe
struct OrderTree<Blocks: OrderedBlocks>: ~Copyable {
  private var pool = NodePool()
  /// The root's handle; 0 while the index is empty.
  private(set) var root: UInt32 = 0
  private(set) var count = 0
  /// The epoch of new nodes. A snapshot begins the next one.
  private(set) var epoch: UInt64 = 1
  /// The newest epoch that a living snapshot sees; 0 if there is none.
  private var sharedEpoch: UInt64 = 0
  /// Nodes that have left the tree, but that a snapshot may see.
  private(set) var replacedNodes: [UInt32] = []

  /// The number of nodes of the tree, of snapshots and of `replacedNodes`.
  var nodesInUse: Int { pool.nodesInUse }
  var memoryBytes: Int { pool.memoryBytes }

  /// Reserves nodes, so that this number of insertions, or one removal or replacement, needs nothing from the system.
  ///
  /// Each insertion may split a leaf that is full already, and every full node above it, though no node twice. Under a
  /// snapshot it may first copy a node and two siblings on every level, again no node twice.
  @inline(__always)
  mutating func reserve(insertions: Int = 1) throws(StorageError) {
    let height = root == 0 ? 1 : pool.node(root).level + 2
    let copies = sharedEpoch == 0 ? 0 : min(pool.nodesInUse, insertions * height * 3)
    let splits = min(pool.nodesInUse, insertions * height)
    try pool.reserve(insertions * 2 + splits + height * 3 + copies)
  }

  // MARK: Nodes and epochs

  /// Leaves the existing nodes to the snapshot of this epoch. Changes make new ones from now on.
  mutating func beginEpoch(after epoch: UInt64) {
    sharedEpoch = epoch
    self.epoch = epoch + 1
  }

  /// Makes the nodes of later epochs writable, because no snapshot newer than this one is alive.
  mutating func endEpochs(after epoch: UInt64) { sharedEpoch = epoch }

  func node(_ handle: UInt32) -> OrderNode { pool.node(handle) }

  func epoch(of node: UInt32) -> UInt64 { pool.node(node).epoch }

  /// Frees a node that has left the tree and that no snapshot sees.
  mutating func free(_ node: UInt32) { pool.free(node) }

  mutating func forgetReplacedNodes() { replacedNodes.removeAll(keepingCapacity: true) }

  /// Returns the node itself if only the live tree sees it, otherwise a copy that replaces it.
  @inline(__always)
  private mutating func writable(_ handle: UInt32) -> UInt32 {
    pool.node(handle).epoch > sharedEpoch ? handle : copy(handle)
  }

  private mutating func copy(_ handle: UInt32) -> UInt32 {
    let copy = pool.make()
    pool.node(copy).copy(from: pool.node(handle))
    pool.node(copy).epoch = epoch
    replacedNodes.append(handle)
    return copy
  }

  private mutating func makeNode(level: Int) -> UInt32 {
    let handle = pool.make()
    pool.node(handle).initialize(level: level, epoch: epoch)
    return handle
  }

  /// Releases a node that has left the tree.
  private mutating func discard(_ handle: UInt32) {
    if pool.node(handle).epoch > sharedEpoch { pool.free(handle) } else { replacedNodes.append(handle) }
  }

  // MARK: Reading

  /// Returns the number of blocks below a root that precede the bound.
  func rank(_ key: Blocks.SearchKey, _ bound: Key.Bound, root: UInt32, in blocks: Blocks) -> Int {
    guard root != 0 else { return 0 }
    var (rank, node) = (0, pool.node(root))
    while !node.isLeaf {
      let preceding = node.childrenPreceding(key, bound, in: blocks)
      if preceding == 0 { return rank }
      unsafe rank += OrderNode.sum(node.counts, count: preceding - 1)
      node = unsafe pool.node(node.children[preceding - 1])
    }
    return rank + node.handlesPreceding(key, bound, in: blocks)
  }

  /// Returns the last block that doesn't come after the key; 0 if there is none.
  func last(notAfter key: Blocks.SearchKey, in blocks: Blocks) -> UInt32 {
    last(notAfter: key, root: root, in: blocks)
  }

  /// Returns the last block below a root that doesn't come after the key; 0 if there is none.
  func last(notAfter key: Blocks.SearchKey, root: UInt32, in blocks: Blocks) -> UInt32 {
    guard root != 0 else { return 0 }
    var node = pool.node(root)
    while !node.isLeaf { node = unsafe pool.node(node.children[node.childIndex(key, in: blocks)]) }
    let preceding = node.handlesPreceding(key, .upper, in: blocks)
    return preceding == 0 ? 0 : unsafe node.handles[preceding - 1]
  }

  /// Calls `body` with the blocks of these ranks below a root, in order or in reverse, until it returns false.
  ///
  /// - Returns: The number of blocks that `body` was called with.
  func visit(
    _ ranks: Range<Int>, reverse: Bool, root: UInt32, in blocks: Blocks, _ body: (UInt32) -> Bool
  ) -> Int {
    guard root != 0, !ranks.isEmpty else { return 0 }
    var visited = 0
    _ = visit(ranks, reverse: reverse, node: pool.node(root), in: blocks, visited: &visited, body)
    return visited
  }

  /// Returns false once `body` has.
  private func visit(
    _ ranks: Range<Int>, reverse: Bool, node: OrderNode, in blocks: Blocks, visited: inout Int,
    _ body: (UInt32) -> Bool
  ) -> Bool {
    if node.isLeaf { return node.visitHandles(ranks, reverse: reverse, in: blocks, visited: &visited, body) }
    // Whole children before the ranks (after them, in reverse) are skipped by their counts.
    var start = reverse ? node.blockCount : 0
    for step in 0..<node.count {
      let index = reverse ? node.count - 1 - step : step
      let count = unsafe Int(node.counts[index])
      if reverse { start -= count }
      let wanted = ranks.clamped(to: start..<start + count)
      if !wanted.isEmpty {
        let child = unsafe pool.node(node.children[index])
        let local = wanted.lowerBound - start..<wanted.upperBound - start
        guard visit(local, reverse: reverse, node: child, in: blocks, visited: &visited, body) else { return false }
      } else if reverse ? start + count <= ranks.lowerBound : start >= ranks.upperBound {
        break
      }
      if !reverse { start += count }
    }
    return true
  }

  // MARK: Insertion

  // Insertion walks down once: a full child gets room before the walk enters it, so that nothing has to be undone or
  // carried back up.

  /// The end of the order that a new key lies beyond, if any. Loads in ascending or descending order are common, and
  /// splitting at the end instead of in the middle leaves their nodes full.
  private enum Edge { case first, last, none }

  /// Adds a block whose key has no block yet.
  /// - Precondition: Nodes are reserved.
  mutating func insert(_ block: UInt32, key: Blocks.SearchKey, in blocks: Blocks) {
    let edge = self.edge(for: key, in: blocks)
    if root == 0 { root = makeNode(level: 0) }
    root = writable(root)
    if pool.node(root).isFull { addRoot() }
    var node = pool.node(root)
    while !node.isLeaf {
      var index = self.index(below: node, key, edge, in: blocks)
      if unsafe pool.node(node.children[index]).isFull {
        reserveSpace(below: node, at: index, edge)
        index = self.index(below: node, key, edge, in: blocks)
      }
      let child = unsafe writable(node.children[index])
      unsafe node.children[index] = child
      unsafe node.counts[index] &+= 1
      if edge == .first || pool.node(child).count == 0 { unsafe node.firsts[index] = block }
      node = pool.node(child)
    }
    let index =
      switch edge {
      case .first: 0
      case .last: node.count
      case .none: node.handlesPreceding(key, .lower, in: blocks)
      }
    node.shift(from: index, by: 1)
    unsafe node.handles[index] = block
    count += 1
  }

  private func edge(for key: Blocks.SearchKey, in blocks: Blocks) -> Edge {
    guard count > 0 else { return .last }
    var node = pool.node(root)
    if !blocks.precedes(node.firstBlock, key, .lower) { return .first }
    while !node.isLeaf { node = unsafe pool.node(node.children[node.count - 1]) }
    return unsafe blocks.precedes(node.handles[node.count - 1], key, .lower) ? .last : .none
  }

  @inline(__always)
  private func index(below node: OrderNode, _ key: Blocks.SearchKey, _ edge: Edge, in blocks: Blocks) -> Int {
    switch edge {
    case .first: 0
    case .last: node.count - 1
    case .none: node.childIndex(key, in: blocks)
    }
  }

  private mutating func addRoot() {
    let node = pool.node(root)
    let handle = makeNode(level: node.level + 1)
    let newRoot = pool.node(handle)
    newRoot.count = 1
    newRoot.set(0, child: root, node: node)
    root = handle
  }

  /// Makes room for one more element in the child. Afterwards the parent still has a child where the search goes.
  private mutating func reserveSpace(below parent: OrderNode, at index: Int, _ edge: Edge) {
    guard edge == .none else { return splitEdge(below: parent, at: index, atEnd: edge == .last) }
    let capacity = unsafe pool.node(parent.children[index]).capacity
    let before = index > 0 ? unsafe pool.node(parent.children[index - 1]).count : capacity
    let after = index + 1 < parent.count ? unsafe pool.node(parent.children[index + 1]).count : capacity
    // A sibling with room for only one element would be full again at once.
    if min(before, after) <= capacity - 2 {
      redistribute(below: parent, from: before < after ? index - 1 : index, count: 2, into: 2)
    } else if index > 0 {
      redistribute(below: parent, from: index - 1, count: 2, into: 3)
    } else if parent.count > 1 {
      redistribute(below: parent, from: index, count: 2, into: 3)
    } else {
      redistribute(below: parent, from: index, count: 1, into: 2)
    }
  }

  /// Puts a new node beside the outermost child. A new leaf is empty, because it is about to get its block. A new
  /// inner node gets one child of the full one, because an inner node must not be empty.
  private mutating func splitEdge(below parent: OrderNode, at index: Int, atEnd: Bool) {
    let full = unsafe writable(parent.children[index])
    unsafe parent.children[index] = full
    let source = pool.node(full)
    let added = makeNode(level: source.level)
    let target = pool.node(added)
    let place = atEnd ? index + 1 : index
    parent.shift(from: place, by: 1)
    unsafe parent.children[place] = added
    unsafe parent.counts[place] = 0
    guard !source.isLeaf else { return }
    target.count = 1
    let taken = atEnd ? source.count - 1 : 0
    for column in 0..<source.columnCount { unsafe target.column(column)[0] = source.column(column)[taken] }
    if atEnd { source.count -= 1 } else { source.shift(from: 1, by: -1) }
    parent.set(place, child: added, node: target)
    parent.set(atEnd ? index : index + 1, child: full, node: source)
  }

  // MARK: Removal and replacement

  // Removal walks down once: a sparse child is merged or balanced with its siblings before the walk enters it.

  /// Removes a block that is in the tree.
  /// - Precondition: Nodes are reserved if a snapshot is alive.
  mutating func remove(_ block: UInt32, key: Blocks.SearchKey, in blocks: Blocks) {
    root = writable(root)
    remove(block, key: key, from: pool.node(root), in: blocks)
    count -= 1
    while !pool.node(root).isLeaf, pool.node(root).count == 1 {
      let old = root
      root = unsafe pool.node(old).children[0]
      discard(old)
    }
  }

  private mutating func remove(_ block: UInt32, key: Blocks.SearchKey, from node: OrderNode, in blocks: Blocks) {
    if node.isLeaf {
      node.shift(from: node.index(of: block) + 1, by: -1)
      return
    }
    var index = node.childIndex(key, in: blocks)
    if rebalance(below: node, at: index) { index = node.childIndex(key, in: blocks) }
    let child = unsafe writable(node.children[index])
    unsafe node.children[index] = child
    remove(block, key: key, from: pool.node(child), in: blocks)
    unsafe node.counts[index] -= 1
    unsafe node.firsts[index] = pool.node(child).firstBlock
  }

  /// Merges a sparse child with its siblings if they fit into fewer nodes with some room to spare, and balances two of
  /// them if the child has become too small. Nodes stay at least 3/8 full, and above 5/8 where siblings allow it.
  ///
  /// - Returns: Whether anything moved.
  private mutating func rebalance(below parent: OrderNode, at index: Int) -> Bool {
    let child = unsafe pool.node(parent.children[index])
    let (count, capacity) = (child.count, child.capacity)
    guard count * 8 <= capacity * 5, parent.count > 1 else { return false }
    let before = index > 0 ? unsafe pool.node(parent.children[index - 1]).count : Int.max / 2
    let after = index + 1 < parent.count ? unsafe pool.node(parent.children[index + 1]).count : Int.max / 2
    if count + min(before, after) <= capacity * 7 / 8 {
      redistribute(below: parent, from: before < after ? index - 1 : index, count: 2, into: 1)
    } else if parent.count > 2, before < capacity, after < capacity, before + count + after <= capacity * 15 / 8 {
      redistribute(below: parent, from: index - 1, count: 3, into: 2)
    } else if count * 8 <= capacity * 3 {
      redistribute(below: parent, from: before < after ? index - 1 : index, count: 2, into: 2)
    } else {
      return false
    }
    return true
  }

  /// Replaces a block that is in the tree with another one of the same key.
  /// - Precondition: Nodes are reserved if a snapshot is alive.
  mutating func replace(_ old: UInt32, with new: UInt32, key: Blocks.SearchKey, in blocks: Blocks) {
    root = writable(root)
    var node = pool.node(root)
    while !node.isLeaf {
      let index = node.childIndex(key, in: blocks)
      let child = unsafe writable(node.children[index])
      unsafe node.children[index] = child
      if unsafe node.firsts[index] == old { unsafe node.firsts[index] = new }
      node = pool.node(child)
    }
    unsafe node.handles[node.index(of: old)] = new
  }

  /// Removes all blocks at once, with their nodes, which the caller frees in time. O(1).
  /// - Returns: The root; 0 if there was none.
  mutating func abandon() -> UInt32 {
    defer { (root, count) = (0, 0) }
    return root
  }

  /// Distributes the elements of one to three adjacent children evenly over one to three nodes.
  ///
  /// This one function balances (2 into 2), splits (1 into 2, 2 into 3) and merges (2 into 1, 3 into 2). It copies the
  /// elements to the stack first, so that it doesn't matter which node is copied, kept or freed.
  private mutating func redistribute(below parent: OrderNode, from index: Int, count: Int, into newCount: Int) {
    let first = unsafe pool.node(parent.children[index])
    let (level, capacity, columnCount) = (first.level, first.capacity, first.columnCount)
    unsafe withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 3 * OrderNode.leafCapacity) { elements in
      let stride = 3 * capacity
      var total = 0
      // The parent belongs to the live tree alone, so its row of children may be rewritten below.
      for child in index..<index + count {
        let node = unsafe pool.node(parent.children[child])
        for column in 0..<columnCount {
          unsafe (elements.baseAddress! + column * stride + total).update(from: node.column(column), count: node.count)
        }
        total += node.count
      }
      // Nodes that a snapshot sees are left to it; the others are reused.
      var reusable: (UInt32, UInt32, UInt32) = (0, 0, 0)
      for child in index..<index + count {
        let handle = unsafe parent.children[child]
        if pool.node(handle).epoch > sharedEpoch {
          reusable = (handle, reusable.0, reusable.1)
        } else {
          discard(handle)
        }
      }
      parent.shift(from: index + count, by: newCount - count)
      var taken = 0
      for child in 0..<newCount {
        let handle = reusable.0 != 0 ? reusable.0 : makeNode(level: level)
        reusable = (reusable.1, reusable.2, 0)
        let node = pool.node(handle)
        let share = (total - taken) / (newCount - child)
        for column in 0..<columnCount {
          let source = unsafe elements.baseAddress! + column * stride + taken
          unsafe node.column(column).update(from: source, count: share)
        }
        node.count = share
        parent.set(index + child, child: handle, node: node)
        taken += share
      }
      while reusable.0 != 0 {
        pool.free(reusable.0)
        reusable = (reusable.1, reusable.2, 0)
      }
    }
  }
}

// MARK: - Bulk loading

extension OrderTree {
  /// Builds the tree bottom-up from all its blocks, when it is empty.
  /// - Throws: `storeFull` or `outOfMemory`, with nothing changed.
  mutating func build(_ keys: SortedKeys) throws(StorageError) {
    precondition(root == 0, "the order isn't empty")
    let total = keys.items.count
    guard total > 0 else { return }
    let leafCount = Self.nodeCount(total, OrderNode.leafCapacity)
    var (nodeCount, level) = (leafCount, leafCount)
    while level > 1 {
      level = Self.nodeCount(level, OrderNode.innerCapacity)
      nodeCount += level
    }
    try pool.reserve(nodeCount)
    var nodes: [UInt32] = []
    var taken = 0
    for index in 0..<leafCount {
      let handle = makeNode(level: 0)
      let node = pool.node(handle)
      let share = (total - taken) / (leafCount - index)
      for slot in 0..<share { unsafe node.handles[slot] = keys.items[taken + slot].handle }
      node.count = share
      taken += share
      nodes.append(handle)
    }
    while nodes.count > 1 { nodes = makeParents(of: nodes) }
    root = nodes[0]
    count = total
  }

  /// Returns how much of a node to fill, so that the next insertions find room: 15/16.
  private static func fillCount(of capacity: Int) -> Int { capacity * 15 / 16 }

  private static func nodeCount(_ elements: Int, _ capacity: Int) -> Int {
    elements <= capacity ? 1 : (elements + fillCount(of: capacity) - 1) / fillCount(of: capacity)
  }

  private mutating func makeParents(of children: [UInt32]) -> [UInt32] {
    let parentCount = Self.nodeCount(children.count, OrderNode.innerCapacity)
    let level = pool.node(children[0]).level + 1
    var (parents, taken): ([UInt32], Int) = ([], 0)
    for index in 0..<parentCount {
      let handle = makeNode(level: level)
      let parent = pool.node(handle)
      let share = (children.count - taken) / (parentCount - index)
      parent.count = share
      for slot in 0..<share { parent.set(slot, child: children[taken + slot], node: pool.node(children[taken + slot])) }
      taken += share
      parents.append(handle)
    }
    return parents
  }
}
