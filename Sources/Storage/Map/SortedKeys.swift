/// Blocks that a tree is built from, sorted by their keys; those with equal keys stay in the order in which they came.
/// Each comes with the 8 bytes of its key that most likely decide its place.
struct SortedKeys {
  struct Item {
    /// The 8 bytes of the key after the common prefix, as a number that orders like them.
    var word: UInt64
    let handle: UInt32
    /// The number of items that came before.
    let position: UInt32

    @inline(__always)
    func precedes(_ other: Item) -> Bool { (word, position) < (other.word, other.position) }
  }

  /// The number of items from which on a radix sort is faster.
  private static let radixThreshold = 1_024

  private let commonPrefix: Int
  private(set) var items: [Item] = []
  private var isSorted = true

  init(commonPrefix: Int) { self.commonPrefix = commonPrefix }

  @inline(__always)
  mutating func append(_ handle: UInt32, _ key: Key) {
    let word = Self.word(of: key, at: commonPrefix)
    if let last = items.last, last.word >= word { isSorted = false }
    items.append(Item(word: word, handle: handle, position: UInt32(truncatingIfNeeded: items.count)))
  }

  /// Returns 8 bytes of the key as a number that orders like them. Bytes beyond its end count as zero.
  @inline(__always)
  private static func word(of key: Key, at offset: Int) -> UInt64 {
    let rest = key.count &- offset
    if rest >= 8 { return key.word64(at: offset).bigEndian }
    var word: UInt64 = 0
    for index in 0..<max(0, rest) { word |= UInt64(key.byte(at: offset &+ index)) << UInt64(56 &- 8 &* index) }
    return word
  }

  /// Sorts the blocks. O(n) for every 8 bytes that keys have in common.
  mutating func sort(in blocks: some KeyedBlocks) {
    guard !isSorted else { return }
    sort(0..<items.count, at: commonPrefix, in: blocks)
  }

  /// Sorts items whose words are the bytes of their keys at this offset, and whose keys are equal before it.
  private mutating func sort(_ range: Range<Int>, at offset: Int, in blocks: some KeyedBlocks) {
    if range.count >= Self.radixThreshold {
      sortByWords(range)
    } else {
      items[range].sort { $0.precedes($1) }
    }
    var start = range.lowerBound
    while start < range.upperBound {
      var end = start + 1
      while end < range.upperBound, items[end].word == items[start].word { end += 1 }
      if end - start > 1 { sortEqual(start..<end, at: offset + 8, in: blocks) }
      start = end
    }
  }

  /// Sorts items whose keys are equal before this offset, except for zeroes at their ends.
  private mutating func sortEqual(_ range: Range<Int>, at offset: Int, in blocks: some KeyedBlocks) {
    var (minLength, maxLength) = (Int.max, 0)
    for index in range {
      let key = blocks.key(of: items[index].handle)
      items[index].word = Self.word(of: key, at: offset)
      minLength = min(minLength, key.count)
      maxLength = max(maxLength, key.count)
    }
    if maxLength > offset { return sort(range, at: offset, in: blocks) }
    // Every sort so far has left equal items in their order.
    if minLength == maxLength { return }
    items[range].sort { left, right in
      (blocks.key(of: left.handle).count, left.position) < (blocks.key(of: right.handle).count, right.position)
    }
  }

  /// Sorts by a radix sort, from the last byte to the first. Skips bytes that are equal in all words.
  private mutating func sortByWords(_ range: Range<Int>) {
    var counts = [Int](repeating: 0, count: 8 * 256)
    var sorted = Array(items[range])
    for item in sorted {
      for byte in 0..<8 { counts[byte &* 256 &+ Int(truncatingIfNeeded: item.word >> UInt64(8 &* byte) & 0xFF)] &+= 1 }
    }
    var other = sorted
    for byte in 0..<8 {
      let shift = UInt64(8 * byte)
      var places = [Int](repeating: 0, count: 256)
      var (place, isUniform) = (0, false)
      for value in 0..<256 {
        let count = counts[byte * 256 + value]
        places[value] = place
        place += count
        isUniform = isUniform || count == range.count
      }
      guard !isUniform else { continue }
      do {
        let source = sorted.span
        var target = other.mutableSpan
        var next = places.mutableSpan
        for index in source.indices {
          let item = source[index]
          let value = Int(truncatingIfNeeded: item.word >> shift & 0xFF)
          target[next[value]] = item
          next[value] &+= 1
        }
      }
      swap(&sorted, &other)
    }
    items.replaceSubrange(range, with: sorted)
  }
}
