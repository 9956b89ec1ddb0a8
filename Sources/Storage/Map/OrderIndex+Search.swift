extension OrderIndex {
  /// The child below which a key is, or belongs: the last whose first record doesn't come after it.
  @inline(__always)
  func childIndex(_ node: OrderNode, _ key: Key, in arena: borrowing Arena) -> Int {
    max(0, childrenPreceding(key, .upper, node, in: arena) &- 1)
  }

  /// How many children's first records precede the bound.
  @inline(__always)
  private func childrenPreceding(_ key: Key, _ bound: Key.Bound, _ node: OrderNode, in arena: borrowing Arena) -> Int {
    unsafe Self.partition(node.firsts, count: node.count, key, bound, in: arena)
  }

  /// How many of a leaf's records precede the bound.
  @inline(__always)
  func recordsPreceding(_ key: Key, _ bound: Key.Bound, _ leaf: OrderNode, in arena: borrowing Arena) -> Int {
    unsafe Self.partition(leaf.records, count: leaf.count, key, bound, in: arena)
  }

  @inline(__always)
  private static func partition(
    _ records: UnsafeMutablePointer<UInt32>, count: Int, _ key: Key, _ bound: Key.Bound, in arena: borrowing Arena
  ) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low &+ high) >> 1
      if unsafe Record(at: arena.address(records[middle])).key.precedes(key, bound) {
        low = middle &+ 1
      } else {
        high = middle
      }
    }
    return low
  }

  /// Where a leaf has that record. Comparing handles costs no look at the records.
  @inline(__always)
  func index(of record: UInt32, in leaf: OrderNode) -> Int {
    let (records, count) = unsafe (leaf.records, leaf.count)
    for index in 0..<count where unsafe records[index] == record { return index }
    preconditionFailure("a record is missing from the order index")
  }

  /// How many records precede the bound, below that root.
  func rank(_ key: Key, _ bound: Key.Bound, root: UInt32, in arena: borrowing Arena) -> Int {
    guard root != 0 else { return 0 }
    var (rank, node) = (0, pool.node(root))
    while !node.isLeaf {
      let preceding = childrenPreceding(key, bound, node, in: arena)
      if preceding == 0 { return rank }
      unsafe rank += OrderNode.sum(node.counts, count: preceding - 1)
      node = unsafe pool.node(node.children[preceding - 1])
    }
    return rank + recordsPreceding(key, bound, node, in: arena)
  }

  /// Calls `body` with the records of those ranks below that root, in order or against it, until it returns false.
  ///
  /// - Returns: How many records `body` was called with.
  func visit(
    _ ranks: Range<Int>, reverse: Bool, root: UInt32, in arena: borrowing Arena, _ body: (UInt32) -> Bool
  ) -> Int {
    guard root != 0, !ranks.isEmpty else { return 0 }
    var visited = 0
    _ = visit(ranks, reverse: reverse, node: pool.node(root), in: arena, visited: &visited, body)
    return visited
  }

  /// False when `body` wants no more.
  private func visit(
    _ ranks: Range<Int>, reverse: Bool, node: OrderNode, in arena: borrowing Arena, visited: inout Int,
    _ body: (UInt32) -> Bool
  ) -> Bool {
    if node.isLeaf { return visitLeaf(ranks, reverse: reverse, leaf: node, in: arena, visited: &visited, body) }
    // What comes before (or, backwards, after) the ranks wanted is skipped child by child, by count.
    var start = reverse ? node.recordCount : 0
    for step in 0..<node.count {
      let index = reverse ? node.count - 1 - step : step
      let count = unsafe Int(node.counts[index])
      if reverse { start -= count }
      let wanted = ranks.clamped(to: start..<start + count)
      if !wanted.isEmpty {
        let child = unsafe pool.node(node.children[index])
        let local = wanted.lowerBound - start..<wanted.upperBound - start
        guard visit(local, reverse: reverse, node: child, in: arena, visited: &visited, body) else { return false }
      } else if reverse ? start + count <= ranks.lowerBound : start >= ranks.upperBound {
        break
      }
      if !reverse { start += count }
    }
    return true
  }

  private func visitLeaf(
    _ ranks: Range<Int>, reverse: Bool, leaf: OrderNode, in arena: borrowing Arena, visited: inout Int,
    _ body: (UInt32) -> Bool
  ) -> Bool {
    // Neighbours in the order lie anywhere in memory. A look at a few headers ahead, which don't wait for one another,
    // has the cache fetch them together.
    let batch = 16
    var done = 0
    while done < ranks.count {
      let next = min(batch, ranks.count - done)
      var allInUse = true
      for step in done..<done + next {
        let index = reverse ? ranks.upperBound - 1 - step : ranks.lowerBound + step
        allInUse = unsafe Record(at: arena.address(leaf.records[index])).isInUse && allInUse
      }
      precondition(allInUse, "the order index refers to a freed record")
      for step in done..<done + next {
        let index = reverse ? ranks.upperBound - 1 - step : ranks.lowerBound + step
        visited += 1
        guard unsafe body(leaf.records[index]) else { return false }
      }
      done += next
    }
    return true
  }

  /// Calls `body` with every node of the tree, a node before what is below it.
  func visitNodes(root: UInt32, _ body: (UInt32, OrderNode) -> Void) {
    guard root != 0 else { return }
    let node = pool.node(root)
    if !node.isLeaf {
      for index in 0..<node.count { unsafe visitNodes(root: node.children[index], body) }
    }
    body(root, node)
  }
}
