import DataSources

/// A store of a server's as a key-value data source. A value that is cheap to copy and safe to use from any task.
///
/// It answers every query that a source in the process does, and in the same way: single values and lists are of different kinds, several
/// ids are read and written in one step, pages are made by the server. Each call is one exchange with the server, except that of an
/// `AllObjectsQuery`, whose answer comes in pieces.
///
/// A call fails with a `DataSourceError` where a local source's would, and for more ids than the server takes at once; with a
/// `LarderError` when the server can't be reached, has no such store or no room, which says whether the call is safe to be made again;
/// and with `CancellationError` when its task is cancelled.
public struct RemoteDataSource<T: Sendable>: KeyValueDataSource {
  /// The same store without the codec, for what data sources don't have: conditional writes, expiry, prefixes.
  public let store: RemoteStore
  let codec: any ValueCodec<T>
  private let client: LarderClient
  private let engine: String?

  init(_ client: LarderClient, _ name: String, _ codec: any ValueCodec<T>, creating engine: String?) {
    self.client = client
    self.codec = codec
    self.engine = engine
    store = client.store(name)
  }

  public func entry(of key: String) async throws -> StoredValue<T>? {
    try await call { store throws(LarderError) in try await store.get(key) }.map { try decoded($0.value, key) }
  }

  public func entries(of keys: [String]) async throws -> [StoredValue<T>?] {
    let entries = try await call { store throws(LarderError) in try await store.getMany(keys) }
    return try zip(keys, entries).map { key, entry in try entry.map { try decoded($0.value, key) } }
  }

  public func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] {
    switch range {
    case .all:
      var entries: [KeyValueEntry<T>] = []
      for try await entry in all { entries.append(entry) }
      return entries
    case .offset(let offset, let limit): return try await page(offset: offset, limit, after: nil)
    case .after(let key, let limit): return try await page(offset: 0, limit, after: key)
    }
  }

  private func page(offset: Int, _ limit: Int, after key: String?) async throws -> [KeyValueEntry<T>] {
    // More than the protocol can say is more than any store has.
    let limit = min(limit, Int(UInt32.max))
    let entries = try await call { store throws(LarderError) in
      try await store.page(offset: UInt64(offset), limit: limit, after: key)
    }
    return try entries.map(decoded)
  }

  public func store(_ entries: [KeyValueEntry<T>]) async throws {
    let writes = try entries.map { Write($0.key, try encoded($0.value, $0.key)) }
    _ = try await call { store throws(LarderError) in
      if writes.count == 1 { try await store.put(writes[0]) } else { try await store.putMany(writes) }
    }
  }

  public func remove(_ keys: [String]) async throws {
    _ = try await call { store throws(LarderError) in try await store.deleteMany(keys) }
  }

  public func removeAll() async throws {
    _ = try await call { store throws(LarderError) in try await store.deleteAll() }
  }

  /// Makes a call, and once more when there was no store and one was to be made.
  private func call<R: Sendable>(_ body: (RemoteStore) async throws(LarderError) -> R) async throws -> R {
    do { return try await body(store) } catch { try await prepareAnotherTry(after: error) }
    do { return try await body(store) } catch { throw error.ofDataSource }
  }

  /// Makes the store if that is what the call failed for; throws otherwise.
  func prepareAnotherTry(after error: LarderError) async throws {
    guard error.kind == .storeUnknown, let engine else { throw error.ofDataSource }
    do { try await client.createStore(store.name, engine: engine) } catch {
      // Somebody else was quicker.
      guard error.kind == .storeExists else { throw error.ofDataSource }
    }
  }
}
