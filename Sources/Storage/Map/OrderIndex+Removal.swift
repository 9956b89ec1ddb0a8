/// Removal walks down once: a sparse child is joined or evened out with its siblings before the walk enters it.
extension OrderIndex {
  /// Takes out a record that is there. Nodes must have been reserved when a snapshot lives.
  mutating func remove(_ record: UInt32, key: Key, in arena: borrowing Arena) {
    root = writable(root)
    remove(record, key: key, from: pool.node(root), in: arena)
    count -= 1
    while !pool.node(root).isLeaf, pool.node(root).count == 1 {
      let old = root
      root = unsafe pool.node(old).children[0]
      discard(old)
    }
  }

  private mutating func remove(_ record: UInt32, key: Key, from node: OrderNode, in arena: borrowing Arena) {
    if node.isLeaf {
      node.shift(from: index(of: record, in: node) + 1, by: -1)
      return
    }
    var index = childIndex(node, key, in: arena)
    if relieve(below: node, at: index) { index = childIndex(node, key, in: arena) }
    let child = unsafe writable(node.children[index])
    unsafe node.children[index] = child
    remove(record, key: key, from: pool.node(child), in: arena)
    unsafe node.counts[index] -= 1
    unsafe node.firsts[index] = pool.node(child).firstRecord
  }

  /// Joins a sparse child with its siblings where they fit into fewer nodes with some room left, and evens two of them
  /// out where the child has become too small. Nodes stay at least 3/8 full, and above 5/8 where siblings allow it.
  ///
  /// - Returns: Whether anything moved.
  private mutating func relieve(below parent: OrderNode, at index: Int) -> Bool {
    let child = unsafe pool.node(parent.children[index])
    let (count, capacity) = (child.count, child.capacity)
    guard count * 8 <= capacity * 5, parent.count > 1 else { return false }
    let before = index > 0 ? unsafe pool.node(parent.children[index - 1]).count : Int.max / 2
    let after = index + 1 < parent.count ? unsafe pool.node(parent.children[index + 1]).count : Int.max / 2
    if count + min(before, after) <= capacity * 7 / 8 {
      spread(below: parent, from: before < after ? index - 1 : index, count: 2, into: 1)
    } else if parent.count > 2, before < capacity, after < capacity, before + count + after <= capacity * 15 / 8 {
      spread(below: parent, from: index - 1, count: 3, into: 2)
    } else if count * 8 <= capacity * 3 {
      spread(below: parent, from: before < after ? index - 1 : index, count: 2, into: 2)
    } else {
      return false
    }
    return true
  }

  /// Puts another record of the same key in the place of one that is there. Nodes must have been reserved when a
  /// snapshot lives.
  mutating func replace(_ old: UInt32, with new: UInt32, key: Key, in arena: borrowing Arena) {
    root = writable(root)
    var node = pool.node(root)
    while !node.isLeaf {
      let index = childIndex(node, key, in: arena)
      let child = unsafe writable(node.children[index])
      unsafe node.children[index] = child
      if unsafe node.firsts[index] == old { unsafe node.firsts[index] = new }
      node = pool.node(child)
    }
    unsafe node.records[index(of: old, in: node)] = new
  }
}
