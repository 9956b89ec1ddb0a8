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
  @usableFromInline let cache: TimedValues
  private let flights = SingleFlight<Flight, StoredValue<T>>()

  /// - Parameters:
  ///   - lifetime: The time after which a cached value expires.
  ///   - staleWhileRevalidate: The time during which a value that has expired is still returned, while a call in the
  ///     background replaces it: no caller waits, and none gets a value that is older than both times together. By
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

  // Most calls are for one cached value. They are specialized for the type of the value.
  @inlinable
  public func get(_ query: any Query) async throws -> T {
    if case .key(let key) = query.keyValueAddress, let content = cache.freshContent(of: EntryKey(key)),
      case .single(let value)? = CachedValue<T>.of(content).value
    {
      return value
    }
    return try await getThroughCache(query)
  }

  @usableFromInline func getThroughCache(_ query: any Query) async throws -> T {
    guard let key = query.keyValueAddress.singleKey else { return try await source.get(query) }
    if let value = cached(query, key, isList: false)?.single { return value }
    return try await shared(query, key, isList: false).single!
  }

  public func getAll(_ query: any Query) async throws -> [T] {
    guard case .key(let text) = query.keyValueAddress else { return try await source.getAll(query) }
    let key = EntryKey(text)
    if let list = cached(query, key, isList: true)?.list { return list }
    return try await shared(query, key, isList: true).list!
  }

  /// Returns the cached value or list of a key, if there is one of this kind. If it has expired, a call in the background
  /// begins to replace it.
  private func cached(_ query: any Query, _ key: EntryKey, isList: Bool) -> StoredValue<T>? {
    let found = cache.find(key)
    switch found {
    case .nothing: return nil
    case .fresh(let content), .stale(let content):
      guard let value = CachedValue<T>.of(content).value, value.isList == isList else { return nil }
      if case .stale = found { refresh(query, key, isList: isList) }
      return value
    }
  }

  /// Returns the cached value or list of a key, if it has not expired.
  private func fresh(_ key: EntryKey) -> StoredValue<T>? {
    cache.freshContent(of: key).flatMap { CachedValue<T>.of($0).value }
  }

  /// Returns the value of each id, or nil. The ids whose values aren't cached make one call to the other source.
  public func getEach(_ query: any Query) async throws -> [T?] {
    guard let ids = query as? any SeveralIds else { return try await source.getEach(query) }
    let keys = ids.keys
    let epochs = keys.map { cache.epoch(of: $0) }
    var values = keys.map { fresh($0)?.single }
    let missing = values.indices.filter { values[$0] == nil }
    guard !missing.isEmpty else { return values }
    for (index, value) in zip(missing, try await source.getEach(ids.at(missing))) {
      guard let value else { continue }
      values[index] = value
      cache.insert(CachedValue<T>(.single(value)), for: keys[index], readAt: epochs[index])
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
    if let value = fresh(key), value.isList == isList { return value }
    do {
      let value: StoredValue<T> = isList ? .list(try await source.getAll(query)) : .single(try await source.get(query))
      cache.insert(CachedValue(value), for: key, readAt: epoch)
      return value
    } catch let error as DataSourceError where error.kind == .notFound {
      cache.remove(key) { CachedValue<T>.of($0).value?.isList == isList }
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

extension StoredValue {
  fileprivate var isList: Bool { list != nil }
}
