/// A key-value source in the process's own memory. Copies of it share their entries; what is got is a copy.
///
/// Calls for keys are O(1) a key. Those for everything or for pages are O(log n) and what they return; the first of them after a key
/// came or went is O(n log n).
public struct InMemoryDataSource<T: Sendable>: KeyValueDataSource {
  @usableFromInline let state = Locked(State())

  @inlinable public init() {}

  // Most calls are for one value that is there: they are compiled for the type of the value, and have no other function in between.
  @inlinable
  public func get(_ query: any Query) async throws -> T {
    if case .key(let key) = query.keyValueAddress, let value = single(EntryKey(key)) { return value }
    return try await value(of: query)
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
      range.slice(of: state.orderedKeys()).map { KeyValueEntry(key: $0.text, value: state.values[$0]!) }
    }
  }

  public func store(_ entries: [KeyValueEntry<T>]) async throws {
    state.withLock { state in
      for entry in entries where state.values.updateValue(entry.value, forKey: EntryKey(entry.key)) == nil {
        state.order = nil
      }
    }
  }

  public func remove(_ keys: [String]) async throws {
    state.withLock { state in
      for key in keys where state.values.removeValue(forKey: EntryKey(key)) != nil { state.order = nil }
    }
  }

  public func removeAll() async throws {
    // What was there is let go of after the lock.
    _ = state.withLock { state in
      let old = state
      state = State()
      return old
    }
  }

  @usableFromInline struct State: Sendable {
    @usableFromInline var values: [EntryKey: StoredValue<T>] = [:]
    /// The keys in order; nil since one came or went.
    @usableFromInline var order: [EntryKey]?

    @inlinable init() {}
    mutating func orderedKeys() -> [EntryKey] {
      if let order { return order }
      let keys = values.keys.sorted()
      order = keys
      return keys
    }
  }
}
