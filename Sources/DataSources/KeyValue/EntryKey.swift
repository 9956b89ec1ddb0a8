/// A key as a key-value source compares it: by its UTF-8 bytes. Two strings are equal if they look the same (é as one
/// code point or as two); two keys are not.
@usableFromInline struct EntryKey: Sendable {
  @usableFromInline let text: String

  @inlinable init(_ text: String) {
    self.text = text
  }
}

extension EntryKey: Hashable {
  @usableFromInline static func == (a: EntryKey, b: EntryKey) -> Bool {
    let (a, b) = (a.text.utf8.span, b.text.utf8.span)
    guard a.count == b.count else { return false }
    for index in a.indices where a[index] != b[index] { return false }
    return true
  }

  @usableFromInline func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { unsafe hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}

extension EntryKey: Comparable {
  @usableFromInline static func < (a: EntryKey, b: EntryKey) -> Bool {
    a.text.utf8.lexicographicallyPrecedes(b.text.utf8)
  }
}

/// A range of a key-value source's entries, in the order of their keys' bytes.
public enum EntryRange: Hashable, Sendable {
  /// Every entry.
  case all
  /// At most `limit` entries from a position on. Neither is negative.
  case offset(Int, limit: Int)
  /// At most `limit` entries whose keys come after this key and begin with the prefix; nil starts at the first entry.
  /// The limit is not negative.
  case after(String?, limit: Int, prefix: String = "")

  /// Every entry whose key begins with the prefix.
  static func prefix(_ prefix: String) -> EntryRange {
    prefix.isEmpty ? .all : .after(nil, limit: .max, prefix: prefix)
  }
}

extension EntryRange {
  /// Returns the keys that belong to the range.
  /// - Parameter keys: Keys in order.
  /// - Complexity: O(log n).
  func slice(of keys: [EntryKey]) -> ArraySlice<EntryKey> {
    switch self {
    case .all: keys[...]
    case .offset(let offset, let limit): keys.dropFirst(offset).prefix(limit)
    case .after(let key, let limit, let prefix):
      keys[keys.start(after: key, prefix)..<keys.end(of: prefix)].prefix(limit)
    }
  }
}

extension EntryKey {
  func hasPrefix(_ prefix: String) -> Bool { text.utf8.starts(with: prefix.utf8) }
}

extension [EntryKey] {
  /// Returns the index of the first key that begins with a prefix and comes after a key, in keys that are in order; the
  /// end of the prefix if there is none. O(log n).
  fileprivate func start(after key: String?, _ prefix: String) -> Int {
    let (prefixKey, cursor) = (EntryKey(prefix), key.map(EntryKey.init))
    let start = firstIndex { key in key >= prefixKey && cursor.map { $0 < key } != false }
    return Swift.min(start, end(of: prefix))
  }

  /// Returns the index of the first key that comes after all that begin with a prefix. O(log n).
  fileprivate func end(of prefix: String) -> Int {
    let prefixKey = EntryKey(prefix)
    return firstIndex { $0 > prefixKey && !$0.hasPrefix(prefix) }
  }

  /// Returns the first index whose key fulfills a condition that all later keys fulfill, too.
  private func firstIndex(where isPast: (EntryKey) -> Bool) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = low + (high - low) / 2
      if isPast(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
