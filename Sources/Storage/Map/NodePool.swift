import Platform

/// Blocks of 512 bytes for the nodes of the order index, named by 32-bit handles; handle 0 names nothing.
///
/// A handle's lower 11 bits are the node's place in a chunk of 1 MiB, whose pages cost nothing until they are touched.
/// Free nodes are linked through their first word. Owned by one `OrderIndex` and used under its store's lock.
@safe
struct NodePool: ~Copyable {
  private static let nodesInChunk = Pages.chunkByteCount / OrderNode.byteCount

  private var chunks: UnsafeMutablePointer<UnsafeMutableRawPointer>
  private var chunkCapacity = 4
  private var chunkCount = 0
  /// The first handle that was never given out.
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

  /// Resident memory: every node that was ever in use, and the table of chunks.
  var memoryBytes: Int {
    unsafe Int(untouched - 1) * OrderNode.byteCount + chunkCapacity * MemoryLayout<UnsafeMutableRawPointer>.stride
  }

  @inline(__always)
  func node(_ handle: UInt32) -> OrderNode {
    unsafe OrderNode(at: chunks[Int(handle >> 11)] + Int(handle & 2_047) &* OrderNode.byteCount)
  }

  /// Makes sure that this many nodes can be had without asking the system.
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

  /// A node with undefined contents. Traps unless one was reserved.
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
