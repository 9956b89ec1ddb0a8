@testable import Storage

/// Walks over whole structures that trap at whatever breaks an invariant.
extension EntryMap {
  func validate() {
    arena.validate()
    order.validate(in: arena)
    var records = 0
    _ = order.visit(0..<order.count, reverse: false, root: order.root, in: arena) { handle in
      let key = record(handle).key
      precondition(find(key, hash: hashIndex.hash(key)) == handle, "the indexes disagree about a record")
      records += 1
      return true
    }
    precondition(records == hashIndex.entryCount, "the hash index has records that the order hasn't")
    if snapshots.isEmpty {
      precondition(order.reachableNodeCount == order.pool.nodesInUse, "nodes were leaked")
    }
  }
}

extension HashIndex {
  var entryCount: Int { (0..<Self.segmentCount).reduce(0) { unsafe $0 + Int(segments[$1].entryCount) } }
}

extension OrderIndex {
  var reachableNodeCount: Int {
    var count = 0
    visitNodes(root: root) { _, _ in count += 1 }
    return count
  }

  func validate(in arena: borrowing Arena) {
    guard root != 0 else { return precondition(count == 0) }
    var previous: [UInt8]?
    precondition(validate(root, isRoot: true, previous: &previous, in: arena) == count, "the order's count is wrong")
  }

  /// The number of records below the node.
  private func validate(_ handle: UInt32, isRoot: Bool, previous: inout [UInt8]?, in arena: borrowing Arena) -> Int {
    let node = pool.node(handle)
    precondition(node.count <= node.capacity && (isRoot || node.count > 0), "a node is empty or overfull")
    precondition(node.epoch <= epoch, "a node is of the future")
    if node.isLeaf {
      for index in 0..<node.count {
        let key = unsafe Record(at: arena.address(node.records[index])).key
        let bytes = unsafe Array(UnsafeRawBufferPointer(start: key.start, count: key.count))
        if let previous { precondition(previous.lexicographicallyPrecedes(bytes), "keys are out of order") }
        previous = bytes
      }
      return node.count
    }
    precondition(!isRoot || node.count > 1, "a root has one child")
    var total = 0
    for index in 0..<node.count {
      let child = unsafe node.children[index]
      precondition(pool.node(child).level == node.level - 1, "leaves are at different depths")
      unsafe precondition(node.firsts[index] == pool.node(child).firstRecord, "a first record is out of date")
      let count = validate(child, isRoot: false, previous: &previous, in: arena)
      unsafe precondition(Int(node.counts[index]) == count, "a subtree's count is wrong")
      total += count
    }
    return total
  }
}

extension Arena {
  /// Walks every chunk block by block, and compares the free ones with the bins.
  func validate() {
    var (freeBlocks, used) = (0, 0)
    for index in 0..<chunkCount where unsafe chunks[index].base != nil {
      var (unit, previousWasFree) = (UInt32(1), false)
      while unit < Self.unitsInChunk {
        let handle = UInt32(index) << 17 + unit
        let word = unsafe address(handle).load(as: UInt32.self)
        precondition((word & Self.previousIsFree != 0) == previousWasFree, "a mark disagrees with the block before")
        let isFree = word & Self.inUse == 0
        precondition(!(isFree && previousWasFree), "two free blocks are neighbours")
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
