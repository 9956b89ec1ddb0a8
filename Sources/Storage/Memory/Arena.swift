import Platform

/// Blocks of memory named by 32-bit handles: where a store keeps its records.
///
/// A handle counts units of 8 bytes; its upper 15 bits select a chunk of 1 MiB, its lower 17 the unit in it. Handle 0
/// names nothing. Blocks lie side by side, and the first word of each says whether it is in use and whether the block
/// before it is free (`inUse`, `previousIsFree`); the other bits of a block in use belong to its owner, who must be
/// able to tell its size from them. A free block holds its size in that word and again in its last word, except where
/// the chunk ends, and its links to others of its bin between the two. No two free blocks are ever neighbours.
///
/// Owned by one `EntryMap` and used under its store's lock, which is why the table of chunks may move when it grows.
@safe
struct Arena: ~Copyable {
  static let inUse: UInt32 = 1 << 31
  static let previousIsFree: UInt32 = 1 << 30
  /// The bits of a block's first word that the arena keeps for itself.
  static let ownBits = inUse | previousIsFree

  static let unitsInChunk: UInt32 = 1 << 17
  /// The first unit of each chunk stays unused, so that no block has handle 0.
  static let unitsInWholeChunk = unitsInChunk - 1
  static let unitMask = unitsInChunk - 1
  static let maximumChunkCount = 1 << 15

  @safe
  struct Chunk {
    var base: UnsafeMutableRawPointer?
    /// How far blocks have ever reached into the chunk; pages beyond cost nothing yet.
    var touchedUnits: UInt32
  }

  var chunks: UnsafeMutablePointer<Chunk>
  private var chunkCapacity = 4
  private(set) var chunkCount = 0
  private var vacantChunks: [Int] = []
  /// Chunks that are one free block. One is kept for the next write; more only when they were reserved.
  private var wholeChunkCount = 0
  private var touchedUnits = 0
  private(set) var unitsInUse = 0
  /// Where `nextBlock` goes on: a handle at which a block begins, or beyond the last block of a chunk.
  var hand = 0
  var bins = ArenaBins()

  init() {
    unsafe chunks = .allocate(capacity: chunkCapacity)
  }

  deinit {
    for index in 0..<chunkCount {
      if let base = unsafe chunks[index].base { unsafe Pages.unmap(base, byteCount: Pages.chunkByteCount) }
    }
    unsafe chunks.deallocate()
  }

  /// Where the block begins. The pointer holds until the block is freed: chunks never move, only their table does.
  @inline(__always)
  func address(_ handle: UInt32) -> UnsafeMutableRawPointer {
    unsafe chunks[Int(handle >> 17)].base.unsafelyUnwrapped + Int(handle & Self.unitMask) &* 8
  }

  /// An estimate of resident memory: everything up to the furthest block of each chunk.
  var memoryBytes: Int {
    touchedUnits * 8 + chunkCapacity * MemoryLayout<Chunk>.stride + ArenaBins.memoryBytes
  }

  /// A block of exactly that many units (at least 2). All bits of its first word but `inUse` are zero.
  mutating func allocate(units: UInt32) throws(StorageError) -> UInt32 {
    var handle = takeFromBins(units: units)
    if handle == 0 {
      try addChunk()
      handle = takeFromBins(units: units)
    }
    unitsInUse += Int(units)
    let (index, end) = (Int(handle >> 17), (handle & Self.unitMask) + units)
    let touched = unsafe chunks[index].touchedUnits
    if end > touched {
      touchedUnits += Int(end - touched)
      unsafe chunks[index].touchedUnits = end
    }
    return handle
  }

  /// Calls `body` with every block in use, from the lowest address of each chunk to the highest. Every one must be a record.
  @inline(__always)
  func visitBlocks(_ body: (UInt32) -> Void) {
    for index in 0..<chunkCount {
      guard let base = unsafe chunks[index].base else { continue }
      var unit: UInt32 = 1
      while unit < Self.unitsInChunk {
        let block = unsafe base + Int(unit) &* 8
        let word = unsafe block.load(as: UInt32.self)
        if word & Self.inUse == 0 {
          unit &+= word
        } else {
          body(UInt32(truncatingIfNeeded: index) << 17 &+ unit)
          unit &+= unsafe Record(at: block).units
        }
      }
    }
  }

  /// The next block in use, in the order of their handles, each of which must be a record; nil at the end, and then the first again.
  mutating func nextBlock() -> UInt32? {
    while hand >> 17 < chunkCount {
      let (index, unit) = (hand >> 17, max(1, hand & Int(Self.unitMask)))
      guard let base = unsafe chunks[index].base else {
        hand = (index + 1) << 17
        continue
      }
      let block = unsafe base + unit * 8
      let word = unsafe block.load(as: UInt32.self)
      let handle = index << 17 + unit
      let isInUse = word & Self.inUse != 0
      hand = handle + Int(isInUse ? unsafe Record(at: block).units : word)
      if isInUse { return UInt32(handle) }
    }
    hand = 0
    return nil
  }

  /// Makes sure that blocks of so many units in all, none above `largest`, can be had without asking the system.
  ///
  /// One free block of the whole sum would do, however it is cut up; failing that, whole chunks, each of which may
  /// waste less than one largest block at its end.
  mutating func reserve(units: Int, largest: UInt32) throws(StorageError) {
    if units <= Int(Self.unitsInWholeChunk), bins.firstOccupied(from: ArenaBins.index(atLeast: UInt32(units))) != nil {
      return
    }
    let usable = Int(Self.unitsInWholeChunk - largest) + 1
    let needed = (units + usable - 1) / usable
    while wholeChunkCount < needed { try addChunk() }
  }

  private mutating func addChunk() throws(StorageError) {
    let index: Int
    if let vacant = vacantChunks.last {
      index = vacant
    } else {
      guard chunkCount < Self.maximumChunkCount else { throw .storeFull }
      index = chunkCount
    }
    guard let base = unsafe Pages.map(byteCount: Pages.chunkByteCount) else { throw .outOfMemory }
    if index == chunkCount {
      if chunkCount == chunkCapacity { growTable() }
      chunkCount += 1
    } else {
      vacantChunks.removeLast()
    }
    unsafe (chunks + index).initialize(to: Chunk(base: base, touchedUnits: 0))
    wholeChunkCount += 1
    makeFree(UInt32(index) << 17 + 1, units: Self.unitsInWholeChunk)
  }

  private mutating func growTable() {
    let larger = UnsafeMutablePointer<Chunk>.allocate(capacity: chunkCapacity * 2)
    unsafe larger.moveInitialize(from: chunks, count: chunkCount)
    unsafe chunks.deallocate()
    unsafe chunks = larger
    chunkCapacity *= 2
  }

  /// Notes that a chunk is no longer one free block.
  mutating func chunkCameIntoUse() { wholeChunkCount -= 1 }

  mutating func noteFreed(units: UInt32) { unitsInUse -= Int(units) }

  /// Gives a chunk that became one free block back to the system, unless it is the only such one.
  ///
  /// - Returns: Whether the chunk is gone, and its block with it.
  mutating func releaseWholeChunk(_ handle: UInt32) -> Bool {
    guard wholeChunkCount > 0 else {
      wholeChunkCount = 1
      return false
    }
    let index = Int(handle >> 17)
    unsafe Pages.unmap(chunks[index].base.unsafelyUnwrapped, byteCount: Pages.chunkByteCount)
    touchedUnits -= Int(unsafe chunks[index].touchedUnits)
    unsafe chunks[index].base = nil
    vacantChunks.append(index)
    return true
  }
}
