import Platform

/// Blocks of memory with 32-bit handles: where a store keeps its records.
///
/// A handle counts units of 8 bytes; its upper 15 bits select a chunk of 1 MiB, its lower 17 bits the unit in it.
/// Handle 0 means none. Blocks are adjacent, and the first word of each says whether it is in use and whether the block
/// before it is free (`inUse`, `previousIsFree`). The other bits of a used block belong to its owner, who must be able
/// to derive its size from them. A free block stores its size in that word and again in its last word, except at the
/// end of a chunk, with its links to other blocks of its bin in between. No two free blocks are ever adjacent.
///
/// One `EntryMap` owns the arena and uses it under its store's lock, so the table of chunks may move when it grows.
@safe
struct Arena: ~Copyable {
  static let inUse: UInt32 = 1 << 31
  static let previousIsFree: UInt32 = 1 << 30
  /// The bits of a block's first word that the arena keeps for itself.
  static let ownBits = inUse | previousIsFree

  static let unitsInChunk: UInt32 = 1 << 17
  /// The size of a free chunk. The first unit of each chunk stays unused, so that no block has handle 0.
  static let unitsInWholeChunk = unitsInChunk - 1
  static let unitMask = unitsInChunk - 1
  private static let maxChunkCount = 1 << 15

  @safe
  struct Chunk {
    var base: UnsafeMutableRawPointer?
    /// The end of the furthest block ever allocated in the chunk. The pages beyond it cost nothing yet.
    var touchedUnits: UInt32
  }

  private(set) var chunks: UnsafeMutablePointer<Chunk>
  private var chunkCapacity = 4
  private(set) var chunkCount = 0
  private var vacantChunks: [Int] = []
  /// The number of chunks that consist of one free block. One is kept for the next write; more only if they were
  /// reserved.
  private var wholeChunkCount = 0
  private var touchedUnits = 0
  private(set) var unitsInUse = 0
  /// The position of `nextBlock`: a handle where a block begins, or the end of the last block of a chunk.
  private var hand = 0
  private(set) var bins = ArenaBins()
  /// What the process may take from the system; nil for an arena that is not limited.
  private let budget: MemoryBudget?

  init(_ budget: MemoryBudget? = nil) {
    self.budget = budget
    unsafe chunks = .allocate(capacity: chunkCapacity)
  }

  deinit {
    for index in 0..<chunkCount {
      if let base = unsafe chunks[index].base { unsafe Pages.unmap(base, byteCount: Pages.chunkByteCount) }
    }
    unsafe chunks.deallocate()
  }

  /// Returns the start of the block. The pointer is valid until the block is freed: chunks never move, only their table
  /// does.
  @inline(__always)
  func address(_ handle: UInt32) -> UnsafeMutableRawPointer {
    unsafe chunks[Int(handle >> 17)].base.unsafelyUnwrapped + Int(handle & Self.unitMask) &* 8
  }

  /// What the handles of the arena refer to, until its next change.
  @inline(__always)
  var view: View { unsafe View(chunks) }

  /// The blocks of an arena, for code that can't borrow the arena itself.
  ///
  /// Safe because it is used only while its arena neither changes nor ends.
  @safe
  struct View {
    private let chunks: UnsafeMutablePointer<Chunk>

    @inline(__always)
    fileprivate init(_ chunks: UnsafeMutablePointer<Chunk>) { unsafe self.chunks = chunks }

    /// Returns the start of a block.
    @inline(__always)
    func address(_ handle: UInt32) -> UnsafeMutableRawPointer {
      unsafe chunks[Int(handle >> 17)].base.unsafelyUnwrapped + Int(handle & Arena.unitMask) &* 8
    }
  }

  /// An estimate of the resident memory in bytes: everything up to the furthest block of each chunk.
  var memoryBytes: Int {
    touchedUnits * 8 + chunkCapacity * MemoryLayout<Chunk>.stride + ArenaBins.memoryBytes
  }

  /// Returns a block of exactly that many units, at least 2. In its first word, only `inUse` is set.
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

  /// Calls `body` with every used block, each of which must be a record, in the order of their handles.
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

  /// Returns the next used block in the order of their handles, each of which must be a record. Returns nil at the end,
  /// and then starts over.
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

