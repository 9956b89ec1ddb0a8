import DataSources
import Documents
import Platform

/// The calls of a live cache's repository with one operation, as a key-value source.
struct LiveCacheSource<T: Sendable>: KeyValueDataSource {
  let main: RemoteDataSource<T>
  let feed: LiveCacheFeed
  /// `default` is `cacheSync`.
  let operation: RepositoryOperation

  private var cache: LiveCache { feed.cache }

  // MARK: Reading

  func entry(of key: String) async throws -> StoredValue<T>? {
    switch operation {
    case .main: return try await main.entry(of: key)
    case .cache: return cache.content(of: key).flatMap { CachedValue.of($0).value }
    case .mainSync: break
    case .cacheSync, .default:
      if let content = cache.trustedContent(of: key) { return CachedValue<T>.of(content).value }
    }
    let values = try await read([key]) { store throws(LarderError) in [try await store.get(key)] }
    return values[0]
  }

  func entries(of keys: [String]) async throws -> [StoredValue<T>?] {
    switch operation {
    case .main: return try await main.entries(of: keys)
    case .cache: return keys.map { key in cache.content(of: key).flatMap { CachedValue.of($0).value } }
    case .mainSync: break
    case .cacheSync, .default:
      if let contents = cache.trustedContents(of: keys) { return contents.map { CachedValue<T>.of($0).value } }
    }
    // All of them, because the store may have changed since the cache has got the others.
    return try await read(keys) { store throws(LarderError) in try await store.getMany(keys) }
  }

  /// Reads keys from the main source, and caches what it has for them.
  private func read(
    _ keys: [String], _ get: (RemoteStore) async throws(LarderError) -> [Entry?]
  ) async throws -> [StoredValue<T>?] {
    let isCached = keys.allSatisfy(cache.covers)
    if isCached { feed.start() }
    let time = monotonicNanoseconds()
    let track = cache.begin(keys)
    defer { cache.end(keys) }
    let entries: [Entry?]
    do { entries = try await main.call(get) } catch {
      guard operation == .cacheSync(fallback: true), !(error is CancellationError) else { throw error }
      return try keys.map { key in
        guard let content = cache.content(of: key) else {
          throw DataSourceError(.notFound, "the cache has no value to fall back to after: \(error)")
        }
        return CachedValue<T>.of(content).value
      }
    }
    return try zip(keys, entries).map { key, entry in
      let value = try entry.map { try main.decode($0.value, key) }
      if cache.covers(key) {
        cache.store(
          CacheSlots.Entry(
            revision: entry?.revision ?? 0, expiry: entry.expiry(since: time), content: CachedValue(value)),
          for: key, readOn: track)
      }
      return value
    }
  }

  func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] {
    try checkHasAll()
    return try await main.entries(in: range)
  }

  func entries(matching query: DocumentQuery) async throws -> [KeyValueEntry<T>] {
    try checkHasAll()
    return try await main.entries(matching: query)
  }

  private func checkHasAll() throws {
    if operation == .cache {
      throw DataSourceError(.queryNotSupported, "a live cache finds values only by key: read from the main source")
    }
  }

  // MARK: Writing

  func store(_ entries: [KeyValueEntry<T>]) async throws {
    if operation == .cache {
      throw DataSourceError(.notImplemented, "a live cache is read-only: write to the main source")
    }
    let writes = try entries.map { Write($0.key, try main.encode($0.value, $0.key)) }
    try await write(writes.map(\.key)) { keys, track in
      let revision = try await main.call { store throws(LarderError) in
        if writes.count == 1 { try await store.put(writes[0]) } else { try await store.putMany(writes) }
      }
      cache.didWrite(keys, revision: revision)
      for write in writes where cache.covers(write.key) {
        // What a reader of the main source would see.
        guard let value = try? main.decode(write.value, write.key) else { continue }
        let entry = CacheSlots.Entry(revision: revision, expiry: .max, content: CachedValue(value))
        cache.store(entry, for: write.key, readOn: track)
      }
    }
  }

  func remove(_ keys: [String]) async throws {
    guard operation != .cache else { return cache.didWrite(keys, revision: nil) }
    try await write(keys) { keys, _ in
      try await main.remove(keys)
      cache.didWrite(keys, revision: nil)
    }
  }

  /// Runs a write of keys. If it fails, it may have been executed.
  private func write(_ keys: [String], _ body: (_ keys: [String], _ track: UInt64) async throws -> Void) async throws {
    if keys.allSatisfy(cache.covers) { feed.start() }
    let track = cache.begin(keys)
    defer { cache.end(keys) }
    do { try await body(keys, track) } catch {
      cache.didWrite(keys, revision: nil)
      throw error
    }
  }

  func removeAll() async throws {
    defer { cache.didDeleteAll() }
    if operation != .cache { try await main.removeAll() }
  }
}

extension Entry? {
  /// When the entry of a reply expires, at the earliest, in nanoseconds of the monotonic clock; `.max` for never.
  /// - Parameter time: When the request was sent.
  fileprivate func expiry(since time: UInt64) -> UInt64 {
    guard let milliseconds = self?.expiresIn?.wholeMilliseconds else { return .max }
    // The server rounds the time that is left up.
    let (nanoseconds, overflow) = max(1, milliseconds).subtractingReportingOverflow(1).partialValue
      .multipliedReportingOverflow(by: 1_000_000)
    return overflow ? .max : time.addingReportingOverflow(nanoseconds).partialValue
  }
}
