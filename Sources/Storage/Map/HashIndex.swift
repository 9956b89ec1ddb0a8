import Glibc
import Platform

/// The hash index of a map: the handles of all live records by the hash of their keys.
///
/// The upper 8 bits of a hash select one of 256 segments, which grow and shrink independently. The middle bits select
/// the chunk where a look-up begins. The lowest 8 bits are stored as a tag, so that nearly every key that is compared
/// is the right one. An entry whose chunk is full goes to the next chunk with an empty slot, and every chunk it passes
/// counts it: a look-up ends at the first chunk that nothing passed, and a removal needs no tombstone.
///
/// Owned by one `EntryMap` and used under its store's lock. It refers to records but doesn't own them.
@safe
struct HashIndex: ~Copyable {
  private static let segmentCount = 256

  @safe
  private struct Segment {
    /// The chunks; nil if there are none.
    var chunks: UnsafeMutableRawPointer?
    var chunkCount: UInt32 = 0
    var entryCount: UInt32 = 0
  }

  private let keyHash: KeyHash
  private let segments: UnsafeMutablePointer<Segment>
  /// The number of segments that are mapped as whole pages.
  private var pagedSegmentCount = 0
  /// Their size, in bytes.
  private(set) var pagedBytes = 0
  private(set) var memoryBytes = HashIndex.segmentCount * MemoryLayout<Segment>.stride

  /// - Parameter keyHash: That of another index of the same map; nil for a new one.
  init(_ keyHash: KeyHash = KeyHash()) {
    self.keyHash = keyHash
    unsafe segments = .allocate(capacity: Self.segmentCount)
    unsafe segments.initialize(repeating: Segment(), count: Self.segmentCount)
  }

  deinit {
    for index in 0..<Self.segmentCount { unsafe Self.free(segments[index]) }
    unsafe segments.deallocate()
  }

  /// The number of records in the index. Adds up the segments.
  var count: Int { (0..<Self.segmentCount).reduce(0) { unsafe $0 + Int(segments[$1].entryCount) } }

  @inline(__always)
  func hash(_ key: Key) -> UInt32 { keyHash(key) }

  /// A number of the hash function.
  var tag: UInt32 { keyHash.tag }

  /// Returns an empty index with the same hash function.
  func makeEmpty() -> HashIndex { HashIndex(keyHash) }

  @inline(__always)
  private static func segment(of hash: UInt32) -> Int { Int(hash >> 24) }

  @inline(__always)
  static func tag(of hash: UInt32) -> UInt8 { max(1, UInt8(truncatingIfNeeded: hash)) }

  /// Returns the position of the chunk where a look-up begins: the bits below the segment's, scaled to the number of
  /// chunks, which need not be a power of two.
  @inline(__always)
  private static func firstChunk(of hash: UInt32, chunkCount: UInt32) -> Int {
    Int(truncatingIfNeeded: (UInt64(hash << 8) &* UInt64(chunkCount)) >> 32)
  }

  /// Returns the chunk where a look-up begins; nil if its segment is empty.
  @inline(__always)
  func firstChunk(of hash: UInt32) -> HashChunk? {
    let segment = unsafe segments[Self.segment(of: hash)]
    guard let chunks = unsafe segment.chunks else { return nil }
    let index = Self.firstChunk(of: hash, chunkCount: segment.chunkCount)
    return unsafe HashChunk(at: chunks + index &* HashChunk.byteCount)
  }

  /// Returns the record with this key; 0 if there is none.
  @inline(__always)
  func find(_ key: Key, hash: UInt32, in arena: borrowing Arena) -> UInt32 {
    let segment = unsafe segments[Self.segment(of: hash)]
    guard let chunks = unsafe segment.chunks else { return 0 }
    let tag = Self.tag(of: hash)
    let chunkCount = segment.chunkCount
    var index = Self.firstChunk(of: hash, chunkCount: chunkCount)
    var remaining = chunkCount
    repeat {
      let chunk = unsafe HashChunk(at: chunks + index &* HashChunk.byteCount)
      var slots = chunk.slots(tagged: tag)
      while let slot = slots.next() {
        let handle = chunk.handle(slot)
        if unsafe Record(at: arena.address(handle)).key.equals(key) { return handle }
      }
      if chunk.overflowCount == 0 { return 0 }
      index &+= 1
      if index == Int(chunkCount) { index = 0 }
      remaining &-= 1
    } while remaining > 0
    return 0
  }

  /// Calls `body` with every record that may have this hash until it returns false.
  func visitCandidates(hash: UInt32, _ body: (UInt32) -> Bool) {
    let segment = unsafe segments[Self.segment(of: hash)]
    guard let chunks = unsafe segment.chunks else { return }
    let chunkCount = Int(segment.chunkCount)
    let first = Self.firstChunk(of: hash, chunkCount: UInt32(chunkCount))
    for step in 0..<chunkCount {
      let index = (first + step) % chunkCount
      let chunk = unsafe HashChunk(at: chunks + index * HashChunk.byteCount)
      var slots = chunk.slots(tagged: Self.tag(of: hash))
      while let slot = slots.next() {
        if !body(chunk.handle(slot)) { return }
      }
      if chunk.overflowCount == 0 { return }
    }
  }

