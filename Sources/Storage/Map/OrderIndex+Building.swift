/// Building a tree from its leaves up, when all records are there already.
extension OrderIndex {
  /// How much of a node is filled, so that the next insertions find room: 15 of 16.
  private static func share(of capacity: Int) -> Int { capacity * 15 / 16 }

  /// Fills an empty tree with those records, which are in order. Throws `storeFull` or `outOfMemory`, with nothing changed.
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
      for slot in 0..<share { unsafe node.records[slot] = keys.items[taken + slot].handle }
      node.count = share
      taken += share
      nodes.append(handle)
    }
    while nodes.count > 1 { nodes = parents(of: nodes) }
    root = nodes[0]
    count = total
  }

  private static func nodeCount(_ elements: Int, _ capacity: Int) -> Int {
    elements <= capacity ? 1 : (elements + share(of: capacity) - 1) / share(of: capacity)
  }

  private mutating func parents(of children: [UInt32]) -> [UInt32] {
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
