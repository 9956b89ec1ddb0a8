/// A source that caches values of another source for a limited time. It returns cached values without a call to the
/// other source. It passes puts and deletions on immediately, and drops the cached values that they may have changed.
///
/// It caches single values and lists of keys; at its limit, it drops the least recently used one. Concurrent calls for a
/// value that isn't cached make one call to the other source. Calls for the list of several ids, everything or pages,
/// and queries without a key, always go to the other source. The cache adds O(1) to each call. Copies of the source
/// share their cached values.
public struct TimedCacheDataSource<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  /// A read that others may share.
  private struct Flight: Hashable {
    let key: EntryKey
    let isList: Bool
    /// A read that began before a change must not serve a reader that came after it.
    let epoch: KeyEpochs.Epoch
  }

  private let source: AnyDataSource<T>
  private let cache: TimedValues<T>
  private let flights = SingleFlight<Flight, StoredValue<T>>()

  /// - Parameters:
  ///   - lifetime: The time after which a cached value expires.
  ///   - staleWhileRevalidate: The time during which a value that has expired is still returned, while a call in the
  ///     background replaces it: nobody waits, and nobody gets a value that is older than both times together. By
  ///     default zero.
  ///   - limit: The maximum number of cached values and lists; at least 1.
  ///   - clock: What measures the times.
  public init(
    _ source: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>,
    lifetime: Duration, staleWhileRevalidate: Duration = .zero, limit: Int = 10_000,
    clock: some Clock<Duration> = ContinuousClock()
  ) {
    self.source = AnyDataSource(source)
    cache = TimedValues(lifetime: lifetime, extraTime: staleWhileRevalidate, limit: limit, clock: clock)
  }

  public func get(_ query: any Query) async throws -> T {
    guard let key = query.keyValueAddress.singleKey else { return try await source.get(query) }
    switch cache.value(of: key) {
    case .fresh(.single(let value)):
      return value
    case .stale(.single(let value)):
      refresh(query, key, isList: false)
      return value
    case .fresh, .stale, .nothing:
      return try await shared(query, key, isList: false).single!
    }
  }

  public func getAll(_ query: any Query) async throws -> [T] {
    guard case .key(let text) = query.keyValueAddress else { return try await source.getAll(query) }
    let key = EntryKey(text)
    switch cache.value(of: key) {
    case .fresh(.list(let list)):
      return list
    case .stale(.list(let list)):
      refresh(query, key, isList: true)
      return list
    case .fresh, .stale, .nothing:
      return try await shared(query, key, isList: true).list!
    }
  }

  /// Returns the value of each id, or nil. The ids whose values aren't cached make one call to the other source.
  public func getEach(_ query: any Query) async throws -> [T?] {
    guard let ids = query as? any SeveralIds else { return try await source.getEach(query) }
    let keys = ids.keys
    let epochs = keys.map { cache.epoch(of: $0) }
    var values = keys.map { cache.value(of: $0).fresh?.single }
    let missing = values.indices.filter { values[$0] == nil }
    guard !missing.isEmpty else { return values }
    for (index, value) in zip(missing, try await source.getEach(ids.at(missing))) {
      guard let value else { continue }
      values[index] = value
      cache.insert(.single(value), for: keys[index], readAt: epochs[index])
    }
    return values
  }

  /// Reads a value from the source, together with others that want the same.
  private func shared(_ query: any Query, _ key: EntryKey, isList: Bool) async throws -> StoredValue<T> {
    let epoch = cache.epoch(of: key)
    return try await flights.value(of: Flight(key: key, isList: isList, epoch: epoch)) {
      try await read(query, key, isList, epoch)
    }
  }

  /// Starts to read a value from the source, unless that is in progress. If it fails, the next reader tries again.
  private func refresh(_ query: any Query, _ key: EntryKey, isList: Bool) {
    let epoch = cache.epoch(of: key)
    flights.start(Flight(key: key, isList: isList, epoch: epoch)) { try await read(query, key, isList, epoch) }
  }

  private func read(
    _ query: any Query, _ key: EntryKey, _ isList: Bool, _ epoch: KeyEpochs.Epoch
  ) async throws -> StoredValue<T> {
    // A read that has ended just now may have been for the same value.
    if let value = cache.value(of: key).fresh, (value.list != nil) == isList { return value }
    do {
      let value: StoredValue<T> = isList ? .list(try await source.getAll(query)) : .single(try await source.get(query))
      cache.insert(value, for: key, readAt: epoch)
      return value
    } catch let error as DataSourceError where error.kind == .notFound {
      cache.remove(key, isList: isList)
      throw error
    }
  }

  @discardableResult
  public func put(_ value: T?, in query: any Query) async throws -> T {
    try await cache.changing(query.keyValueAddress.scope) { try await source.put(value, in: query) }
  }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    try await cache.changing(query.keyValueAddress.scope) { try await source.putAll(array, in: query) }
  }

  public func delete(_ query: any Query) async throws {
    try await cache.changing(query.keyValueAddress.deletionScope) { try await source.delete(query) }
  }

  public func deleteAll(_ query: any Query) async throws {
    try await cache.changing(query.keyValueAddress.deletionScope) { try await source.deleteAll(query) }
  }

  /// Drops the cached value or list of an id, for callers that know that another process changed it. A read that is in
  /// progress isn't cached.
  public func forget<K: StableKey>(_ id: K) {
    cache.drop(.key(EntryKey(id.stableKey)))
  }

  /// Drops all cached values. Reads that are in progress aren't cached.
  public func forgetAll() {
    cache.drop(.all)
  }
}

