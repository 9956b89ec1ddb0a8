/// Records on their way into the order, each with the 8 bytes of its key that most likely decide where it belongs.
///
/// Lives while a map is loaded.
struct SortedKeys {
  struct Item {
    /// The key's bytes behind what all keys have in common, as a number that orders like them.
    var word: UInt64
    var handle: UInt32
  }

  let commonPrefix: Int
  private(set) var items: [Item] = []
  private var isSorted = true

  init(commonPrefix: Int) { self.commonPrefix = commonPrefix }

  @inline(__always)
  mutating func append(_ handle: UInt32, _ key: Key) {
    let rest = key.count &- commonPrefix
    var word: UInt64 = 0
    if rest >= 8 {
      word = key.word64(at: commonPrefix).bigEndian
    } else {
      for index in 0..<max(0, rest) { word |= UInt64(key.byte(at: commonPrefix &+ index)) << UInt64(56 &- 8 &* index) }
    }
    if let last = items.last, last.word >= word { isSorted = false }
    items.append(Item(word: word, handle: handle))
  }

  /// Sorts by the words, then the keys of equal words.
  mutating func sort(in arena: borrowing Arena) {
    guard !isSorted else { return }
    sortByWords()
    var start = 0
    while start < items.count {
      var end = start + 1
      while end < items.count, items[end].word == items[start].word { end += 1 }
      if end - start > 1 {
        items[start..<end].sort { left, right in
          unsafe Record(at: arena.address(left.handle)).key.precedes(
            Record(at: arena.address(right.handle)).key, .lower)
        }
      }
      start = end
    }
  }

  /// A radix sort, from the last byte to the first; bytes that are the same in all words are passed over.
  private mutating func sortByWords() {
    var counts = [Int](repeating: 0, count: 8 * 256)
    for item in items {
      for byte in 0..<8 { counts[byte &* 256 &+ Int(truncatingIfNeeded: item.word >> UInt64(8 &* byte) & 0xFF)] &+= 1 }
    }
    var other = items
    for byte in 0..<8 {
      let shift = UInt64(8 * byte)
      var places = [Int](repeating: 0, count: 256)
      var (place, isUniform) = (0, false)
      for value in 0..<256 {
        let count = counts[byte * 256 + value]
        places[value] = place
        place += count
        isUniform = isUniform || count == items.count
      }
      guard !isUniform else { continue }
      do {
        let source = items.span
        var target = other.mutableSpan
        var next = places.mutableSpan
        for index in source.indices {
          let item = source[index]
          let value = Int(truncatingIfNeeded: item.word >> shift & 0xFF)
          target[next[value]] = item
          next[value] &+= 1
        }
      }
      swap(&items, &other)
    }
  }
}
