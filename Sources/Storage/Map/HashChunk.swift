import Platform

/// One cache line of the hash index, in place.
///
///     0   12 x u8    tags, 0 for an empty slot
///     12  12 x u32   handles of records
///     60  u32        number of entries that found this chunk full and went to a later one
@safe
struct HashChunk {
  static let byteCount = 64
  static let slotCount = 12

  private let base: UnsafeMutableRawPointer

  @inline(__always)
  init(at base: UnsafeMutableRawPointer) { unsafe self.base = base }

  @inline(__always)
  func prefetch() { unsafe Platform.prefetch(base) }

  @inline(__always)
  func tag(_ slot: Int) -> UInt8 { unsafe base.load(fromByteOffset: slot, as: UInt8.self) }

  @inline(__always)
  func handle(_ slot: Int) -> UInt32 { unsafe base.load(fromByteOffset: 12 &+ slot &* 4, as: UInt32.self) }

  @inline(__always)
  func set(_ slot: Int, tag: UInt8, handle: UInt32) {
    unsafe base.storeBytes(of: tag, toByteOffset: slot, as: UInt8.self)
    unsafe base.storeBytes(of: handle, toByteOffset: 12 &+ slot &* 4, as: UInt32.self)
  }

  @inline(__always)
  var overflowCount: UInt32 {
    get { unsafe base.load(fromByteOffset: 60, as: UInt32.self) }
    nonmutating set { unsafe base.storeBytes(of: newValue, toByteOffset: 60, as: UInt32.self) }
  }

  /// Returns the slots with this tag.
  @inline(__always)
  func slots(tagged tag: UInt8) -> SlotSet {
    let pattern = 0x0101_0101_0101_0101 &* UInt64(tag)
    return unsafe SlotSet(
      low: Self.zeroBytes(base.load(as: UInt64.self) ^ pattern),
      high: Self.zeroBytes(UInt64(base.load(fromByteOffset: 8, as: UInt32.self)) ^ (pattern & 0xFFFF_FFFF) | ~0 << 32))
  }

  @inline(__always)
  var emptySlots: SlotSet { slots(tagged: 0) }

  /// Returns a word with the top bit of every byte that is zero, and no other bit. The sum can't carry from one byte
  /// into the next.
  @inline(__always)
  private static func zeroBytes(_ word: UInt64) -> UInt64 {
    let low = 0x7F7F_7F7F_7F7F_7F7F as UInt64
    return ~((word & low &+ low) | word | low)
  }

  /// A set of slots of one chunk. `next` removes them one by one.
  struct SlotSet {
    private var low: UInt64
    private var high: UInt64

    @inline(__always)
    init(low: UInt64, high: UInt64) { (self.low, self.high) = (low, high) }

    @inline(__always)
    mutating func next() -> Int? {
      if low != 0 {
        let slot = low.trailingZeroBitCount >> 3
        low &= low &- 1
        return slot
      }
      guard high != 0 else { return nil }
      let slot = 8 &+ high.trailingZeroBitCount >> 3
      high &= high &- 1
      return slot
    }
  }
}
