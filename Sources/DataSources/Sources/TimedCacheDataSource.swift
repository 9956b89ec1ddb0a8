/// A source that remembers what another one gave, for a time. What is remembered is got without asking the other; what is put and
/// deleted goes through at once, and what it may have changed is forgotten.
///
/// Single values and lists of keys are remembered. Calls for several ids, everything or pages, and queries without a key always
/// reach the other source. O(1) beyond what the other one does.
public struct TimedCacheDataSource<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  private let source: AnyDataSource<T>
  private let memory: TimedMemory<T>

  /// - Parameters:
  ///   - lifetime: how long a value is remembered.
  ///   - limit: how many values and lists are remembered at most; at least 1.
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
    precondition(limit > 0, "a cache of no entries")
    self.source = AnyDataSource(source)
    memory = TimedMemory(lifetime: lifetime, limit: limit, now: now)
  }

  public func get(_ query: any Query) async throws -> T {
    guard let key = query.keyValueAddress.singleKey else { return try await source.get(query) }
    let (remembered, epoch) = memory.value(of: key)
    if let value = remembered?.single { return value }
    let value = try await source.get(query)
    memory.remember(.single(value), of: key, since: epoch)
    return value
  }

  public func getAll(_ query: any Query) async throws -> [T] {
    guard case .key(let key) = query.keyValueAddress else { return try await source.getAll(query) }
    let (remembered, epoch) = memory.value(of: key)
    if let list = remembered?.list { return list }
    let list = try await source.getAll(query)
    memory.remember(.list(list), of: key, since: epoch)
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

  /// Forgets everything that is remembered.
  public func forgetAll() {
    memory.beginChange(nil)
    memory.endChange()
  }

  /// Runs a change and forgets what it may change, when it fails too: nobody knows how far it came.
  private func changing<R: Sendable>(_ keys: [String]?, _ change: () async throws -> R) async throws -> R {
    memory.beginChange(keys)
    defer { memory.endChange() }
    return try await change()
  }

}

extension KeyValueAddress {
  /// The key of one value; nil when there is none or are several.
  fileprivate var singleKey: String? {
    switch self {
    case .key(let key), .all(let key): key
    case .keys, .offset, .after, .nothing: nil
    }
  }

  /// The keys that a put may change; nil for all.
  fileprivate var putKeys: [String]? {
    if case .keys(let keys, _) = self { keys } else { singleKey.map { [$0] } }
  }

  /// The keys that a delete may change; nil for all.
  fileprivate var deletedKeys: [String]? {
    if case .all = self { nil } else { putKeys }
  }
}