  /// Makes sure that blocks with that many units in total, none larger than `largest`, can be allocated without asking
  /// the system.
  ///
  /// One free block of the total size is enough, however it is divided. Otherwise, this reserves whole chunks, each of
  /// which may waste less than one largest block at its end.
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
      guard chunkCount < Self.maxChunkCount else { throw .storeFull }
      index = chunkCount
    }
    if let budget, !budget.take(Pages.chunkByteCount) { throw .memoryLimit }
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

  /// Returns a chunk that became one free block to the system, unless it is the only one.
  /// - Returns: Whether the chunk was returned, and its block with it.
  private mutating func releaseWholeChunk(_ handle: UInt32) -> Bool {
    guard wholeChunkCount > 0 else {
      wholeChunkCount = 1
      return false
    }
    let index = Int(handle >> 17)
    unsafe Pages.unmap(chunks[index].base.unsafelyUnwrapped, byteCount: Pages.chunkByteCount)
    budget?.count(-Pages.chunkByteCount)
    touchedUnits -= Int(unsafe chunks[index].touchedUnits)
    unsafe chunks[index].base = nil
    vacantChunks.append(index)
    return true
  }

  // MARK: Blocks

  // Every function here keeps the marks of a block and of its neighbors consistent.

  /// Returns a block from the bins, split to size; 0 if none is large enough.
  private mutating func takeFromBins(units: UInt32) -> UInt32 {
    let handle = findFree(units: units)
    guard handle != 0 else { return 0 }
    let available = self.units(ofFree: handle)
    unlink(handle, units: available)
    if available == Self.unitsInWholeChunk { wholeChunkCount -= 1 }
    unsafe setWord(handle, Self.inUse)
    if available > units {
      makeFree(handle + units, units: available - units)
    } else {
      markNeighbor(after: handle, units: units, previousIsFree: false)
    }
    return handle
  }

  /// Frees a block and merges it with adjacent free blocks.
  mutating func free(_ handle: UInt32, units: UInt32) {
    unitsInUse -= Int(units)
    var (start, size) = (handle, units)
    let next = handle &+ units
    if next & Self.unitMask != 0 {
      if unsafe word(next) & Self.inUse == 0 {
        let following = self.units(ofFree: next)
        unlink(next, units: following)
        size += following
      } else {
        unsafe setWord(next, word(next) | Self.previousIsFree)
      }
    }
    if unsafe word(handle) & Self.previousIsFree != 0 {
      let preceding = unsafe (address(handle) - 4).load(as: UInt32.self)
      start -= preceding
      unlink(start, units: preceding)
      size += preceding
    }
    if hand > Int(start), hand < Int(start) + Int(size) { hand = Int(start) }
    if size == Self.unitsInWholeChunk, releaseWholeChunk(start) { return }
    makeFree(start, units: size)
  }

  /// Writes the marks of a free block and adds it to its bin. The word of the next block must already say, or be made
  /// to say, that the block before it is free.
  private mutating func makeFree(_ handle: UInt32, units: UInt32) {
    unsafe setWord(handle, units)
    if (handle &+ units) & Self.unitMask != 0 {
      unsafe (address(handle) + Int(units) * 8 - 4).storeBytes(of: units, as: UInt32.self)
    }
    link(handle, units: units)
  }

  func units(ofFree handle: UInt32) -> UInt32 { unsafe word(handle) }

  /// Returns the smallest block that fits, or nearly: in a bin of mixed sizes, it tries a few blocks before it moves to
  /// the next bin.
  private func findFree(units: UInt32) -> UInt32 {
    let own = ArenaBins.index(of: units)
    if let handle = firstFit(units: units, bin: own, attempts: 8) { return handle }
    if let bin = bins.firstOccupied(from: own + 1) { return bins.first(in: bin) }
    // There is no larger block. Before a new chunk is mapped, search the whole bin.
    return firstFit(units: units, bin: own, attempts: .max) ?? 0
  }

  private func firstFit(units: UInt32, bin: Int, attempts: Int) -> UInt32? {
    var (handle, remaining) = (bins.first(in: bin), attempts)
    while handle != 0, remaining > 0 {
      if self.units(ofFree: handle) >= units { return handle }
      handle = unsafe next(handle)
      remaining -= 1
    }
    return nil
  }

  private func markNeighbor(after handle: UInt32, units: UInt32, previousIsFree: Bool) {
    let next = handle &+ units
    guard next & Self.unitMask != 0 else { return }
    let mark = unsafe word(next) & ~Self.previousIsFree
    unsafe setWord(next, previousIsFree ? mark | Self.previousIsFree : mark)
  }

  // A free block of one unit has no space for links: it is in no bin until it merges with a neighbor.

  private mutating func link(_ handle: UInt32, units: UInt32) {
    guard units > 1 else { return }
    let bin = ArenaBins.index(of: units)
    let first = bins.first(in: bin)
    unsafe setNext(handle, first)
    unsafe setPrevious(handle, 0)
    if first != 0 { unsafe setPrevious(first, handle) }
    bins.setFirst(handle, in: bin)
  }

  private mutating func unlink(_ handle: UInt32, units: UInt32) {
    guard units > 1 else { return }
    let (next, previous) = unsafe (self.next(handle), self.previous(handle))
    if next != 0 { unsafe setPrevious(next, previous) }
    if previous != 0 {
      unsafe setNext(previous, next)
    } else {
      bins.setFirst(next, in: ArenaBins.index(of: units))
    }
  }

  @unsafe @inline(__always)
  private func word(_ handle: UInt32) -> UInt32 { unsafe address(handle).load(as: UInt32.self) }

  @unsafe @inline(__always)
  private func setWord(_ handle: UInt32, _ word: UInt32) {
    unsafe address(handle).storeBytes(of: word, as: UInt32.self)
  }

  @unsafe private func next(_ handle: UInt32) -> UInt32 {
    unsafe address(handle).load(fromByteOffset: 4, as: UInt32.self)
  }

  @unsafe private func previous(_ handle: UInt32) -> UInt32 {
    unsafe address(handle).load(fromByteOffset: 8, as: UInt32.self)
  }

  @unsafe private func setNext(_ handle: UInt32, _ next: UInt32) {
    unsafe address(handle).storeBytes(of: next, toByteOffset: 4, as: UInt32.self)
  }

  @unsafe private func setPrevious(_ handle: UInt32, _ previous: UInt32) {
    unsafe address(handle).storeBytes(of: previous, toByteOffset: 8, as: UInt32.self)
  }
}

