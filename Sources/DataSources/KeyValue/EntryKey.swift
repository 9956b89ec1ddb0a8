/// A key as a key-value source compares it: by its UTF-8 bytes. Two strings are equal if they look the same (é as one
/// code point or as two); two keys are not.
@usableFromInline package struct EntryKey: Sendable {
  @usableFromInline package let text: String

  @inlinable package init(_ text: String) {
    self.text = text
  }
}

extension EntryKey: Hashable {
  @usableFromInline package static func == (a: EntryKey, b: EntryKey) -> Bool {
    let (a, b) = (a.text.utf8.span, b.text.utf8.span)
    guard a.count == b.count else { return false }
    for index in a.indices where a[index] != b[index] { return false }
    return true
  }

  @usableFromInline package func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { unsafe hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}

extension EntryKey: Comparable {
  @usableFromInline package static func < (a: EntryKey, b: EntryKey) -> Bool {
    a.text.utf8.lexicographicallyPrecedes(b.text.utf8)
  }
}

/// A range of a key-value source's entries, in the order of their keys' bytes.
public enum EntryRange: Hashable, Sendable {
  /// Every entry.
  case all
  /// At most `limit` entries from a position on. Neither is negative.
  case offset(Int, limit: Int)
  /// At most `limit` entries whose keys come after this key; nil starts at the first entry. The limit is not negative.
  case after(String?, limit: Int)
}

extension EntryRange {
  /// Returns the keys that belong to the range.
  /// - Parameter keys: Keys in order.
  /// - Complexity: O(log n).
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
  /// Returns the index of the first key that comes after a key, in keys that are in order. O(log n).
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
