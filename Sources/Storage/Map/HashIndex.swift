/// The handles of all live records by the hash of their keys.
///
/// The upper 8 bits of a hash select one of 256 segments, which grow and shrink each on its own; the middle ones the
/// chunk where a look-up begins; the lowest 8 are kept as a tag, so that nearly every key that is compared is the right
/// one. An entry that finds its chunk full goes to the next with room, and every chunk it passed counts it: a look-up
/// ends at the first chunk that nothing passed, and a removal needs no tombstone.
///
/// Owned by one `EntryMap` and used under its store's lock. It refers to records and never owns them.
@safe
struct HashIndex: ~Copyable {
  static let segmentCount = 256

  @safe
  struct Segment {
    /// The chunks; nil when there are none.
    var chunks: UnsafeMutableRawPointer?
    var chunkCount: UInt32 = 0
    var entryCount: UInt32 = 0
  }

  let hash = KeyHash()
  let segments: UnsafeMutablePointer<Segment>
  /// Segments that are whole pages of their own.
  var pagedSegmentCount = 0
  var memoryBytes = HashIndex.segmentCount * MemoryLayout<Segment>.stride

  init() {
    unsafe segments = .allocate(capacity: Self.segmentCount)
    unsafe segments.initialize(repeating: Segment(), count: Self.segmentCount)
  }

  deinit {
    for index in 0..<Self.segmentCount { unsafe Self.free(segments[index]) }
    unsafe segments.deallocate()
  }

  @inline(__always)
  static func segment(of hash: UInt32) -> Int { Int(hash >> 24) }

  @inline(__always)
  static func tag(of hash: UInt32) -> UInt8 { max(1, UInt8(truncatingIfNeeded: hash)) }

  /// Where a look-up begins: the bits below the segment's, scaled to the number of chunks, which is any number.
  @inline(__always)
  static func firstChunk(of hash: UInt32, chunkCount: UInt32) -> Int {
    Int(truncatingIfNeeded: (UInt64(hash << 8) &* UInt64(chunkCount)) >> 32)
  }

  /// The chunk where a look-up begins; nil when its segment is empty.
  @inline(__always)
  func firstChunk(of hash: UInt32) -> HashChunk? {
    let segment = unsafe segments[Self.segment(of: hash)]
    guard let chunks = unsafe segment.chunks else { return nil }
    let index = Self.firstChunk(of: hash, chunkCount: segment.chunkCount)
    return unsafe HashChunk(at: chunks + index &* HashChunk.byteCount)
  }

  /// The record of that key; 0 when there is none.
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

  /// Calls `body` with every record whose hash may be this one, until it returns false.
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
}
