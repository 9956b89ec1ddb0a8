/// The free blocks of an arena by size: a list for every size below 128 units, and above that four lists for each
/// doubling. A bitmap of the lists that aren't empty finds the next larger block in a few instructions.
///
/// It knows where each list begins; the links are in the blocks. Owned by one `Arena`.
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

  /// The bin that holds blocks of this size.
  @inline(__always)
  static func index(of units: UInt32) -> Int {
    if units < UInt32(exactCount) { return Int(units) }
    let doubling = 31 &- units.leadingZeroBitCount
    return exactCount &+ (doubling &- 7) &* 4 &+ Int((units >> UInt32(truncatingIfNeeded: doubling &- 2)) & 3)
  }

  /// The first bin all of whose blocks have at least this size.
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

  /// The first bin from this one on that holds a block.
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
