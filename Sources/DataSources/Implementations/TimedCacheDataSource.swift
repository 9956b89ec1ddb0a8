/// A source that caches values of another source for a limited time. It returns cached values without a call to the
/// other source. It passes puts and deletions on immediately, and drops the cached values that they may have changed.
///
/// It caches single values and lists of keys. Calls for several ids, everything or pages, and queries without a key,
/// always go to the other source. The cache adds O(1) to each call.
public struct TimedCacheDataSource<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  private let source: AnyDataSource<T>
  private let cache: ExpiringValues<T>

  /// - Parameters:
  ///   - lifetime: The time after which a cached value expires.
  ///   - limit: The maximum number of cached values and lists; at least 1.
  public init(
    _ source: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>,
    lifetime: Duration, limit: Int = 10_000
  ) {
    self.init(source, lifetime: lifetime, limit: limit, now: { ContinuousClock.now })
  }

  init(
    _ source: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>,
    lifetime: Duration, limit: Int, now: @escaping @Sendable () -> ContinuousClock.Instant
  ) {
    precondition(limit > 0, "limit is not positive")
    self.source = AnyDataSource(source)
    cache = ExpiringValues(lifetime: lifetime, limit: limit, now: now)
  }

  public func get(_ query: any Query) async throws -> T {
    guard let key = query.keyValueAddress.singleKey else { return try await source.get(query) }
    let (cached, epoch) = cache.value(of: key)
    if let value = cached?.single { return value }
    let value = try await source.get(query)
    cache.insert(.single(value), for: key, readSince: epoch)
    return value
  }

  public func getAll(_ query: any Query) async throws -> [T] {
    guard case .key(let key) = query.keyValueAddress else { return try await source.getAll(query) }
    let (cached, epoch) = cache.value(of: key)
    if let list = cached?.list { return list }
    let list = try await source.getAll(query)
    cache.insert(.list(list), for: key, readSince: epoch)
    return list
  }

  @discardableResult
  public func put(_ value: T?, in query: any Query) async throws -> T {
    try await changing(query.keyValueAddress.putKeys) { try await source.put(value, in: query) }
  }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    try await changing(query.keyValueAddress.putKeys) { try await source.putAll(array, in: query) }
  }

  public func delete(_ query: any Query) async throws {
    try await changing(query.keyValueAddress.deletedKeys) { try await source.delete(query) }
  }

  public func deleteAll(_ query: any Query) async throws {
    try await changing(query.keyValueAddress.deletedKeys) { try await source.deleteAll(query) }
  }

  /// Drops all cached values.
  public func forgetAll() {
    cache.beginChange(nil)
    cache.endChange()
  }

  /// Runs a change and drops the cached values that it may change, even if it fails: a failed change may have been
  /// executed in part.
  private func changing<R: Sendable>(_ keys: [String]?, _ change: () async throws -> R) async throws -> R {
    cache.beginChange(keys)
    defer { cache.endChange() }
    return try await change()
  }
}

extension KeyValueAddress {
  /// The key of one value; nil if the address has no key or several.
  fileprivate var singleKey: String? {
    switch self {
    case .key(let key), .all(let key): key
    case .keys, .prefix, .offset, .after, .documents, .nothing: nil
    }
  }

  /// The keys that a put may change; nil for all.
  fileprivate var putKeys: [String]? {
    if case .keys(let keys, _) = self { keys } else { singleKey.map { [$0] } }
  }

  /// The keys that a deletion may change; nil for all.
  fileprivate var deletedKeys: [String]? {
    if case .all = self { nil } else { putKeys }
  }
}

/// Values by key that expire: the content of a timed cache.
///
/// A value is only inserted if no change was in progress at any time since the read of the value began. Otherwise a
/// slow reader could bring back a value that a writer has replaced meanwhile.
final class ExpiringValues<T: Sendable>: Sendable {
  typealias Instant = ContinuousClock.Instant

  private struct State {
    var values: [EntryKey: (value: StoredValue<T>, expiry: Instant)] = [:]
    /// The number of changes in progress.
    var changeCount = 0
    /// Grows whenever a change begins or ends.
    var epoch: UInt64 = 0
  }

  private let state = LockedValue(State())
  private let lifetime: Duration
  private let limit: Int
  private let now: @Sendable () -> Instant

  init(lifetime: Duration, limit: Int, now: @escaping @Sendable () -> Instant) {
    self.lifetime = lifetime
    self.limit = limit
    self.now = now
  }

  /// Returns the value of a key, if there is one, and the current epoch. The caller passes the epoch to `insert` after
  /// it has read the value elsewhere.
  func value(of key: String) -> (value: StoredValue<T>?, epoch: UInt64) {
    let now = now()
    let key = EntryKey(key)
    return state.withLock { state in
      guard let (value, expiry) = state.values[key] else { return (nil, state.epoch) }
      if now < expiry { return (value, state.epoch) }
      state.values[key] = nil
      return (nil, state.epoch)
    }
  }

  func insert(_ value: StoredValue<T>, for key: String, readSince epoch: UInt64) {
    let now = now()
    state.withLock { state in
      guard state.changeCount == 0, state.epoch == epoch else { return }
      if state.values.count >= limit { reserveSpace(in: &state, now) }
      state.values[EntryKey(key)] = (value, now + lifetime)
    }
  }

  /// Drops the values of keys, nil for all. Until the change ends, nothing is inserted.
  func beginChange(_ keys: [String]?) {
    state.withLock { state in
      state.changeCount += 1
      state.epoch += 1
      if let keys {
        for key in keys { state.values[EntryKey(key)] = nil }
      } else {
        state.values = [:]
      }
    }
  }

  func endChange() {
    state.withLock { state in
      state.changeCount -= 1
      state.epoch += 1
    }
  }

  /// Drops the expired values or, if they are less than half, all values. O(n), but at most once per n/2 insertions.
  private func reserveSpace(in state: inout State, _ now: Instant) {
    state.values = state.values.filter { now < $0.value.expiry }
    if state.values.count > limit / 2 { state.values = [:] }
  }
}
