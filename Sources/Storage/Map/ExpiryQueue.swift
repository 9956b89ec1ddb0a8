/// When entries expire, the soonest first: a binary heap of times and hashes of keys.
///
/// Every live entry with an expiry has at least one item under its hash that isn't later than that expiry. An item may
/// well be too early, or its entry gone: nothing is taken out when an entry is overwritten or deleted. Whoever pops an
/// item looks the entry up, and pushes it again when it expires later. Owned by one `EntryMap` and used under its
/// store's lock.
struct ExpiryQueue {
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

  private var items: [Item] = []

  var count: Int { items.count }
  var first: Item? { items.first }
  /// What the items take, without the room for more.
  var usedBytes: Int { items.count * MemoryLayout<Item>.stride }
  var memoryBytes: Int { items.capacity * MemoryLayout<Item>.stride }

  mutating func push(expiry: UInt64, hash: UInt32) {
    items.append(Item(expiry: expiry, hash: hash))
    var index = items.count - 1
    var items = items.mutableSpan
    while index > 0, items[index] < items[(index - 1) / 2] {
      items.swapAt(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
  }

  /// Takes out the soonest item; the queue must not be empty.
  mutating func pop() -> Item {
    items.swapAt(0, items.count - 1)
    let popped = items.removeLast()
    siftDown()
    return popped
  }

  private mutating func siftDown() {
    let count = items.count
    var index = 0
    var items = items.mutableSpan
    while 2 * index + 1 < count {
      var child = 2 * index + 1
      if child + 1 < count, items[child + 1] < items[child] { child += 1 }
      guard items[child] < items[index] else { return }
      items.swapAt(index, child)
      index = child
    }
  }

  /// A queue with one item for every hash here that `soonest` knows an expiry of, and no others.
  func rebuilt(soonest: (UInt32) -> UInt64?) -> ExpiryQueue {
    var kept: [Item] = []
    for item in items.sorted(by: { $0.hash < $1.hash }) where kept.last?.hash != item.hash {
      if let expiry = soonest(item.hash) { kept.append(Item(expiry: expiry, hash: item.hash)) }
    }
    // A sorted array is a heap.
    var queue = ExpiryQueue()
    queue.items = kept.sorted()
    return queue
  }
}
