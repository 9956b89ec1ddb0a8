import Documents

/// A source that keeps entries by key.
///
/// A type that implements the few requirements below is a get, put and delete data source that answers every key-value
/// query as all other key-value sources do; this file defines what the queries mean, once. Every requirement is atomic
/// to all users of the source. Keys have 1 to 4,096 bytes and compare by their bytes. Calls with queries and ids pass
/// only such keys to the requirements; the sources of this package check them if they are called directly, too.
public protocol KeyValueDataSource<T>: GetDataSource, PutDataSource, DeleteDataSource {
  associatedtype T

  /// Returns the value or list under a key; nil if there is none.
  func entry(of key: String) async throws -> StoredValue<T>?

  /// Returns the value or list under each of the keys, in the order of the keys, all of the same point in time.
  func entries(of keys: [String]) async throws -> [StoredValue<T>?]

  /// Returns the entries of a range, in the order of their keys' bytes, all of the same point in time.
  func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>]

  /// Returns the entries whose single values a query finds, in the order of the query, all of the same point in time.
  ///
  /// The default reads all entries and encodes each single value as JSON. A source that keeps JSON implements it to
  /// look at the bytes.
  /// - Parameter query: A query without fields, whose numbers are not negative.
  /// - Throws: `SelectorError` if the query can't be evaluated; `DataSourceError.queryNotSupported` if values can't be
  ///   encoded as JSON.
  func entries(matching query: DocumentQuery) async throws -> [KeyValueEntry<T>]

  /// Writes all of the entries or, if it throws, none. Each replaces the entry under its key, of either kind. If a key
  /// occurs more than once, its last entry wins.
  func store(_ entries: [KeyValueEntry<T>]) async throws

  /// Removes the entries under the keys, if there are any.
  func remove(_ keys: [String]) async throws

  /// Removes every entry of this source, and of no other.
  func removeAll() async throws

  // The requirements below have defaults.

  /// Returns the keys that begin with a prefix, in the order of their bytes. The default reads the entries, too.
  func keys(prefix: String) async throws -> [String]

  /// Returns the number of entries, single values and lists, whose keys begin with a prefix. The default counts the
  /// keys.
  func count(prefix: String) async throws -> Int

  /// Removes the entries whose keys begin with a prefix. The default finds the keys and removes them in two steps:
  /// entries that others add meanwhile remain.
  func removeAll(prefix: String) async throws

  /// Returns the entry under each of the keys, in the order of the keys, all of the same point in time; nil where there
  /// is none. The default returns entries without revisions.
  func versionedEntries(of keys: [String]) async throws -> [KeyValueEntry<T>?]

  /// Executes the operations of a batch in one step: all of them or none. `KeyValueDataSource.apply` explains it. The
  /// default throws `notImplemented`.
  /// - Parameter batch: At least one operation.
  func commit(_ batch: KeyValueBatch<T>) async throws -> UInt64?

  /// Begins to watch the source. When the call returns, the watch has begun: the result has every change from then on,
  /// each once, in their order.
  ///
  ///     for try await change in try await library.changes(prefix: "book:") {
  ///       switch change {
  ///       case .put(let entry): show(entry.key, entry.value)
  ///       case .delete(let key): hide(key)
  ///       case .deleteAll: hideAll()
  ///       }
  ///     }
  ///
  /// A source in memory reports the changes that are made through it and its copies, a remote source those that any
  /// client makes, whatever happens to the connection meanwhile. An expiration is not a change: the entry that was put
  /// says when it expires. Releasing the sequence ends the watch.
  /// - Parameter prefix: Leaves out changes of keys that don't begin with it.
  /// - Throws: `DataSourceError.notImplemented` if the source can't be watched, as by default. The sequence throws
  ///   `DataSourceError.changesLost` if its consumer was too slow or the server was restarted: read everything then, and
  ///   watch again.
  func changes(prefix: String) async throws -> KeyValueChanges<T>
}

