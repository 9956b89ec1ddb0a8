// Writes with conditions, with a time to live, and of several kinds in one step. All of them are batches to the source.

extension KeyValueDataSource {
  /// Returns the entry of an id, with its revision and the time until it expires; nil if there is none.
  public func entry<K: StableKey>(forId id: K) async throws -> KeyValueEntry<T>? {
    try await versionedEntries(of: [checked(id.stableKey)])[0]
  }

  // MARK: Batches

  /// Executes the operations that a closure adds to a batch in one step: all of them or none.
  ///
  ///     try await stock.apply { batch in
  ///       batch.check("prices", hasRevision: prices.revision)
  ///       batch.put(lamp, forId: lamp.id, if: .absent)
  ///       batch.delete("draft")
  ///     }
  /// - Returns: The revision of what was written; nil if nothing was, because the batch has only checks, or deletes what
  ///   is absent.
  /// - Throws: What the closure throws, and what `apply` of a batch throws.
  @discardableResult
  public func apply(_ addOperations: (inout KeyValueBatch<T>) throws -> Void) async throws -> UInt64? {
    var batch = KeyValueBatch<T>()
    try addOperations(&batch)
    return try await apply(batch)
  }

  /// Executes the operations of a batch in one step: all of them or none.
  /// - Returns: As `apply` of a closure.
  /// - Throws: `DataSourceError.conflict` if a condition doesn't hold; nothing is written then. `.notImplemented` if the
  ///   source can't do all that the batch has.
  @discardableResult
  public func apply(_ batch: KeyValueBatch<T>) async throws -> UInt64? {
    for operation in batch.operations {
      _ = try checked(operation.key)
      if case .put(_, _, _, let lifetime?) = operation, lifetime < .milliseconds(1) {
        throw DataSourceError(.illegalArgument, "a time to live of \(lifetime): it must be at least 1 ms")
      }
    }
    return batch.operations.isEmpty ? nil : try await commit(batch)
  }

  // MARK: One entry

  /// Puts the single value of an id, which expires after some time.
  /// - Parameter lifetime: At least 1 ms; nil for a value that doesn't expire.
  /// - Returns: The revision of the entry.
  @discardableResult
  public func put<K: StableKey>(_ value: T, forId id: K, expiresIn lifetime: Duration?) async throws -> UInt64 {
    try await put(value, forId: id, if: .always, expiresIn: lifetime)
  }

  /// Puts the single value of an id if a condition holds.
  ///
  ///     try await users.put(ada, forId: "ada", if: .absent)
  /// - Parameter lifetime: The time until the entry expires, at least 1 ms; nil for an entry that doesn't expire.
  /// - Returns: The revision of the entry.
  /// - Throws: `DataSourceError.conflict` if the condition doesn't hold; nothing is written then.
  @discardableResult
  public func put<K: StableKey>(
    _ value: T, forId id: K, if condition: KeyValueCondition, expiresIn lifetime: Duration? = nil
  ) async throws -> UInt64 {
    try await revision { $0.put(value, forId: id, if: condition, expiresIn: lifetime) }
  }

  /// Puts the list of an id, which expires after some time. As `put`.
  @discardableResult
  public func putAll<K: StableKey>(_ array: [T], forId id: K, expiresIn lifetime: Duration?) async throws -> UInt64 {
    try await putAll(array, forId: id, if: .always, expiresIn: lifetime)
  }

  /// Puts the list of an id if a condition holds. As `put`.
  @discardableResult
  public func putAll<K: StableKey>(
    _ array: [T], forId id: K, if condition: KeyValueCondition, expiresIn lifetime: Duration? = nil
  ) async throws -> UInt64 {
    try await revision { $0.putAll(array, forId: id, if: condition, expiresIn: lifetime) }
  }

  /// Deletes the value or list of an id if it has a revision.
  /// - Throws: `DataSourceError.conflict` if there is no entry, or it has another revision.
  public func delete<K: StableKey>(_ id: K, ifRevision revision: UInt64) async throws {
    try await apply { $0.delete(id, ifRevision: revision) }
  }

  /// Changes the single value of an id in one step: no other write comes between reading and writing.
  ///
  ///     let visits = try await counters.update("visits") { value in
  ///       value = (value ?? 0) + 1
  ///       return value!
  ///     }
  ///
  /// Nothing is locked. If the entry changes meanwhile, the closure is called again, with the new value, until nobody
  /// interferes or the task is cancelled. So it should do nothing but change the value. The entry keeps its time to
  /// live.
  /// - Parameter change: Receives the value, or nil if there is none. It deletes the value by setting it to nil.
  /// - Returns: What the last call of the closure returned.
  /// - Throws: What the closure throws; nothing is written then. `.notImplemented` for a source without revisions.
  @discardableResult
  public func update<K: StableKey, R>(_ id: K, _ change: (inout T?) throws -> R) async throws -> R {
    let key = try checked(id.stableKey)
    while true {
      let entry = try await versionedEntries(of: [key])[0]
      let old = entry?.value.single
      var value = old
      let result = try change(&value)
      guard value != nil || old != nil else { return result }
      if try await replace(entry, key, with: value) { return result }
      try Task.checkCancellation()
    }
  }

  /// Writes or deletes a value unless its entry has changed.
  /// - Returns: Whether that was done.
  private func replace(_ entry: KeyValueEntry<T>?, _ key: String, with value: T?) async throws -> Bool {
    guard entry?.revision != 0 else {
      throw DataSourceError(.notImplemented, "\(Self.self) doesn't support revisions, which an update requires")
    }
    var batch = KeyValueBatch<T>()
    if let value {
      let lifetime = entry?.expiresIn.map { max($0, .milliseconds(1)) }
      batch.put(value, forId: key, if: entry.map { .revision($0.revision) } ?? .absent, expiresIn: lifetime)
    } else {
      batch.delete(key, ifRevision: entry?.revision)
    }
    do { _ = try await commit(batch) } catch let error as DataSourceError where error.kind == .conflict {
      return false
    }
    return true
  }

  /// Applies a batch of one put, and returns its revision.
  private func revision(_ addPut: (inout KeyValueBatch<T>) -> Void) async throws -> UInt64 {
    guard let revision = try await apply(addPut) else {
      throw DataSourceError(.failed, "\(Self.self) returned no revision of a put")
    }
    return revision
  }
}
