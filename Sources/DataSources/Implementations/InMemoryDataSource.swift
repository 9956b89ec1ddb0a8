/// A key-value source in the memory of the process. Copies of the source share their entries; a value that a call
/// returns is a copy.
///
/// A call for keys is O(1) per key. A call for everything, for a prefix or for a page is O(log n) plus what it returns;
/// the first one after a key was added or removed is O(n log n). An entry with a time to live is gone when the time has
/// passed; its memory is free after the next write or call for several entries. A watch keeps up to 65,536 changes that
/// its consumer hasn't taken.
public struct InMemoryDataSource<T: Sendable>: KeyValueDataSource {
  @usableFromInline let state = LockedValue(InMemoryEntries<T>())
  /// Returns the time since the source was created.
  @usableFromInline let now: @Sendable () -> Duration

  /// - Parameter clock: What measures times to live.
  public init(clock: some Clock<Duration> = ContinuousClock()) {
    let start = clock.now
    now = { start.duration(to: clock.now) }
  }

  // Most calls are for one existing value. They are specialized for the type of the value, without another function in
  // between.
  @inlinable
  public func get(_ query: any Query) async throws -> T {
    if case .key(let key) = query.keyValueAddress, let value = single(EntryKey(key)) { return value }
    return try await keyValueGet(query)
  }

  @inlinable func single(_ key: EntryKey) -> T? {
    state.withLock { state in
      guard let slot = state.slots[key], case .single(let value) = slot.value else { return nil }
      if let expiry = slot.expiry, expiry <= now() { return nil }
      return value
    }
  }

  // MARK: - Reading

  public func entry(of key: String) async throws -> StoredValue<T>? {
    let key = EntryKey(try checked(key))
    return state.withLock { $0.slot(key, now)?.value }
  }

  public func entries(of keys: [String]) async throws -> [StoredValue<T>?] {
    let keys = try checked(keys)
    return state.withLock { state in keys.map { state.slot(EntryKey($0), now)?.value } }
  }

  public func versionedEntries(of keys: [String]) async throws -> [KeyValueEntry<T>?] {
    state.withLock { state in
      keys.map { key in state.slot(EntryKey(key), now)?.entry(of: key, now) }
    }
  }

  public func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] {
    let range = try checked(range)
    return state.withLock { state in
      range.slice(of: state.keysInOrder(now)).map { state.slots[$0]!.entry(of: $0.text, now) }
    }
  }

  public func keys(prefix: String) async throws -> [String] {
    state.withLock { EntryRange.prefix(prefix).slice(of: $0.keysInOrder(now)).map(\.text) }
  }

  public func count(prefix: String) async throws -> Int {
    state.withLock { EntryRange.prefix(prefix).slice(of: $0.keysInOrder(now)).count }
  }

  // MARK: - Writing

  public func store(_ entries: [KeyValueEntry<T>]) async throws {
    let entries = try checked(entries)
    write { state in
      for entry in entries { state.put(entry.value, EntryKey(entry.key), expiresIn: nil, now) }
    }
  }

  public func remove(_ keys: [String]) async throws {
    let keys = try checked(keys)
    write { state in
      for key in keys { state.remove(EntryKey(key)) }
    }
  }

  public func removeAll(prefix: String) async throws {
    guard !prefix.isEmpty else { return try await removeAll() }
    write { state in
      for key in EntryRange.prefix(prefix).slice(of: state.keysInOrder(now)) { state.remove(key) }
    }
  }

  public func removeAll() async throws {
    // The result keeps the old entries until after the lock.
    _ = write { $0.removeAll() }
  }

  public func commit(_ batch: KeyValueBatch<T>) async throws -> UInt64? {
    try write { state in
      for operation in batch.operations {
        let revision = state.slot(EntryKey(operation.key), now)?.revision
        try operation.condition.check(operation.key, hasRevision: revision)
      }
      for operation in batch.operations {
        switch operation {
        case .put(let key, let value, _, let lifetime): state.put(value, EntryKey(key), expiresIn: lifetime, now)
        case .delete(let key, _): state.remove(EntryKey(key))
        case .check: break
        }
      }
      return state.writtenRevision
    }
  }

  /// Makes changes that become visible together.
  private func write<R>(_ body: (inout InMemoryEntries<T>) throws -> R) rethrows -> R {
    let (result, overrun) = try state.withLock { state in
      state.beginWrite(now)
      let result = try body(&state)
      return (result, state.endWrite())
    }
    // Ending a watch calls back, which takes the lock.
    for watch in overrun {
      watch.finish(throwing: DataSourceError(.changesLost, "the consumer of the changes was too slow"))
    }
    return result
  }

  // MARK: - Watching

  public func changes(prefix: String) async throws -> KeyValueChanges<T> {
    let (stream, continuation) = AsyncThrowingStream.makeStream(
      of: KeyValueChange<T>.self, bufferingPolicy: .bufferingOldest(maxBufferedChanges))
    let id = state.withLock { $0.addWatch(prefix, continuation) }
    continuation.onTermination = { [state] _ in state.withLock { $0.removeWatch(id) } }
    return KeyValueChanges(stream)
  }
}

/// The number of changes that a watch keeps for its consumer: as many as a batch to a server may have.
private let maxBufferedChanges = 65_536
