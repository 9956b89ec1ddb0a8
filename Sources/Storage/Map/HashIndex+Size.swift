import Glibc
import Platform

/// How segments grow and shrink. By small steps, because what a step leaves empty is memory that every store pays for:
/// a segment stays between 82 and 92 hundredths full while it grows.
extension HashIndex {
  /// The most entries a segment takes before it grows.
  private static func limit(chunkCount: UInt32) -> Int { Int(chunkCount) * HashChunk.slotCount * 92 / 100 }

  /// Makes sure that one more entry can be placed. When the system refuses memory for a larger segment, the old one is
  /// used up to its last slot before the write fails.
  mutating func makeRoom(inSegment index: Int, in arena: borrowing Arena) throws(StorageError) {
    let segment = unsafe segments[index]
    let (entryCount, chunkCount) = (Int(segment.entryCount), segment.chunkCount)
    guard entryCount >= Self.limit(chunkCount: chunkCount) else { return }
    if !resize(segment: index, chunkCount: chunkCount + max(1, chunkCount / 8), in: arena) {
      guard entryCount < Int(chunkCount) * HashChunk.slotCount else { throw .outOfMemory }
    }
  }

  /// Gives an empty index room for about so many entries.
  mutating func reserve(entries: Int, in arena: borrowing Arena) throws(StorageError) {
    let perSegment = entries / Self.segmentCount
    guard perSegment >= HashChunk.slotCount else { return }
    let chunkCount = UInt32(clamping: (perSegment * 100 / 86 + HashChunk.slotCount) / HashChunk.slotCount)
    for index in 0..<Self.segmentCount where unsafe segments[index].chunkCount < chunkCount {
      guard resize(segment: index, chunkCount: chunkCount, in: arena) else { throw .outOfMemory }
    }
  }

  /// Takes back what was reserved for entries that didn't come.
  mutating func shrinkSparseSegments(in arena: borrowing Arena) {
    for index in 0..<Self.segmentCount where unsafe segments[index].chunkCount > 0 {
      shrinkIfSparse(segment: index, in: arena)
    }
  }

  mutating func shrinkIfSparse(segment index: Int, in arena: borrowing Arena) {
    let segment = unsafe segments[index]
    let (entryCount, chunkCount) = (Int(segment.entryCount), segment.chunkCount)
    guard entryCount * 2 < Int(chunkCount) * HashChunk.slotCount else { return }
    if entryCount == 0 {
      Self.free(segment)
      notePaging(from: Int(chunkCount) * HashChunk.byteCount, to: 0)
      unsafe segments[index] = Segment()
      memoryBytes -= Int(chunkCount) * HashChunk.byteCount
    } else if chunkCount > 1 {
      let fitting = UInt32((entryCount * 100 / 80 + HashChunk.slotCount - 1) / HashChunk.slotCount)
      if fitting < chunkCount { _ = resize(segment: index, chunkCount: fitting, in: arena) }
    }
  }

  /// From this size on a segment is whole pages of its own: `malloc` would keep the holes that so many growing blocks
  /// of like size leave behind, about a byte for every entry.
  private static let pagedByteCount = 4 * Pages.pageByteCount

  /// The number of chunks that a segment gets for a wish: a large one fills its last page.
  private static func roundedUp(_ chunkCount: UInt32) -> UInt32 {
    let chunksInPage = UInt32(Pages.pageByteCount / HashChunk.byteCount)
    guard Int(chunkCount) * HashChunk.byteCount >= pagedByteCount else { return chunkCount }
    return (chunkCount + chunksInPage - 1) / chunksInPage * chunksInPage
  }

  private static func allocate(chunkCount: UInt32) -> UnsafeMutableRawPointer? {
    let byteCount = Int(chunkCount) * HashChunk.byteCount
    if byteCount >= pagedByteCount { return unsafe Pages.map(byteCount: byteCount) }
    var memory: UnsafeMutableRawPointer?
    guard unsafe posix_memalign(&memory, HashChunk.byteCount, byteCount) == 0, let memory = unsafe memory else {
      return nil
    }
    unsafe memory.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
    return unsafe memory
  }

  static func free(_ segment: Segment) {
    guard let chunks = unsafe segment.chunks else { return }
    let byteCount = Int(segment.chunkCount) * HashChunk.byteCount
    if byteCount >= pagedByteCount {
      unsafe Pages.unmap(chunks, byteCount: byteCount)
    } else {
      unsafe Glibc.free(chunks)
    }
  }

  /// When all segments have come to be whole pages, `malloc` is asked to give back what it keeps of smaller ones: some megabytes, once.
  private mutating func notePaging(from old: Int, to new: Int) {
    pagedSegmentCount += (new >= Self.pagedByteCount ? 1 : 0) - (old >= Self.pagedByteCount ? 1 : 0)
    if pagedSegmentCount == Self.segmentCount, old < Self.pagedByteCount { Pages.trimHeap() }
  }

  /// Moves a segment to another number of chunks; false, with nothing changed, when the system refuses the memory.
  ///
  /// Where an entry belongs depends on more of its hash than its tag, so the keys are read again. A pass over the next
  /// records' headers comes first: those loads don't wait for one another, and the hashing finds the lines in the
  /// cache.
  private mutating func resize(segment index: Int, chunkCount: UInt32, in arena: borrowing Arena) -> Bool {
    let chunkCount = Self.roundedUp(chunkCount)
    let byteCount = Int(chunkCount) * HashChunk.byteCount
    guard let larger = unsafe Self.allocate(chunkCount: chunkCount) else { return false }
    let old = unsafe segments[index]
    if let chunks = unsafe old.chunks {
      for position in 0..<Int(old.chunkCount) {
        let chunk = unsafe HashChunk(at: chunks + position * HashChunk.byteCount)
        var allInUse = true
        for slot in 0..<HashChunk.slotCount where chunk.tag(slot) != 0 {
          allInUse = unsafe Record(at: arena.address(chunk.handle(slot))).isInUse && allInUse
        }
        precondition(allInUse, "the hash index refers to a freed record")
        for slot in 0..<HashChunk.slotCount where chunk.tag(slot) != 0 {
          let handle = chunk.handle(slot)
          let hash = unsafe hash(Record(at: arena.address(handle)).key)
          unsafe Self.place(handle, hash: hash, chunks: larger, chunkCount: chunkCount)
        }
      }
      Self.free(old)
    }
    unsafe segments[index].chunks = larger
    unsafe segments[index].chunkCount = chunkCount
    notePaging(from: Int(old.chunkCount) * HashChunk.byteCount, to: byteCount)
    memoryBytes += byteCount - Int(old.chunkCount) * HashChunk.byteCount
    return true
  }
}