  /// Calls `body` with every record whose hash is in the range from `start` to the end of the chunk where a look-up of it
  /// begins. Skips empty segments.
  /// - Returns: The hash after that range; nil at the end.
  func visitChunk(from start: UInt32, in arena: borrowing Arena, _ body: (UInt32) -> Void) -> UInt32? {
    var (start, index) = (start, Self.segment(of: start))
    while unsafe segments[index].chunks == nil {
      index += 1
      guard index < Self.segmentCount else { return nil }
      start = UInt32(index) << 24
    }
    let segment = unsafe segments[index]
    let (first, chunkCount) = (Self.firstChunk(of: start, chunkCount: segment.chunkCount), Int(segment.chunkCount))
    // The first of the lower 24 bits of a hash that belong to the next chunk.
    let end = ((UInt64(first + 1) << 32 + UInt64(chunkCount - 1)) / UInt64(chunkCount) + 255) >> 8
    let range = UInt64(start)..<UInt64(index) << 24 + min(end, 1 << 24)
    for step in 0..<chunkCount {
      let position = (first + step) % chunkCount
      let chunk = unsafe HashChunk(at: segment.chunks! + position * HashChunk.byteCount)
      for slot in 0..<HashChunk.slotCount where chunk.tag(slot) != 0 {
        let handle = chunk.handle(slot)
        if unsafe range.contains(UInt64(hash(Record(at: arena.address(handle)).key))) { body(handle) }
      }
      // No record has passed this chunk.
      if chunk.overflowCount == 0 { break }
    }
    return UInt32(exactly: range.upperBound)
  }

  // MARK: Changes

  /// Adds a record whose key has no record yet.
  /// - Throws: `outOfMemory`, with nothing changed.
  mutating func insert(_ handle: UInt32, hash: UInt32, in arena: borrowing Arena) throws(StorageError) {
    let index = Self.segment(of: hash)
    try reserveSpace(inSegment: index, in: arena)
    unsafe (segments + index).pointee.entryCount &+= 1
    unsafe Self.place(handle, hash: hash, chunks: segments[index].chunks!, chunkCount: segments[index].chunkCount)
  }

  /// Removes a record that is in the index, without reading its key.
  mutating func remove(_ handle: UInt32, hash: UInt32, in arena: borrowing Arena) {
    let index = Self.segment(of: hash)
    let segment = unsafe segments[index]
    var position = Self.firstChunk(of: hash, chunkCount: segment.chunkCount)
    while true {
      let chunk = unsafe HashChunk(at: segment.chunks! + position * HashChunk.byteCount)
      if let slot = Self.slot(of: handle, hash: hash, in: chunk) {
        chunk.set(slot, tag: 0, handle: 0)
        break
      }
      precondition(chunk.overflowCount > 0, "a record is missing from the hash index")
      chunk.overflowCount -= 1
      position += 1
      if position == Int(segment.chunkCount) { position = 0 }
    }
    unsafe (segments + index).pointee.entryCount -= 1
    shrinkIfSparse(segment: index, in: arena)
  }

  /// Replaces a record that is in the index with another one of the same key.
  func replace(_ old: UInt32, with new: UInt32, hash: UInt32) {
    let segment = unsafe segments[Self.segment(of: hash)]
    var position = Self.firstChunk(of: hash, chunkCount: segment.chunkCount)
    while true {
      let chunk = unsafe HashChunk(at: segment.chunks! + position * HashChunk.byteCount)
      if let slot = Self.slot(of: old, hash: hash, in: chunk) {
        chunk.set(slot, tag: Self.tag(of: hash), handle: new)
        return
      }
      precondition(chunk.overflowCount > 0, "a record is missing from the hash index")
      position += 1
      if position == Int(segment.chunkCount) { position = 0 }
    }
  }

  private static func slot(of handle: UInt32, hash: UInt32, in chunk: HashChunk) -> Int? {
    var slots = chunk.slots(tagged: tag(of: hash))
    while let slot = slots.next() {
      if chunk.handle(slot) == handle { return slot }
    }
    return nil
  }

  /// Puts the record into the first chunk with an empty slot, counting it in every full chunk on the way.
  @inline(__always)
  private static func place(_ handle: UInt32, hash: UInt32, chunks: UnsafeMutableRawPointer, chunkCount: UInt32) {
    var index = firstChunk(of: hash, chunkCount: chunkCount)
    while true {
      let chunk = unsafe HashChunk(at: chunks + index &* HashChunk.byteCount)
      var empty = chunk.emptySlots
      if let slot = empty.next() {
        chunk.set(slot, tag: tag(of: hash), handle: handle)
        return
      }
      chunk.overflowCount &+= 1
      index &+= 1
      if index == Int(chunkCount) { index = 0 }
    }
  }

