/// A binary heap of the times when entries expire, soonest first. It grows and shrinks chunk by chunk, so that no
/// change copies more than a few items.
///
/// Safe because indices below `count` lie in allocated, initialized chunks, and items are trivial.
@safe
struct ExpiryHeap: ~Copyable {
  /// The time when an entry may expire, and the hash of its key.
  struct Item: Comparable {
    // Two halves keep an item at 12 bytes.
    private let upper: UInt32
    private let lower: UInt32
    let hash: UInt32

    init(expiry: UInt64, hash: UInt32) {
      upper = UInt32(truncatingIfNeeded: expiry >> 32)
      lower = UInt32(truncatingIfNeeded: expiry)
      self.hash = hash
    }

    var expiry: UInt64 { UInt64(upper) << 32 | UInt64(lower) }

    static func < (left: Item, right: Item) -> Bool { left.expiry < right.expiry }
  }

  /// The number of items in a chunk of 12 KiB.
  private static let chunkCapacity = 1_024

  private var chunks: [UnsafeMutablePointer<Item>] = unsafe []
  private(set) var count = 0

  deinit {
    for index in unsafe chunks.indices { unsafe chunks[index].deallocate() }
  }

  var isEmpty: Bool { count == 0 }
  var first: Item? { isEmpty ? nil : self[0] }
  /// The bytes of the items, without spare capacity.
  var usedBytes: Int { count * MemoryLayout<Item>.stride }
  var memoryBytes: Int { unsafe chunks.count * Self.chunkCapacity * MemoryLayout<Item>.stride }

  private subscript(index: Int) -> Item {
    get { unsafe chunks[index / Self.chunkCapacity][index % Self.chunkCapacity] }
    nonmutating set { unsafe chunks[index / Self.chunkCapacity][index % Self.chunkCapacity] = newValue }
  }

  /// Adds an item. O(log n).
  mutating func push(_ item: Item) {
    if unsafe count == chunks.count * Self.chunkCapacity {
      unsafe chunks.append(.allocate(capacity: Self.chunkCapacity))
    }
    var index = count
    count += 1
    while index > 0, item < self[(index - 1) / 2] {
      self[index] = self[(index - 1) / 2]
      index = (index - 1) / 2
    }
    self[index] = item
  }

  /// Removes and returns the soonest item. O(log n).
  /// - Precondition: The heap isn't empty.
  mutating func popFirst() -> Item {
    let first = self[0]
    let last = popLast()
    guard !isEmpty else { return first }
    var index = 0
    while 2 * index + 1 < count {
      var child = 2 * index + 1
      if child + 1 < count, self[child + 1] < self[child] { child += 1 }
      guard self[child] < last else { break }
      self[index] = self[child]
      index = child
    }
    self[index] = last
    return first
  }

  /// Removes and returns the last item, which no other item is below. O(1).
  /// - Precondition: The heap isn't empty.
  mutating func popLast() -> Item {
    precondition(!isEmpty)
    count -= 1
    let last = self[count]
    // One spare chunk keeps a heap whose size goes up and down from allocating each time.
    if unsafe count + 2 * Self.chunkCapacity <= chunks.count * Self.chunkCapacity {
      unsafe chunks.removeLast().deallocate()
    }
    return last
  }
}
