import Wire

/// Several operations in one step. A server that can't apply them rejects these calls with `unknownOperation`.
extension RemoteStore {
  /// Executes the operations of a batch in one step: all of them or none.
  ///
  /// All changes have one revision, and are one commit for watches and for durability. A batch has up to 65,536
  /// operations by default. Its updates are subject to the server's limits on the time and memory of a find, which
  /// many of them reach sooner.
  /// - Returns: The revision of what was written; nil if nothing was, because the batch has only checks, deletes what
  ///   is absent, or updates documents to what they are.
  /// - Throws: `conditionFailed` if a condition does not hold; `notFound` if an update finds no entry;
  ///   `illegalArgument` if an update can't be made in its entry, or there are more operations than the server takes in
  ///   one call; `queryStopped` if the updates need more time or memory than the server allows; and
  ///   `tooManyRequests`, which is safe to retry, if others write the updated entries so often that the server gives
  ///   up, or if there are too many unfinished finds. The message names the operation that failed, counted from 1, and
  ///   its key, if it is one operation's fault. Nothing is written then.
  @discardableResult
  public func apply(_ batch: WriteBatch) async throws(LarderError) -> UInt64? {
    let revision = try await call(ApplyRequest(batch)).number
    return revision == 0 ? nil : revision
  }

  /// Executes the operations that the closure adds to a batch in one step; see `apply(_:)`.
  ///
  ///     try await accounts.apply { batch in
  ///       batch.check("exchange", hasRevision: exchange.revision)
  ///       try batch.increment("balance", of: "alice", by: -10)
  ///       try batch.increment("balance", of: "bob", by: 10)
  ///     }
  /// - Throws: What the closure throws, before anything is sent; and the errors of `apply(_:)`.
  @discardableResult
  public func apply(_ addOperations: (inout WriteBatch) throws -> Void) async throws -> UInt64? {
    var batch = WriteBatch()
    try addOperations(&batch)
    return try await apply(batch)
  }
}
