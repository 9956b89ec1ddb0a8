/// Insertion walks down once: a full child is given room before the walk enters it, so nothing has to be undone or
/// carried back up.
extension OrderIndex {
  /// Which end of the order a new key lies beyond, if any. Loads in ascending or descending order are common, and
  /// splitting at the end instead of in the middle leaves their nodes full.
  private enum Edge { case first, last, none }

  /// Adds a record whose key has none yet. Nodes must have been reserved.
  mutating func insert(_ record: UInt32, key: Key, in arena: borrowing Arena) {
    let edge = self.edge(for: key, in: arena)
    if root == 0 { root = makeNode(level: 0) }
    root = writable(root)
    if pool.node(root).isFull { addRoot() }
    var node = pool.node(root)
    while !node.isLeaf {
      var index = self.index(below: node, key, edge, in: arena)
      if unsafe pool.node(node.children[index]).isFull {
        makeRoom(below: node, at: index, edge)
        index = self.index(below: node, key, edge, in: arena)
      }
      let child = unsafe writable(node.children[index])
      unsafe node.children[index] = child
      unsafe node.counts[index] &+= 1
      if edge == .first || pool.node(child).count == 0 { unsafe node.firsts[index] = record }
      node = pool.node(child)
    }
    let index =
      switch edge {
      case .first: 0
      case .last: node.count
      case .none: recordsPreceding(key, .lower, node, in: arena)
      }
    node.shift(from: index, by: 1)
    unsafe node.records[index] = record
    count += 1
  }

  private func edge(for key: Key, in arena: borrowing Arena) -> Edge {
    guard count > 0 else { return .last }
    var node = pool.node(root)
    if unsafe !Record(at: arena.address(node.firstRecord)).key.precedes(key, .lower) { return .first }
    while !node.isLeaf { node = unsafe pool.node(node.children[node.count - 1]) }
    return unsafe Record(at: arena.address(node.records[node.count - 1])).key.precedes(key, .lower) ? .last : .none
  }

  @inline(__always)
  private func index(below node: OrderNode, _ key: Key, _ edge: Edge, in arena: borrowing Arena) -> Int {
    switch edge {
    case .first: 0
    case .last: node.count - 1
    case .none: childIndex(node, key, in: arena)
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

  /// Sees to it that the child can take one more, and that the parent still has a child where the search goes.
  private mutating func makeRoom(below parent: OrderNode, at index: Int, _ edge: Edge) {
    guard edge == .none else { return splitEdge(below: parent, at: index, atEnd: edge == .last) }
    let capacity = unsafe pool.node(parent.children[index]).capacity
    let before = index > 0 ? unsafe pool.node(parent.children[index - 1]).count : capacity
    let after = index + 1 < parent.count ? unsafe pool.node(parent.children[index + 1]).count : capacity
    // A sibling with room for one only would be full again at once.
    if min(before, after) <= capacity - 2 {
      spread(below: parent, from: before < after ? index - 1 : index, count: 2, into: 2)
    } else if index > 0 {
      spread(below: parent, from: index - 1, count: 2, into: 3)
    } else if parent.count > 1 {
      spread(below: parent, from: index, count: 2, into: 3)
    } else {
      spread(below: parent, from: index, count: 1, into: 2)
    }
  }

  /// Puts a new node beside the outermost child: empty for a leaf, which is about to get its record, else with one
  /// child of the full one, because a node above the leaves must lead somewhere.
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
}
