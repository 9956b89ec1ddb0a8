/// Records on their way into the order, each with the 8 bytes of its key that most likely decide where it belongs.
///
/// Lives while a map is loaded.
struct SortedKeys {
  struct Item {
    /// The key's bytes behind what all keys have in common, as a number that orders like them.
    var word: UInt64
    var handle: UInt32
  }

  /// From so many items on a radix sort is faster.
  private static let radixCount = 1_024

  let commonPrefix: Int
  private(set) var items: [Item] = []
  private var isSorted = true

  init(commonPrefix: Int) { self.commonPrefix = commonPrefix }

  @inline(__always)
  mutating func append(_ handle: UInt32, _ key: Key) {
    let word = Self.word(of: key, at: commonPrefix)
    if let last = items.last, last.word >= word { isSorted = false }
    items.append(Item(word: word, handle: handle))
  }

  /// Eight bytes of the key as a number that orders like them; zeroes stand for those behind its end.
  @inline(__always)
  private static func word(of key: Key, at offset: Int) -> UInt64 {
    let rest = key.count &- offset
    if rest >= 8 { return key.word64(at: offset).bigEndian }
    var word: UInt64 = 0
    for index in 0..<max(0, rest) { word |= UInt64(key.byte(at: offset &+ index)) << UInt64(56 &- 8 &* index) }
    return word
  }

  /// O(n) for each 8 bytes that keys have in common.
  mutating func sort(in arena: borrowing Arena) {
    guard !isSorted else { return }
    sort(0..<items.count, at: commonPrefix, in: arena)
  }

  /// Sorts items whose words are the bytes of their keys at that offset, and whose keys are the same ahead of it.
  private mutating func sort(_ range: Range<Int>, at offset: Int, in arena: borrowing Arena) {
    if range.count >= Self.radixCount {
      sortByWords(range)
    } else {
      items[range].sort { $0.word < $1.word }
    }
    var start = range.lowerBound
    while start < range.upperBound {
      var end = start + 1
      while end < range.upperBound, items[end].word == items[start].word { end += 1 }
      if end - start > 1 { sortEqual(start..<end, at: offset + 8, in: arena) }
      start = end
    }
  }

  /// Sorts items whose keys are the same ahead of that offset, but for zeroes at their ends.
  private mutating func sortEqual(_ range: Range<Int>, at offset: Int, in arena: borrowing Arena) {
    var longest = 0
    for index in range {
      let key = unsafe Record(at: arena.address(items[index].handle)).key
      items[index].word = Self.word(of: key, at: offset)
      longest = max(longest, key.count)
    }
    if longest > offset { return sort(range, at: offset, in: arena) }
    items[range].sort { left, right in
      unsafe Record(at: arena.address(left.handle)).key.count < Record(at: arena.address(right.handle)).key.count
    }
  }

  /// A radix sort, from the last byte to the first; bytes that are the same in all words are passed over.
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
