import DataSources
import Documents

/// A store of a server as a key-value data source. A value that is cheap to copy and safe to use from any task.
///
/// It answers every query of a source in the process, and in the same way: single values and lists are different kinds,
/// several ids are read and written in one step, and the server makes the pages. Each call is one exchange with the
/// server; the replies to an `AllObjectsQuery` and a `SelectorQuery` may have several parts. The server evaluates a
/// `SelectorQuery`, and sends only the result; see `RemoteStore.find`.
///
/// A call throws a `DataSourceError` where a local source would, and for more ids than the server takes in one call; a
/// `LarderError` if the server can't be reached, has no such store or no room, which says whether the call is safe to
/// repeat; and a `CancellationError` if its task is cancelled.
public struct RemoteDataSource<T: Sendable>: KeyValueDataSource {
  /// The same store without the codec, for what data sources don't have: indexes, transactions, changes of all documents
  /// that match a selector.
  public let store: RemoteStore
  private let codec: any ValueCodec<T>
  private let client: LarderClient
  private let engine: String?

  init(_ client: LarderClient, _ name: String, _ codec: any ValueCodec<T>, creating engine: String?) {
    self.client = client
    self.codec = codec
    self.engine = engine
    store = client.store(name)
  }

  // MARK: Entries

  public func entry(of key: String) async throws -> StoredValue<T>? {
    let key = try checked(key)
    return try await call { store throws(LarderError) in try await store.get(key) }.map { try decode($0.value, key) }
  }

  public func entries(of keys: [String]) async throws -> [StoredValue<T>?] {
    let keys = try checked(keys)
    let entries = try await call { store throws(LarderError) in try await store.getMany(keys) }
    return try zip(keys, entries).map { key, entry in try entry.map { try decode($0.value, key) } }
  }