extension KeyValueDataSource {
  public func entry(of key: String) async throws -> StoredValue<T>? {
    try await entries(of: [key])[0]
  }

  public func keys(prefix: String) async throws -> [String] {
    try await entries(in: .prefix(prefix)).map(\.key)
  }

  public func count(prefix: String) async throws -> Int {
    try await keys(prefix: prefix).count
  }

  public func removeAll(prefix: String) async throws {
    let keys = try await keys(prefix: prefix)
    if !keys.isEmpty { try await remove(keys) }
  }

  public func versionedEntries(of keys: [String]) async throws -> [KeyValueEntry<T>?] {
    zip(keys, try await entries(of: keys)).map { key, value in value.map { KeyValueEntry(key: key, value: $0) } }
  }

  public func commit(_ batch: KeyValueBatch<T>) async throws -> UInt64? {
    throw DataSourceError(
      .notImplemented, "\(Self.self) has no revisions, and so no batches, conditions, updates or times to live")
  }

  public func changes(prefix: String) async throws -> KeyValueChanges<T> {
    throw DataSourceError(.notImplemented, "\(Self.self) can't be watched")
  }
}

extension KeyValueDataSource {
  /// Returns the keys of all entries, in the order of their bytes.
  public func keys() async throws -> [String] { try await keys(prefix: "") }

  /// Returns the number of entries, single values and lists.
  public func count() async throws -> Int { try await count(prefix: "") }

  /// Begins to watch all entries of the source; see `changes(prefix:)`.
  public func changes() async throws -> KeyValueChanges<T> { try await changes(prefix: "") }

  /// Returns whether an id has a value or a list.
  public func contains<K: StableKey>(_ id: K) async throws -> Bool {
    try await entry(of: checked(id.stableKey)) != nil
  }
}

// MARK: - Get

extension KeyValueDataSource {
  public func get(_ query: any Query) async throws -> T {
    try await keyValueGet(query)
  }

  public func getAll(_ query: any Query) async throws -> [T] {
    try await keyValueGetAll(query)
  }

  /// Returns the value that a query addresses; nil if there is none.
  public func getIfPresent(_ query: any Query) async throws -> T? {
    switch query.keyValueAddress {
    case .key(let key), .all(let key): return try await entry(of: checked(key))?.single
    case .keys, .prefix, .offset, .after, .documents, .nothing:
      do { return try await get(query) } catch DataSourceError.notFound { return nil }
    }
  }

  /// Returns the single value of an id; nil if there is none.
  public func getIfPresent<K: StableKey>(_ id: K) async throws -> T? {
    try await entry(of: checked(id.stableKey))?.single
  }

  /// Does what `get` does for key-value queries. A source that has a shortcut, or that answers other queries too, calls
  /// it from its own `get`.
  @usableFromInline package func keyValueGet(_ query: any Query) async throws -> T {
    switch query.keyValueAddress {
    case .key(let key), .all(let key):
      guard let value = try await entry(of: checked(key))?.single else { throw notFound(key) }
      return value
    case .documents(let query):
      return try await first(query)
    case .keys, .prefix, .offset, .after, .nothing:
      throw query.notSupported(.get, self)
    }
  }

  /// Does what `getAll` does for key-value queries. A source that answers other queries too calls it from its own
  /// `getAll`.
  package func keyValueGetAll(_ query: any Query) async throws -> [T] {
    switch query.keyValueAddress {
    case .key(let key):
      guard let list = try await entry(of: checked(key))?.list else { throw notFound(key) }
      return list
    case .keys(let keys, let missing):
      return try await singleValues(of: keys, missing)
    case .all:
      return try await elements(in: .all)
    case .offset(let offset, let limit):
      return try await elements(in: checked(.offset(offset, limit: limit)))
    case .after(let key, let limit, let prefix):
      return try await elements(in: checked(.after(key, limit: limit, prefix: prefix)))
    case .prefix(let prefix):
      return try await elements(in: .prefix(prefix))
    case .documents(let query):
      return try await values(query)
    case .nothing:
      throw query.notSupported(.getAll, self)
    }
  }

