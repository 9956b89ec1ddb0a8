import DataSources

extension RemoteDataSource {
  public func commit(_ batch: KeyValueBatch<T>) async throws -> UInt64? {
    var writes = WriteBatch()
    for operation in batch.operations {
      switch operation {
      case .put(let key, let value, let condition, let lifetime):
        let write = Write(key, try encode(value, key), if: WriteCondition(condition), expiresIn: lifetime)
        if batch.operations.count == 1 {
          return try await call { store throws(LarderError) in try await store.put(write) }
        }
        writes.put(write)
      case .delete(let key, .revision(let revision)): writes.delete(key, ifRevision: revision)
      case .delete(let key, .absent): writes.checkAbsent(key)
      case .delete(let key, .always): writes.delete(key)
      case .check(let key, .revision(let revision)): writes.check(key, hasRevision: revision)
      case .check(let key, .absent): writes.checkAbsent(key)
      case .check(_, .always): break
      }
    }
    guard !writes.isEmpty else { return nil }
    return try await call { [writes] store throws(LarderError) in try await store.apply(writes) }
  }
}

extension WriteCondition {
  fileprivate init(_ condition: KeyValueCondition) {
    self =
      switch condition {
      case .always: .always
      case .absent: .absent
      case .revision(let revision): .revision(revision)
      }
  }
}
