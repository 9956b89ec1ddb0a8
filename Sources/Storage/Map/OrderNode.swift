/// A node of the order index, where it lies.
///
///     0   u64   the epoch it was made in
///     8   u16   how many elements it has
///     10  u8    its level: 0 for a leaf
///     12        a leaf: 125 x u32 handles of records
///               above: 41 x u32 handles of children, 41 x u32 counts of the records below each, 41 x u32 first records
///
/// A leaf is one column of words and any other node three; what moves elements about treats both alike.
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

  /// While the node is free: the next free one.
  var nextFree: UInt32 {
    get { unsafe base.load(as: UInt32.self) }
    nonmutating set { unsafe base.storeBytes(of: newValue, as: UInt32.self) }
  }

  /// Handles of records, in a leaf.
  @inline(__always)
  var records: UnsafeMutablePointer<UInt32> { unsafe (base + 12).assumingMemoryBound(to: UInt32.self) }

  /// Handles of nodes, above the leaves.
  @inline(__always)
  var children: UnsafeMutablePointer<UInt32> { unsafe records }

  /// How many records there are below each child.
  @inline(__always)
  var counts: UnsafeMutablePointer<UInt32> { unsafe records + Self.innerCapacity }

  /// The first record below each child.
  @inline(__always)
  var firsts: UnsafeMutablePointer<UInt32> { unsafe records + Self.innerCapacity &* 2 }

  @inline(__always)
  func column(_ index: Int) -> UnsafeMutablePointer<UInt32> { unsafe records + index &* capacity }

  /// The first record of the subtree; the node must not be empty.
  @inline(__always)
  var firstRecord: UInt32 { unsafe isLeaf ? records[0] : firsts[0] }

  /// How many records the subtree has.
  var recordCount: Int {
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

  /// Moves the elements from `index` on by `distance`, up or down, and sets the count. A gap has undefined contents.
  func shift(from index: Int, by distance: Int) {
    let moved = count - index
    for number in 0..<columnCount {
      let start = unsafe column(number) + index
      unsafe (start + distance).update(from: start, count: moved)
    }
    count += distance
  }

  /// Makes `child` the element at `index` of a node above the leaves; it must not be empty.
  func set(_ index: Int, child: UInt32, node: OrderNode) {
    unsafe children[index] = child
    unsafe counts[index] = UInt32(node.recordCount)
    unsafe firsts[index] = node.firstRecord
  }
}