/// The free blocks of an arena by size: a list for every size below 128 units, and above that four lists per doubling.
/// A bitmap of the nonempty lists finds the next larger block in a few instructions.
///
/// This type holds the heads of the lists; the links are in the blocks. Owned by one `Arena`.
@safe
struct ArenaBins: ~Copyable {
  static let exactCount = 128
  /// Seven bits of size are exact; ten doublings above them reach the 2^17 units of a chunk.
  static let count = exactCount + 10 * 4
  static let memoryBytes = count * 4

  private let heads: UnsafeMutablePointer<UInt32>
  private var occupied: (UInt64, UInt64, UInt64) = (0, 0, 0)

  init() {
    unsafe heads = .allocate(capacity: Self.count)
    unsafe heads.initialize(repeating: 0, count: Self.count)
  }

  deinit {
    unsafe heads.deallocate()
  }

  /// Returns the bin for blocks of this size.
  @inline(__always)
  static func index(of units: UInt32) -> Int {
    if units < UInt32(exactCount) { return Int(units) }
    let doubling = 31 &- units.leadingZeroBitCount
    return exactCount &+ (doubling &- 7) &* 4 &+ Int((units >> UInt32(truncatingIfNeeded: doubling &- 2)) & 3)
  }

  /// Returns the first bin whose blocks all have at least this size.
  static func index(atLeast units: UInt32) -> Int {
    if units < UInt32(exactCount) { return Int(units) }
    let own = index(of: units)
    return units == 1 || index(of: units - 1) != own ? own : own + 1
  }

  @inline(__always)
  func first(in bin: Int) -> UInt32 { unsafe heads[bin] }

  mutating func setFirst(_ handle: UInt32, in bin: Int) {
    unsafe heads[bin] = handle
    let bit = UInt64(1) << UInt64(bin & 63)
    switch bin >> 6 {
    case 0: occupied.0 = handle == 0 ? occupied.0 & ~bit : occupied.0 | bit
    case 1: occupied.1 = handle == 0 ? occupied.1 & ~bit : occupied.1 | bit
    default: occupied.2 = handle == 0 ? occupied.2 & ~bit : occupied.2 | bit
    }
  }

  /// Returns the first bin from this one on that has a block.
  func firstOccupied(from bin: Int) -> Int? {
    guard bin < Self.count else { return nil }
    let above = ~UInt64(0) << UInt64(bin & 63)
    switch bin >> 6 {
    case 0:
      if occupied.0 & above != 0 { return (occupied.0 & above).trailingZeroBitCount }
      if occupied.1 != 0 { return 64 + occupied.1.trailingZeroBitCount }
    case 1:
      if occupied.1 & above != 0 { return 64 + (occupied.1 & above).trailingZeroBitCount }
    default:
      return occupied.2 & above != 0 ? 128 + (occupied.2 & above).trailingZeroBitCount : nil
    }
    return occupied.2 != 0 ? 128 + occupied.2.trailingZeroBitCount : nil
  }
}
