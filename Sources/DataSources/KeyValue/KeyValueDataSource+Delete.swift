extension KeyValueDataSource {
  public func delete(_ query: any Query) async throws {
    try await remove(query, .delete)
  }

  public func deleteAll(_ query: any Query) async throws {
    try await remove(query, .deleteAll)
  }

  /// What `delete` and `deleteAll` do, for a source that answers other queries too.
  package func remove(_ query: any Query, _ operation: DataSourceOperation) async throws {
    switch query.keyValueAddress {
    case .key(let key): try await remove([checked(key)])
    case .keys(let keys, _): if !keys.isEmpty { try await remove(checked(keys)) }
    case .all: try await removeAll()
    case .offset, .after, .nothing: throw query.notSupported(operation, self)
    }
  }
}
