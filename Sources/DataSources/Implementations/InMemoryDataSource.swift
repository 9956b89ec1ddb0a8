/// A key-value source in the memory of the process. Copies of the source share their entries; a value that a call
/// returns is a copy.
///
/// A call for keys is O(1) per key. A call for everything or for a page is O(log n) plus what it returns; the first one
/// after a key was added or removed is O(n log n).
public struct InMemoryDataSource<T: Sendable>: KeyValueDataSource {
  @usableFromInline let state = LockedValue(State())

  @inlinable public init() {}

  // Most calls are for one existing value. They are specialized for the type of the value, without another function in
  // between.
  @inlinable
  public func get(_ query: any Query) async throws -> T {
    if case .key(let key) = query.keyValueAddress, let value = single(EntryKey(key)) { return value }
    return try await keyValueGet(query)
  }

  @inlinable func single(_ key: EntryKey) -> T? {
    state.withLock { state in
      if case .single(let value)? = state.values[key] { value } else { nil }
    }
  }

  public func entry(of key: String) async throws -> StoredValue<T>? {
    state.withLock { $0.values[EntryKey(key)] }
  }

  public func entries(of keys: [String]) async throws -> [StoredValue<T>?] {
    state.withLock { state in keys.map { state.values[EntryKey($0)] } }
  }

  public func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] {
    state.withLock { state in
      range.slice(of: state.keysInOrder()).map { KeyValueEntry(key: $0.text, value: state.values[$0]!) }
    }
  }

  public func store(_ entries: [KeyValueEntry<T>]) async throws {
    state.withLock { state in
      for entry in entries where state.values.updateValue(entry.value, forKey: EntryKey(entry.key)) == nil {
        state.sortedKeys = nil
      }
    }
  }

  public func remove(_ keys: [String]) async throws {
    state.withLock { state in
      for key in keys where state.values.removeValue(forKey: EntryKey(key)) != nil { state.sortedKeys = nil }
    }
  }

  public func removeAll() async throws {
    // Release the old entries after the lock.
    _ = state.withLock { state in
      let old = state
      state = State()
      return old
    }
  }

  @usableFromInline struct State: Sendable {
    @usableFromInline var values: [EntryKey: StoredValue<T>] = [:]
    /// The keys in order; nil if a key has been added or removed since they were sorted.
    @usableFromInline var sortedKeys: [EntryKey]?

    @inlinable init() {}

    mutating func keysInOrder() -> [EntryKey] {
      if let sortedKeys { return sortedKeys }
      let keys = values.keys.sorted()
      sortedKeys = keys
      return keys
    }
  }
}
