extension KeyValueDataSource {
  public func get(_ query: any Query) async throws -> T {
    try await value(of: query)
  }

  /// What `get` does, for a source that has a shorter way to what is there, or answers other queries too.
  @usableFromInline package func value(of query: any Query) async throws -> T {
    switch query.keyValueAddress {
    case .key(let key), .all(let key):
      guard let value = try await entry(of: checked(key))?.single else { throw notFound(key) }
      return value
    case .keys, .offset, .after, .nothing:
      throw query.notSupported(.get, self)
    }
  }

  public func getAll(_ query: any Query) async throws -> [T] {
    try await values(of: query)
  }

  /// What `getAll` does, for a source that answers other queries too.
  package func values(of query: any Query) async throws -> [T] {
    switch query.keyValueAddress {
    case .key(let key):
      guard let list = try await entry(of: checked(key))?.list else { throw notFound(key) }
      return list
    case .keys(let keys, let missing):
      return try await values(of: keys, missing)
    case .all:
      return try await elements(in: .all)
    case .offset(let offset, let limit):
      guard offset >= 0, limit >= 0 else {
        throw DataSourceError(.illegalArgument, "offset \(offset) and limit \(limit): neither may be negative")
      }
      return try await elements(in: .offset(offset, limit: limit))
    case .after(let key, let limit):
      guard limit >= 0 else { throw DataSourceError(.illegalArgument, "limit \(limit): it may not be negative") }
      // What comes after no key at all is what comes after the empty one.
      let cursor = try key.flatMap { $0.isEmpty ? nil : try checked($0) }
      return try await elements(in: .after(cursor, limit: limit))
    case .nothing:
      throw query.notSupported(.getAll, self)
    }
  }

  private func elements(in range: EntryRange) async throws -> [T] {
    try await entries(in: range).flatMap(\.value.elements)
  }

  private func values(of keys: [String], _ missing: MissingIds) async throws -> [T] {
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
    DataSourceError(.notFound, "nothing of that kind under \(key.debugDescription)")
  }
}
