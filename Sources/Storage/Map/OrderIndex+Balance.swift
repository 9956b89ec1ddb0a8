extension OrderIndex {
  /// Spreads the elements of one to three neighbouring children evenly over one to three nodes.
  ///
  /// This one function is sharing (2 into 2), splitting (1 into 2, 2 into 3) and joining (2 into 1, 3 into 2). The
  /// elements are gathered on the stack first, so that which node is copied, kept or let go doesn't matter.
  mutating func spread(below parent: OrderNode, from index: Int, count: Int, into newCount: Int) {
    let first = unsafe pool.node(parent.children[index])
    let (level, capacity, columnCount) = (first.level, first.capacity, first.columnCount)
    unsafe withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 3 * OrderNode.leafCapacity) { gathered in
      let stride = 3 * capacity
      var total = 0
      // The parent belongs to the live tree alone, so its row of children is free to be rewritten below.
      for child in index..<index + count {
        let node = unsafe pool.node(parent.children[child])
        for column in 0..<columnCount {
          unsafe (gathered.baseAddress! + column * stride + total).update(from: node.column(column), count: node.count)
        }
        total += node.count
      }
      // Nodes that a snapshot sees are left to it; the others serve again.
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
          let source = unsafe gathered.baseAddress! + column * stride + taken
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
