import Platform

/// A node of an order tree, in place.
///
///     0   u64   epoch of its creation
///     8   u16   number of elements
///     10  u8    level: 0 for a leaf
///     12        leaf: 125 x u32 handles of blocks
///               inner node: 41 x u32 handles of children, 41 x u32 counts of the blocks below each,
///                           41 x u32 first blocks
///
/// A leaf has one column of words and an inner node three; code that moves elements treats both alike.
@safe
struct OrderNode {
  static let byteCount = 512
  static let leafCapacity = 125
  static let innerCapacity = 41

  private let base: UnsafeMutableRawPointer

  @inline(__always)
  init(at base: UnsafeMutableRawPointer) { unsafe self.base = base }

  @inline(__always)
  func initialize(level: Int, epoch: UInt64) {
    unsafe base.storeBytes(of: epoch, as: UInt64.self)
    unsafe base.storeBytes(of: UInt32(level) << 16, toByteOffset: 8, as: UInt32.self)
  }

  @inline(__always)
  var epoch: UInt64 {
    get { unsafe base.load(as: UInt64.self) }
    nonmutating set { unsafe base.storeBytes(of: newValue, as: UInt64.self) }
  }

  @inline(__always)
  var count: Int {
    get { unsafe Int(base.load(fromByteOffset: 8, as: UInt16.self)) }
    nonmutating set { unsafe base.storeBytes(of: UInt16(newValue), toByteOffset: 8, as: UInt16.self) }
  }

  @inline(__always)
  var level: Int { unsafe Int(base.load(fromByteOffset: 10, as: UInt8.self)) }

  @inline(__always)
  var isLeaf: Bool { level == 0 }

  @inline(__always)
  var capacity: Int { isLeaf ? Self.leafCapacity : Self.innerCapacity }

  @inline(__always)
  var columnCount: Int { isLeaf ? 1 : 3 }

  @inline(__always)
  var isFull: Bool { count == capacity }

  /// The next free node, while this one is free.
  var nextFree: UInt32 {
    get { unsafe base.load(as: UInt32.self) }
    nonmutating set { unsafe base.storeBytes(of: newValue, as: UInt32.self) }
  }

  /// The handles of a leaf's blocks.
  @inline(__always)
  var handles: UnsafeMutablePointer<UInt32> { unsafe (base + 12).assumingMemoryBound(to: UInt32.self) }

  /// The handles of an inner node's children.
  @inline(__always)
  var children: UnsafeMutablePointer<UInt32> { unsafe handles }

  /// The number of blocks below each child.
  @inline(__always)
  var counts: UnsafeMutablePointer<UInt32> { unsafe handles + Self.innerCapacity }

  /// The first block below each child.
  @inline(__always)
  var firsts: UnsafeMutablePointer<UInt32> { unsafe handles + Self.innerCapacity &* 2 }

  @inline(__always)
  func column(_ index: Int) -> UnsafeMutablePointer<UInt32> { unsafe handles + index &* capacity }

  /// The first block of the subtree. The node must not be empty.
  @inline(__always)
  var firstBlock: UInt32 { unsafe isLeaf ? handles[0] : firsts[0] }

  /// The number of blocks in the subtree.
  var blockCount: Int {
    if isLeaf { return count }
    return unsafe Self.sum(counts, count: count)
  }

  @inline(__always)
  static func sum(_ counts: UnsafeMutablePointer<UInt32>, count: Int) -> Int {
    var sum: UInt32 = 0
    for index in 0..<count { unsafe sum &+= counts[index] }
    return Int(sum)
  }

  func copy(from other: OrderNode) {
    unsafe base.copyMemory(from: other.base, byteCount: Self.byteCount)
  }

  /// Moves the elements from `index` on by `distance`, up or down, and updates the count. A gap has undefined contents.
  func shift(from index: Int, by distance: Int) {
    let moved = count - index
    for number in 0..<columnCount {
      let start = unsafe column(number) + index
      unsafe (start + distance).update(from: start, count: moved)
    }
    count += distance
  }

  /// Makes `child` the element at `index` of an inner node. The child must not be empty.
  func set(_ index: Int, child: UInt32, node: OrderNode) {
    unsafe children[index] = child
    unsafe counts[index] = UInt32(node.blockCount)
    unsafe firsts[index] = node.firstBlock
  }
}

// MARK: - Searching

extension OrderNode {
  /// Returns the child below which a key is or belongs: the last one whose first block doesn't come after it.
  @inline(__always)
  func childIndex<Blocks: OrderedBlocks>(_ key: Blocks.SearchKey, in blocks: Blocks) -> Int {
    max(0, childrenPreceding(key, .upper, in: blocks) &- 1)
  }

  /// Returns the number of children whose first blocks precede the bound.
  @inline(__always)
  func childrenPreceding<Blocks: OrderedBlocks>(_ key: Blocks.SearchKey, _ bound: Key.Bound, in blocks: Blocks) -> Int {
    unsafe Self.partition(firsts, count: count, key, bound, in: blocks)
  }

