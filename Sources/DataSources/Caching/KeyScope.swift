/// The keys that a call reads or changes, as far as a cache can tell.
package enum KeyScope: Hashable, Sendable {
  case key(EntryKey)
  case keys([EntryKey])
  /// Every key: also that of a call that has no key, or a range of keys.
  case all
}

extension KeyScope {
  /// Returns the numbers, below a count, that stand for the keys of the scope, in order and each once. Several keys may
  /// have one number.
  /// - Parameter count: A power of two.
  func slots(below count: Int) -> [Int] {
    switch self {
    case .key(let key): [key.slot(below: count)]
    case .keys(let keys): Set(keys.map { $0.slot(below: count) }).sorted()
    case .all: Array(0..<count)
    }
  }
}

extension EntryKey {
  /// Returns a number below a count, which is a power of two. It depends on the process.
  func slot(below count: Int) -> Int {
    hashValue & (count - 1)
  }
}

extension KeyValueAddress {
  /// What a call that reads or writes one value or list reads or writes.
  var scope: KeyScope {
    switch self {
    case .key(let key), .all(let key): .key(EntryKey(key))
    case .keys(let keys, _): .keys(keys.map { EntryKey($0) })
    default: .all
    }
  }

  /// What a deletion deletes.
  var deletionScope: KeyScope {
    if case .all = self { .all } else { scope }
  }
}