  // MARK: Size

  // Segments grow and shrink by small steps, because every store pays for the memory that a step leaves empty: while it
  // grows, a segment stays between 82% and 92% full.

  /// Returns the number of entries at which a segment of this size grows.
  private static func limit(chunkCount: UInt32) -> Int { Int(chunkCount) * HashChunk.slotCount * 92 / 100 }

  /// Makes room for one more entry. If the system refuses memory for a larger segment, the old one fills up to its last
  /// slot before the write fails.
  private mutating func reserveSpace(inSegment index: Int, in arena: borrowing Arena) throws(StorageError) {
    let segment = unsafe segments[index]
    let (entryCount, chunkCount) = (Int(segment.entryCount), segment.chunkCount)
    guard entryCount >= Self.limit(chunkCount: chunkCount) else { return }
    if !resize(segment: index, chunkCount: chunkCount + max(1, chunkCount / 8), in: arena) {
      guard entryCount < Int(chunkCount) * HashChunk.slotCount else { throw .outOfMemory }
    }
  }

  /// Makes room for about this number of entries in an empty index.
  mutating func reserve(entries: Int, in arena: borrowing Arena) throws(StorageError) {
    let perSegment = entries / Self.segmentCount
    guard perSegment >= HashChunk.slotCount else { return }
    let chunkCount = UInt32(clamping: (perSegment * 100 / 86 + HashChunk.slotCount) / HashChunk.slotCount)
    for index in 0..<Self.segmentCount where unsafe segments[index].chunkCount < chunkCount {
      guard resize(segment: index, chunkCount: chunkCount, in: arena) else { throw .outOfMemory }
    }
  }

  /// Releases memory that was reserved for more entries than there are.
  mutating func releaseUnusedReservation(in arena: borrowing Arena) {
    for index in 0..<Self.segmentCount where unsafe segments[index].chunkCount > 0 {
      shrinkIfSparse(segment: index, in: arena)
    }
  }

  private mutating func shrinkIfSparse(segment index: Int, in arena: borrowing Arena) {
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

  /// The size from which on a segment is mapped as whole pages. With `malloc`, the holes left by many growing blocks of
  /// similar size would cost about a byte per entry.
  private static let pagedByteCount = 4 * Pages.pageByteCount

  /// Returns the number of chunks to allocate for a requested number: a large segment fills its last page.
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

  private static func free(_ segment: Segment) {
    guard let chunks = unsafe segment.chunks else { return }
    let byteCount = Int(segment.chunkCount) * HashChunk.byteCount
    if byteCount >= pagedByteCount {
      unsafe Pages.unmap(chunks, byteCount: byteCount)
    } else {
      unsafe Glibc.free(chunks)
    }
  }

  /// Once all segments are mapped as whole pages, asks `malloc` to return the memory of the smaller ones to the system:
  /// some megabytes, once.
  private mutating func notePaging(from old: Int, to new: Int) {
    pagedSegmentCount += (new >= Self.pagedByteCount ? 1 : 0) - (old >= Self.pagedByteCount ? 1 : 0)
    pagedBytes += (new >= Self.pagedByteCount ? new : 0) - (old >= Self.pagedByteCount ? old : 0)
    if pagedSegmentCount == Self.segmentCount, old < Self.pagedByteCount { ProcessMemory.trimHeap() }
  }

  /// Rehashes a segment into another number of chunks.
  ///
  /// The place of an entry depends on more of its hash than its tag, so the keys are read again. A pass over the
  /// headers of a chunk's records comes first: those loads are independent of one another, and bring the keys into the
  /// cache.
  ///
  /// - Returns: False, with nothing changed, if the system refuses the memory.
  private mutating func resize(segment index: Int, chunkCount: UInt32, in arena: borrowing Arena) -> Bool {
    let chunkCount = Self.roundedUp(chunkCount)
    let byteCount = Int(chunkCount) * HashChunk.byteCount
    guard let larger = unsafe Self.allocate(chunkCount: chunkCount) else { return false }
    let old = unsafe segments[index]
    if let chunks = unsafe old.chunks {
      for position in 0..<Int(old.chunkCount) {
        let chunk = unsafe HashChunk(at: chunks + position * HashChunk.byteCount)
        var areAllocated = true
        for slot in 0..<HashChunk.slotCount where chunk.tag(slot) != 0 {
          areAllocated = unsafe Record(at: arena.address(chunk.handle(slot))).isAllocated && areAllocated
        }
        precondition(areAllocated, "the hash index refers to a freed record")
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
