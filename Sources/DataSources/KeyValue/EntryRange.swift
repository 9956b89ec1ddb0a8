/// Some of a key-value source's entries, in the order of their keys' bytes.
public enum EntryRange: Hashable, Sendable {
  /// Every entry.
  case all
  /// At most `limit` entries from a position on. Neither is negative.
  case offset(Int, limit: Int)
  /// At most `limit` entries whose keys come after this one; nil for the first ones. The limit is not negative.
  case after(String?, limit: Int)
}

extension EntryRange {
  /// Which of the keys, which are in order, belong to the range. O(log n).
  func slice(of keys: [EntryKey]) -> ArraySlice<EntryKey> {
    switch self {
    case .all: keys[...]
    case .offset(let offset, let limit): keys.dropFirst(offset).prefix(limit)
    case .after(nil, let limit): keys.prefix(limit)
    case .after(let key?, let limit): keys[keys.firstIndex(after: EntryKey(key))...].prefix(limit)
    }
  }
}

extension [EntryKey] {
  /// Where the first key stands that comes after a key. The keys are in order. O(log n).
  fileprivate func firstIndex(after key: EntryKey) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = low + (high - low) / 2
      if key < self[middle] { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