  /// Reads all values in one step.
  public func getEach(_ query: any Query) async throws -> [T?] {
    guard case .keys(let keys, _) = query.keyValueAddress else { throw query.notSupported(.getAll, self) }
    return keys.isEmpty ? [] : try await entries(of: checked(keys)).map { $0?.single }
  }

  private func elements(in range: EntryRange) async throws -> [T] {
    try await entries(in: range).flatMap(\.value.elements)
  }

  private func singleValues(of keys: [String], _ missing: MissingIds) async throws -> [T] {
    guard !keys.isEmpty else { return [] }
    var values: [T] = []
    values.reserveCapacity(keys.count)
    for (key, entry) in zip(keys, try await entries(of: checked(keys))) {
      if let value = entry?.single {
        values.append(value)
      } else if missing == .fail {
        throw notFound(key)
      }
    }
    return values
  }

  private func notFound(_ key: String) -> DataSourceError {
    DataSourceError(.notFound, "there is no entry of that kind under \(key.debugDescription)")
  }
}

// MARK: - Put

extension KeyValueDataSource {
  @discardableResult
  public func put(_ value: T?, in query: any Query) async throws -> T {
    switch query.keyValueAddress {
    case .key(let key), .all(let key):
      guard let value else { throw DataSourceError(.illegalArgument, "a put without a value") }
      try await store([KeyValueEntry(key: checked(key), value: .single(value))])
      return value
    case .keys, .prefix, .offset, .after, .documents, .nothing:
      throw query.notSupported(.put, self)
    }
  }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    switch query.keyValueAddress {
    case .key(let key), .all(let key):
      try await store([KeyValueEntry(key: checked(key), value: .list(array))])
    case .keys(let keys, _):
      guard keys.count == array.count else {
        throw DataSourceError(.illegalArgument, "\(array.count) values for \(keys.count) ids")
      }
      guard !keys.isEmpty else { return array }
      try await store(zip(checked(keys), array).map { KeyValueEntry(key: $0, value: .single($1)) })
    case .prefix, .offset, .after, .documents, .nothing:
      throw query.notSupported(.putAll, self)
    }
    return array
  }
}

// MARK: - Delete

extension KeyValueDataSource {
  public func delete(_ query: any Query) async throws {
    try await keyValueDelete(query, .delete)
  }

  public func deleteAll(_ query: any Query) async throws {
    try await keyValueDelete(query, .deleteAll)
  }

  /// Does what `delete` and `deleteAll` do for key-value queries. A source that answers other queries too calls it from
  /// its own methods.
  package func keyValueDelete(_ query: any Query, _ operation: DataSourceOperation) async throws {
    switch query.keyValueAddress {
    case .key(let key): try await remove([checked(key)])
    case .keys(let keys, _): if !keys.isEmpty { try await remove(checked(keys)) }
    case .all: try await removeAll()
    case .prefix(let prefix): try await removeAll(prefix: prefix)
    case .offset, .after, .documents, .nothing: throw query.notSupported(operation, self)
    }
  }
}

// MARK: - Keys

/// The maximum length of a key in a key-value source, in bytes. The server's stores have the same limit.
let maxKeyBytes = 4_096

extension KeyValueDataSource {
  /// Returns the cursor of a page, checked. What comes after no key at all is what comes after the empty key.
  func cursor(_ key: String?) throws -> String? {
    try key.flatMap { $0.isEmpty ? nil : try checked($0) }
  }

  package func checked(_ key: String) throws -> String {
    let count = key.utf8.count
    guard count > 0 else { throw DataSourceError(.illegalArgument, "the key is empty") }
    guard count <= maxKeyBytes else {
      throw DataSourceError(.illegalArgument, "the key has \(count) bytes; the limit is \(maxKeyBytes)")
    }
    return key
  }

  package func checked(_ keys: [String]) throws -> [String] {
    for key in keys { _ = try checked(key) }
    return keys
  }
}
