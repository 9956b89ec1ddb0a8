import Documents
import Wire

/// Changes of all documents that match a selector. A server that can't change documents rejects these calls with
/// `unknownOperation`.
extension RemoteStore {
  /// Updates all documents that match a selector, in one step.
  ///
  ///     let update = try DocumentUpdate(changes: [.set("isMinor", to: true)])
  ///     let changes = try await store.update(where: .field("age", .less(18)), update)
  ///
  /// An entry's expiry stays as it is. A document that begins to match while the server finds the others may be left as
  /// it is.
  /// - Parameters:
  ///   - update: The changes in each of the documents.
  ///   - dryRun: Whether to return what would be changed, without changing it.
  /// - Throws: `illegalArgument` if the selector exceeds a limit or needs a text index, or if the update can't be made
  ///   in one of the documents; `queryStopped` if more documents match than the server changes in one step, or finding
  ///   them exceeds another limit; `conditionFailed` if others write the documents too often meanwhile. Nothing is
  ///   changed then.
  @discardableResult
  public func update(
    where selector: Selector, _ update: DocumentUpdate, dryRun: Bool = false
  ) async throws(LarderError) -> DocumentChanges {
    try await change(ChangeDocumentsRequest(selector, update, isDryRun: dryRun, time: findTime))
  }

  /// Deletes all documents that match a selector, in one step.
  /// - Parameter dryRun: Whether to return what would be deleted, without deleting it.
  /// - Throws: As `update(where:_:dryRun:)`.
  @discardableResult
  public func delete(where selector: Selector, dryRun: Bool = false) async throws(LarderError) -> DocumentChanges {
    try await change(ChangeDocumentsRequest(selector, nil, isDryRun: dryRun, time: findTime))
  }

  private func change(_ request: ChangeDocumentsRequest) async throws(LarderError) -> DocumentChanges {
    let body = try await call(request, deadline: findDeadline).body
    guard let changes = unsafe MatchingChanges(body.span.bytes) else { throw .malformedReply }
    return DocumentChanges(changes)
  }
}

/// What a change of all documents that match a selector did.
public struct DocumentChanges: Sendable {
  /// The number of documents that match.
  public let matched: UInt64
  /// The number of documents that were changed or, in a dry run, would be. An update that makes no difference to a
  /// document does not change it.
  public let changed: UInt64
  /// The revision of the change; nil if nothing was changed.
  public let revision: UInt64?
  /// What finding and changing the documents took.
  public let statistics: DocumentStatistics

  fileprivate init(_ changes: MatchingChanges) {
    (matched, changed) = (changes.matched, changes.changed)
    revision = changes.revision == 0 ? nil : changes.revision
    statistics = DocumentStatistics(
      examinedDocumentCount: Int(clamping: changes.examinedDocuments),
      examinedKeyCount: Int(clamping: changes.examinedKeys), returnedDocumentCount: 0,
      duration: .nanoseconds(Int64(clamping: changes.nanoseconds)))
  }
}
