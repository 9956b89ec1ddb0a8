import Documents

/// A source that keeps entries by key.
///
/// A type that implements the few requirements below is a get, put and delete data source that answers every key-value
/// query as all other key-value sources do; this file defines what the queries mean, once. Every requirement is atomic
/// to all users of the source. The keys that a requirement receives have 1 to 4,096 bytes and compare by their bytes.
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
}

extension KeyValueDataSource {
  public func entry(of key: String) async throws -> StoredValue<T>? {
    try await entries(of: [key])[0]
  }

  /// Returns the keys of all entries, in the order of their bytes. Reads the entries, too.
  public func keys() async throws -> [String] {
    try await entries(in: .all).map(\.key)
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

  /// Does what `get` does for key-value queries. A source that has a shortcut, or that answers other queries too, calls
  /// it from its own `get`.
  @usableFromInline package func keyValueGet(_ query: any Query) async throws -> T {
    switch query.keyValueAddress {
    case .key(let key), .all(let key):
      guard let value = try await entry(of: checked(key))?.single else { throw notFound(key) }
      return value
    case .documents(let query):
      return try await first(query)
    case .keys, .offset, .after, .nothing:
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
      guard offset >= 0, limit >= 0 else {
        throw DataSourceError(.illegalArgument, "offset \(offset) and limit \(limit): neither may be negative")
      }
      return try await elements(in: .offset(offset, limit: limit))
    case .after(let key, let limit):
      guard limit >= 0 else { throw DataSourceError(.illegalArgument, "limit \(limit): it must not be negative") }
      // What comes after no key at all is what comes after the empty key.
      let cursor = try key.flatMap { $0.isEmpty ? nil : try checked($0) }
      return try await elements(in: .after(cursor, limit: limit))
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
    DataSourceError(.notFound, "there is nothing of that kind under \(key.debugDescription)")
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
    case .keys, .offset, .after, .documents, .nothing:
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
    case .offset, .after, .documents, .nothing:
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
    case .offset, .after, .documents, .nothing: throw query.notSupported(operation, self)
    }
  }
}

// MARK: - Keys

/// The maximum length of a key in a key-value source, in bytes. The server's stores have the same limit.
let maxKeyBytes = 4_096

extension KeyValueDataSource {
  private func checked(_ key: String) throws -> String {
    let count = key.utf8.count
    guard count > 0 else { throw DataSourceError(.illegalArgument, "the key is empty") }
    guard count <= maxKeyBytes else {
      throw DataSourceError(.illegalArgument, "the key has \(count) bytes; the limit is \(maxKeyBytes)")
    }
    return key
  }

  private func checked(_ keys: [String]) throws -> [String] {
    for key in keys { _ = try checked(key) }
    return keys
  }
}