  /// Returns the number of a leaf's blocks that precede the bound.
  @inline(__always)
  func handlesPreceding<Blocks: OrderedBlocks>(_ key: Blocks.SearchKey, _ bound: Key.Bound, in blocks: Blocks) -> Int {
    unsafe Self.partition(handles, count: count, key, bound, in: blocks)
  }

  @inline(__always)
  private static func partition<Blocks: OrderedBlocks>(
    _ handles: UnsafeMutablePointer<UInt32>, count: Int, _ key: Blocks.SearchKey, _ bound: Key.Bound, in blocks: Blocks
  ) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low &+ high) >> 1
      if unsafe blocks.precedes(handles[middle], key, bound) {
        low = middle &+ 1
      } else {
        high = middle
      }
    }
    return low
  }

  /// Returns the index of a block that is in this leaf. Compares handles, without reading the blocks.
  @inline(__always)
  func index(of block: UInt32) -> Int {
    let (handles, count) = unsafe (self.handles, self.count)
    for index in 0..<count where unsafe handles[index] == block { return index }
    preconditionFailure("a block is missing from its order")
  }

  /// Calls `body` with these blocks of a leaf, in order or in reverse, and counts them in `visited`.
  /// - Returns: False once `body` has.
  func visitHandles(
    _ range: Range<Int>, reverse: Bool, in blocks: some OrderedBlocks, visited: inout Int, _ body: (UInt32) -> Bool
  ) -> Bool {
    // Neighbors in the order lie anywhere in memory. Reading a few headers ahead, with loads that are independent of
    // one another, makes the processor fetch them in parallel.
    let batch = 16
    var done = 0
    while done < range.count {
      let next = min(batch, range.count - done)
      var areAllocated = true
      for step in done..<done + next {
        let index = reverse ? range.upperBound - 1 - step : range.lowerBound + step
        areAllocated = unsafe blocks.isAllocated(handles[index]) && areAllocated
      }
      precondition(areAllocated, "the order index refers to a freed block")
      for step in done..<done + next {
        let index = reverse ? range.upperBound - 1 - step : range.lowerBound + step
        visited += 1
        guard unsafe body(handles[index]) else { return false }
      }
      done += next
    }
    return true
  }
}

/// The memory of an order tree: blocks of 512 bytes for its nodes, identified by 32-bit handles. Handle 0 is no node.
///
/// The lower 11 bits of a handle are the node's place in a chunk of 1 MiB, whose pages cost nothing until they are
/// touched. Free nodes are linked through their first word. Owned by one `OrderTree` and used under its store's lock.
@safe
struct NodePool: ~Copyable {
  private static let nodesInChunk = Pages.chunkByteCount / OrderNode.byteCount

  private var chunks: UnsafeMutablePointer<UnsafeMutableRawPointer>
  private var chunkCapacity = 4
  private var chunkCount = 0
  /// The first handle that was never used.
  private var untouched: UInt32 = 1
  private var firstFree: UInt32 = 0
  private(set) var nodesInUse = 0

  init() {
    unsafe chunks = .allocate(capacity: chunkCapacity)
  }

  deinit {
    for index in 0..<chunkCount { unsafe Pages.unmap(chunks[index], byteCount: Pages.chunkByteCount) }
    unsafe chunks.deallocate()
  }

  /// The resident memory: every node that was ever in use, and the table of chunks.
  var memoryBytes: Int {
    unsafe Int(untouched - 1) * OrderNode.byteCount + chunkCapacity * MemoryLayout<UnsafeMutableRawPointer>.stride
  }

  @inline(__always)
  func node(_ handle: UInt32) -> OrderNode {
    unsafe OrderNode(at: chunks[Int(handle >> 11)] + Int(handle & 2_047) &* OrderNode.byteCount)
  }

  /// Reserves this many nodes, so that making them needs nothing from the system.
  @inline(__always)
  mutating func reserve(_ count: Int) throws(StorageError) {
    while chunkCount * Self.nodesInChunk - nodesInUse - 1 < count { try addChunk() }
  }

  private mutating func addChunk() throws(StorageError) {
    guard (chunkCount + 1) * Self.nodesInChunk <= Int(UInt32.max) else { throw .storeFull }
    guard let base = unsafe Pages.map(byteCount: Pages.chunkByteCount) else { throw .outOfMemory }
    if chunkCount == chunkCapacity {
      let larger = UnsafeMutablePointer<UnsafeMutableRawPointer>.allocate(capacity: chunkCapacity * 2)
      unsafe larger.moveInitialize(from: chunks, count: chunkCount)
      unsafe chunks.deallocate()
      unsafe chunks = larger
      chunkCapacity *= 2
    }
    unsafe (chunks + chunkCount).initialize(to: base)
    chunkCount += 1
  }

  /// Returns a node with undefined contents.
  /// - Precondition: A node is reserved.
  mutating func make() -> UInt32 {
    nodesInUse += 1
    if firstFree != 0 {
      let handle = firstFree
      firstFree = node(handle).nextFree
      return handle
    }
    precondition(Int(untouched) < chunkCount * Self.nodesInChunk, "a node was not reserved")
    untouched += 1
    return untouched - 1
  }

  mutating func free(_ handle: UInt32) {
    nodesInUse -= 1
    node(handle).nextFree = firstFree
    firstFree = handle
  }
}
