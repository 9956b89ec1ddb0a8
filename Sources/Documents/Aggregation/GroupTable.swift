/// The groups of an aggregation, numbered from 0, by the order keys of the values that they are grouped by.
///
/// Looking a key up allocates nothing.
struct GroupTable: Sendable {
  /// The numbers of groups by their hashes, with linear probing; -1 for none. There are at least twice as many as groups,
  /// a power of two.
  private var slots: [Int32] = [-1, -1]
  private var hashes: [Int] = []
  /// The keys of all groups, one after the other, and where each one ends.
  private var keys: [UInt8] = []
  private var ends: [Int] = []

  /// The number of groups.
  var count: Int { ends.count }

  /// Returns where the key of a group is.
  @inline(__always)
  private func range(ofKey group: Int) -> Range<Int> {
    unsafe Range(uncheckedBounds: (group == 0 ? 0 : ends[group &- 1], ends[group]))
  }

  func key(of group: Int) -> ArraySlice<UInt8> { keys[range(ofKey: group)] }

  /// Returns the order of two groups' keys: a negative number if the first one comes first.
  func order(_ group: Int, _ other: Int) -> Int {
    keys.span.extracting(range(ofKey: group)).order(keys.span.extracting(range(ofKey: other)))
  }

  /// Returns the number of the group with a key; nil if there is none.
  /// - Complexity: O(*n*) in the size of the key, on average.
  func find(_ key: Span<UInt8>) -> Int? {
    let (hash, mask) = (Self.hash(key), slots.count &- 1)
    var slot = hash & mask
    while slots[slot] >= 0 {
      let group = Int(slots[slot])
      if hashes[group] == hash, keys.span.extracting(range(ofKey: group)).order(key) == 0 { return group }
      slot = (slot &+ 1) & mask
    }
    return nil
  }

  /// Adds a group, whose number is `count`.
  /// - Precondition: No group has the key.
  mutating func add(_ key: Span<UInt8>) {
    let hash = Self.hash(key)
    hashes.append(hash)
    unsafe key.withUnsafeBufferPointer { unsafe keys.append(contentsOf: $0) }
    ends.append(keys.count)
    guard ends.count &* 2 > slots.count else { return place(ends.count &- 1) }
    slots = [Int32](repeating: -1, count: slots.count * 4)
    for group in ends.indices { place(group) }
  }

  private mutating func place(_ group: Int) {
    let mask = slots.count &- 1
    var slot = hashes[group] & mask
    while slots[slot] >= 0 { slot = (slot &+ 1) & mask }
    slots[slot] = Int32(group)
  }

  /// The hash depends on a random number of the process, so that nobody can choose values with equal hashes.
  @inline(__always)
  private static func hash(_ key: Span<UInt8>) -> Int {
    var hasher = Hasher()
    unsafe key.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    return hasher.finalize()
  }

  /// The memory of a group besides its key, in bytes, approximately.
  static let byteCountPerGroup = 3 * MemoryLayout<Int>.stride + 3 * MemoryLayout<Int32>.stride
}