  public func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] {
    switch try checked(range) {
    case .all:
      var entries: [KeyValueEntry<T>] = []
      for try await entry in all { entries.append(entry) }
      return entries
    case .offset(let offset, let limit): return try await page(offset: offset, limit).map(decode)
    case .after(let key, let limit, let prefix): return try await page(limit, prefix, after: key).map(decode)
    }
  }

  private func page(
    offset: Int = 0, _ limit: Int, _ prefix: String = "", after key: String? = nil, keysOnly: Bool = false
  ) async throws -> [Entry] {
    // The maximum of the protocol is more than any store has.
    let limit = min(limit, Int(UInt32.max))
    return try await call { store throws(LarderError) in
      try await store.page(offset: UInt64(offset), limit: limit, prefix: prefix, after: key, keysOnly: keysOnly)
    }
  }

  public func versionedEntries(of keys: [String]) async throws -> [KeyValueEntry<T>?] {
    try await call { store throws(LarderError) in
      if keys.count == 1 { [try await store.get(keys[0])] } else { try await store.getMany(keys) }
    }.map { try $0.map(decode) }
  }

  public func keys(prefix: String) async throws -> [String] {
    try await page(.max, prefix, keysOnly: true).map(\.key)
  }

  public func count(prefix: String) async throws -> Int {
    Int(clamping: try await call { store throws(LarderError) in try await store.count(prefix: prefix) })
  }

  /// Returns whether an id has a value or a list, which the server doesn't send.
  public func contains<K: StableKey>(_ id: K) async throws -> Bool {
    // The first key that begins with a key is that key.
    let key = id.stableKey
    guard !key.isEmpty else { throw DataSourceError(.illegalArgument, "the key is empty") }
    return try await page(1, key, keysOnly: true).first?.key.utf8.elementsEqual(key.utf8) == true
  }

  public func entries(matching query: DocumentQuery) async throws -> [KeyValueEntry<T>] {
    let documents = try await call { store throws(LarderError) in try await store.find(query).result().documents }
    return try documents.map { document in
      let key = document.id!
      return KeyValueEntry(key: key, value: try decode(.single(document.text), key))
    }
  }

  public func store(_ entries: [KeyValueEntry<T>]) async throws {
    let writes = try checked(entries).map { Write($0.key, try encode($0.value, $0.key)) }
    _ = try await call { store throws(LarderError) in
      if writes.count == 1 { try await store.put(writes[0]) } else { try await store.putMany(writes) }
    }
  }

  public func remove(_ keys: [String]) async throws {
    let keys = try checked(keys)
    _ = try await call { store throws(LarderError) in try await store.deleteMany(keys) }
  }

  public func removeAll() async throws {
    _ = try await call { store throws(LarderError) in try await store.deleteAll() }
  }

  /// Removes the entries whose keys begin with a prefix, at most 10,000 in one step.
  public func removeAll(prefix: String) async throws {
    guard !prefix.isEmpty else { return try await removeAll() }
    while true {
      let keys = try await page(Self.maxKeysPerRemoval, prefix, keysOnly: true).map(\.key)
      if !keys.isEmpty { try await remove(keys) }
      if keys.count < Self.maxKeysPerRemoval { return }
    }
  }

  private static var maxKeysPerRemoval: Int { 10_000 }

  // MARK: Calls

  /// Makes a call, and repeats it if the store had to be created first.
  func call<R: Sendable>(_ body: (RemoteStore) async throws(LarderError) -> R) async throws -> R {
    do { return try await body(store) } catch { try await createStore(after: error) }
    do { return try await body(store) } catch { throw error.asDataSourceError }
  }

  /// Creates the store if a call failed because there is none, and an engine was given.
  /// - Throws: The error of the call otherwise.
  func createStore(after error: LarderError) async throws {
    guard error.kind == .storeUnknown, let engine else { throw error.asDataSourceError }
    do { try await client.createStore(store.name, engine: engine) } catch {
      // Another call has created it.
      guard error.kind == .storeExists else { throw error.asDataSourceError }
    }
  }

  // MARK: Values

  func encode(_ value: StoredValue<T>, _ key: String) throws -> EntryValue {
    try withCodecErrors(key) {
      switch value {
      case .single(let value): .single(try codec.encode(value))
      case .list(let values): .list(try values.map(codec.encode))
      }
    }
  }

  func decode(_ entry: Entry) throws -> KeyValueEntry<T> {
    KeyValueEntry(
      key: entry.key, value: try decode(entry.value, entry.key), revision: entry.revision, expiresIn: entry.expiresIn)
  }

  func decode(_ value: EntryValue, _ key: String) throws -> StoredValue<T> {
    try withCodecErrors(key) {
      switch value {
      case .single(let bytes): .single(try codec.decode(bytes))
      case .list(let elements): .list(try elements.map(codec.decode))
      }
    }
  }

  /// Converts the errors of the codec to `dataSerialization`.
  private func withCodecErrors<R>(_ key: String, _ body: () throws -> R) throws -> R {
    do { return try body() } catch let error as DataSourceError { throw error } catch {
      throw DataSourceError(
        .dataSerialization, "the value of \(key.debugDescription) can't be converted to or from \(T.self): \(error)")
    }
  }

  // MARK: Streaming

  /// All entries in the order of their keys' bytes, as the store was at one point in time, sent as they are consumed:
  /// for stores that are too large for memory. The sequence throws what the source's calls throw. See
  /// `RemoteStore.all`.
  public var all: All { All(source: self) }

  /// The entries of a source, streamed.
  public struct All: AsyncSequence, Sendable {
    public typealias Element = KeyValueEntry<T>
    private let source: RemoteDataSource

    fileprivate init(source: RemoteDataSource) {
      self.source = source
    }

    public func makeAsyncIterator() -> AsyncIterator {
      AsyncIterator(source: source)
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
      private let source: RemoteDataSource
      private var entries: RemoteStore.All.AsyncIterator
      /// Whether the store may still have to be created.
      private var isFirst = true

      fileprivate init(source: RemoteDataSource) {
        self.source = source
        entries = source.store.all().makeAsyncIterator()
      }

      public mutating func next() async throws -> KeyValueEntry<T>? {
        do {
          let entry = try await entries.next()
          isFirst = false
          return try entry.map(source.decode)
        } catch let error as LarderError {
          guard isFirst else { throw error.asDataSourceError }
          isFirst = false
          try await source.createStore(after: error)
          entries = source.store.all().makeAsyncIterator()
          return try await next()
        }
      }
    }
  }
}
