import Documents

/// Changes of more documents than the server changes in one step (65,536).
extension RemoteStore {
  /// Updates all documents that match a selector, in batches in the order of their `_id`s. Each batch is one step; other
  /// clients can see the state between two batches.
  ///
  ///     let changes = try await store.updateInBatches(where: .all, update) { print($0.lastID ?? "the last batch") }
  ///
  /// No document is updated twice by one call, even if it matches afterward. If a call fails, the batches before stay;
  /// another call continues after the last one if it gets the `lastID` that `onBatch` was called with.
  /// - Parameters:
  ///   - batchSize: The maximum number of documents in a batch, 1 to 65,536. A batch that exceeds a limit of the server is
  ///     made smaller.
  ///   - id: The `_id` after which to begin; nil to begin with the first document.
  ///   - dryRun: Whether to return what would be changed, without changing it.
  ///   - onBatch: Called after each batch.
  /// - Returns: The sum of all batches.
  /// - Throws: As `update(where:_:dryRun:)`. What earlier batches have changed stays.
  @discardableResult
  public func updateInBatches(
    where selector: Selector, _ update: DocumentUpdate, batchSize: Int = 50_000, after id: String? = nil,
    dryRun: Bool = false, onBatch: (ChangedBatch) -> Void = { _ in }
  ) async throws(LarderError) -> ChangedBatch {
    try await changeInBatches(selector, batchSize, after: id, onBatch) { (part) throws(LarderError) in
      try await self.update(where: part, update, dryRun: dryRun)
    }
  }

  /// Deletes all documents that match a selector, in batches; see `updateInBatches`.
  @discardableResult
  public func deleteInBatches(
    where selector: Selector, batchSize: Int = 50_000, after id: String? = nil, dryRun: Bool = false,
    onBatch: (ChangedBatch) -> Void = { _ in }
  ) async throws(LarderError) -> ChangedBatch {
    try await changeInBatches(selector, batchSize, after: id, onBatch) { (part) throws(LarderError) in
      try await self.delete(where: part, dryRun: dryRun)
    }
  }

  private func changeInBatches(
    _ selector: Selector, _ batchSize: Int, after id: String?, _ onBatch: (ChangedBatch) -> Void,
    _ change: (Selector) async throws(LarderError) -> DocumentChanges
  ) async throws(LarderError) -> ChangedBatch {
    var size = min(max(1, batchSize), 65_536)
    var sum = ChangedBatch(matched: 0, changed: 0, lastID: id)
    while true {
      let rest = sum.lastID.map { selector && .field("_id", .greater(.string($0))) } ?? selector
      let changes: DocumentChanges
      let lastID: String?
      do throws(LarderError) {
        lastID = try await self.lastID(ofFirst: size, rest)
        changes = try await change(lastID.map { rest && .field("_id", .lessOrEqual(.string($0))) } ?? rest)
      } catch {
        // Others may have added documents to the batch, or its documents are large.
        guard error.kind == .queryStopped, size > 1 else { throw error }
        size /= 2
        continue
      }
      let (matched, changed) = (
        sum.matched.addingReportingOverflow(changes.matched), sum.changed.addingReportingOverflow(changes.changed)
      )
      guard !matched.overflow, !changed.overflow else { throw .malformedReply }
      sum = ChangedBatch(matched: matched.partialValue, changed: changed.partialValue, lastID: lastID)
      onBatch(sum)
      if lastID == nil { return sum }
    }
  }

  /// Returns the `_id` of the last of the first documents that match; nil if there are not so many.
  private func lastID(ofFirst count: Int, _ selector: Selector) async throws(LarderError) -> String? {
    let query = DocumentQuery(selector, skip: count - 1, limit: 1, fields: ["_id"])
    return try await find(query).result().documents.first?.id
  }
}

/// How far a change in batches has come.
public struct ChangedBatch: Equatable, Sendable {
  /// The number of documents that matched so far.
  public let matched: UInt64
  /// The number of documents that were changed so far.
  public let changed: UInt64
  /// The `_id` after which the next batch begins; nil after the last batch.
  public let lastID: String?

  package init(matched: UInt64, changed: UInt64, lastID: String?) {
    self.matched = matched
    self.changed = changed
    self.lastID = lastID
  }
}