extension KeyValueAddress {
  /// The key of one value; nil if the address has no key or several.
  fileprivate var singleKey: EntryKey? {
    if case .key(let key) = scope { key } else { nil }
  }
}

/// Values by key that expire: the content of a timed cache.
///
/// A value is only inserted if no change of its key was in progress at any time since the read of the value began.
/// Otherwise a slow reader could bring back a value that a writer has replaced meanwhile.
private final class TimedValues<T: Sendable>: Sendable {
  enum Found {
    case fresh(StoredValue<T>)
    /// A value that has expired, but may still be returned.
    case stale(StoredValue<T>)
    case nothing

    var fresh: StoredValue<T>? {
      if case .fresh(let value) = self { value } else { nil }
    }
  }

  private struct Timed {
    let value: StoredValue<T>
    /// When it expires: the time since the cache was created.
    let expiry: Duration
  }

  private struct State {
    var values: RecentValues<EntryKey, Timed>
    var epochs = KeyEpochs()
  }

  private let state: LockedValue<State>
  private let lifetime: Duration
  private let extraTime: Duration
  /// Returns the time since the cache was created.
  private let age: @Sendable () -> Duration

  init<C: Clock<Duration>>(lifetime: Duration, extraTime: Duration, limit: Int, clock: C) {
    self.lifetime = lifetime
    self.extraTime = extraTime
    state = LockedValue(State(values: RecentValues(limit: limit)))
    let start = clock.now
    age = { start.duration(to: clock.now) }
  }

  func value(of key: EntryKey) -> Found {
    let now = age()
    return state.withLock { state in
      guard let timed = state.values.value(of: key) else { return .nothing }
      if now < timed.expiry { return .fresh(timed.value) }
      if now < timed.expiry + extraTime { return .stale(timed.value) }
      state.values.remove(key)
      return .nothing
    }
  }

  /// Returns what the caller passes to `insert` after it has read the value elsewhere.
  func epoch(of key: EntryKey) -> KeyEpochs.Epoch {
    state.withLock { $0.epochs.epoch(of: .key(key)) }
  }

  func insert(_ value: StoredValue<T>, for key: EntryKey, readAt epoch: KeyEpochs.Epoch) {
    let expiry = age() + lifetime
    state.withLock { state in
      guard state.epochs.isCurrent(epoch, of: .key(key)) else { return }
      state.values.insert(Timed(value: value, expiry: expiry), for: key)
    }
  }

  /// Drops the value or the list of a key.
  func remove(_ key: EntryKey, isList: Bool) {
    state.withLock { state in
      if let cached = state.values.value(of: key)?.value, (cached.list != nil) == isList { state.values.remove(key) }
    }
  }

  /// Runs a change and drops the cached values that it may change, even if it fails: a failed change may have been
  /// executed in part. Until the change ends, none of them is inserted.
  func changing<R: Sendable>(_ scope: KeyScope, _ change: () async throws -> R) async throws -> R {
    drop(scope) { $0.beginChange(scope) }
    defer { state.withLock { $0.epochs.endChange(scope) } }
    return try await change()
  }

  func drop(_ scope: KeyScope) {
    drop(scope) { $0.advance(scope) }
  }

  private func drop(_ scope: KeyScope, _ count: (inout KeyEpochs) -> Void) {
    state.withLock { state in
      count(&state.epochs)
      switch scope {
      case .key(let key): state.values.remove(key)
      case .keys(let keys): for key in keys { state.values.remove(key) }
      case .all: state.values.removeAll()
      }
    }
  }
}
