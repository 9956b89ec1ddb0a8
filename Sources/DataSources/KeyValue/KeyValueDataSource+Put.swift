extension KeyValueDataSource {
  @discardableResult
  public func put(_ value: T?, in query: any Query) async throws -> T {
    switch query.keyValueAddress {
    case .key(let key), .all(let key):
      guard let value else { throw DataSourceError(.illegalArgument, "a put without a value") }
      try await store([KeyValueEntry(key: checked(key), value: .single(value))])
      return value
    case .keys, .offset, .after, .nothing:
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
    case .offset, .after, .nothing:
      throw query.notSupported(.putAll, self)
    }
    return array
  }
}
