@testable import Storage

/// Checks the invariants of whole structures, and traps if one is broken.
extension EntryMap {
  func validate() {
    arena.validate()
    order.validate(in: arena)
    var records = 0
    _ = order.visit(0..<order.count, reverse: false, root: order.root, in: arena.records) { handle in
      let key = record(handle).key
      precondition(find(key, hash: hashIndex.hash(key)) == handle, "the indexes disagree about a record")
      records += 1
      return true
    }
    precondition(records == hashIndex.count, "the hash index has records that the order doesn't have")
    if snapshots.isEmpty, !snapshots.hasEnded {
      precondition(order.reachableNodeCount == order.nodesInUse, "nodes were leaked")
    }
  }
}

extension OrderTree {
  /// Calls `body` with every node of a tree, after all nodes below it.
  func visitNodes(root: UInt32, _ body: (UInt32, OrderNode) -> Void) {
    guard root != 0 else { return }
    let node = node(root)
    if !node.isLeaf {
      for index in 0..<node.count { unsafe visitNodes(root: node.children[index], body) }
    }
    body(root, node)
  }
}

extension OrderTree where Blocks == Records {
  var reachableNodeCount: Int {
    var count = 0
    visitNodes(root: root) { _, _ in count += 1 }
    return count
  }

  func validate(in arena: borrowing Arena) {
    guard root != 0 else { return precondition(count == 0) }
    var nodes: [UInt32: OrderNode] = [:]
    visitNodes(root: root) { handle, node in nodes[handle] = node }
    var previous: [UInt8]?
    let found = validate(root, in: nodes, isRoot: true, previous: &previous, arena)
    precondition(found == count, "the order's count is wrong")
  }

  /// Returns the number of records below the node.
  private func validate(
    _ handle: UInt32, in nodes: [UInt32: OrderNode], isRoot: Bool, previous: inout [UInt8]?, _ arena: borrowing Arena
  ) -> Int {
    let node = nodes[handle]!
    precondition(node.count <= node.capacity && (isRoot || node.count > 0), "a node is empty or overfull")
    precondition(node.epoch <= epoch, "a node is from a future epoch")
    if node.isLeaf {
      for index in 0..<node.count {
        let key = unsafe Record(at: arena.address(node.handles[index])).key
        let bytes = unsafe Array(UnsafeRawBufferPointer(start: key.start, count: key.count))
        if let previous { precondition(previous.lexicographicallyPrecedes(bytes), "keys are out of order") }
        previous = bytes
      }
      return node.count
    }
    precondition(!isRoot || node.count > 1, "a root has only one child")
    var total = 0
    for index in 0..<node.count {
      let child = unsafe node.children[index]
      precondition(nodes[child]!.level == node.level - 1, "leaves are at different depths")
      unsafe precondition(node.firsts[index] == nodes[child]!.firstBlock, "a first record is out of date")
      let count = validate(child, in: nodes, isRoot: false, previous: &previous, arena)
      unsafe precondition(Int(node.counts[index]) == count, "a subtree's count is wrong")
      total += count
    }
    return total
  }
}

extension Arena {
  /// Walks over every chunk block by block, and compares the free blocks with the bins.
  func validate() {
    var (freeBlocks, used) = (0, 0)
    for index in 0..<chunkCount where unsafe chunks[index].base != nil {
      var (unit, previousWasFree) = (UInt32(1), false)
      while unit < Self.unitsInChunk {
        let handle = UInt32(index) << 17 + unit
        let word = unsafe address(handle).load(as: UInt32.self)
        precondition((word & Self.previousIsFree != 0) == previousWasFree, "a mark disagrees with the preceding block")
        let isFree = word & Self.inUse == 0
        precondition(!(isFree && previousWasFree), "two free blocks are adjacent")
        let units = isFree ? word : unsafe Record(at: address(handle)).units
        if isFree { freeBlocks += units > 1 ? 1 : 0 } else { used += Int(units) }
        (unit, previousWasFree) = (unit + units, isFree)
      }
      precondition(unit == Self.unitsInChunk, "a block reaches beyond its chunk")
    }
    precondition(used == unitsInUse, "units in use are miscounted")
    var binned = 0
    for bin in 0..<ArenaBins.count {
      var handle = bins.first(in: bin)
      while handle != 0 {
        precondition(ArenaBins.index(of: self.units(ofFree: handle)) == bin, "a block is in the wrong bin")
        binned += 1
        handle = unsafe address(handle).load(fromByteOffset: 4, as: UInt32.self)
      }
    }
    precondition(binned == freeBlocks, "the bins and the chunks disagree")
  }
}
