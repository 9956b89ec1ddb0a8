import Platform
import Storage

/// The large values of all stores of a database that were used last.
///
/// Two generations: values are added to the younger one, which becomes the older one when it has half of the memory, and
/// a value of the older one that is used again returns to the younger one.
package final class ValueCache: Sendable {
  private struct Key: Hashable {
    let store: StoreID
    let value: ValueReference
  }

  private struct State {
    var younger: [Key: [UInt8]] = [:]
    var older: [Key: [UInt8]] = [:]
    /// The size of the values of the younger generation, in bytes.
    var byteCount = 0

    mutating func add(_ bytes: [UInt8], _ key: Key, limit: Int) {
      if let old = younger.updateValue(bytes, forKey: key) { byteCount -= old.count }
      byteCount += bytes.count
      guard byteCount > limit / 2 else { return }
      (older, younger, byteCount) = (younger, [:], 0)
    }
  }

  /// How much memory the values may take, in bytes, unless a single one takes more.
  private let limit: Int
  private let state = Lock(State())

  package init(byteCount limit: Int) { self.limit = limit }

  /// Whether a value of this size may be kept without leaving little room for others.
  func hasRoom(for byteCount: Int) -> Bool { byteCount <= limit / 8 }

  func keep(_ bytes: [UInt8], as value: ValueReference, of store: StoreID) {
    state.withLock { $0.add(bytes, Key(store: store, value: value), limit: limit) }
  }

  func bytes(of value: ValueReference, of store: StoreID) -> [UInt8]? {
    let key = Key(store: store, value: value)
    return state.withLock { state in
      if let bytes = state.younger[key] { return bytes }
      guard let bytes = state.older.removeValue(forKey: key) else { return nil }
      state.add(bytes, key, limit: limit)
      return bytes
    }
  }
}
