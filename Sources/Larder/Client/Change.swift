import Wire

/// The changes that one request made to a store. They became visible together.
public struct Commit: Hashable, Sendable {
  /// The revision of the request. To continue a watch after this commit, watch from the next revision.
  public let revision: UInt64
  /// The changes that the watch covers, in the order of the request.
  public let changes: [Change]
}

/// One change of a store.
public enum Change: Hashable, Sendable {
  /// An entry was written. It has the commit's revision; in a watch of keys only, its value is empty.
  case put(Entry)
  case delete(key: String)
  /// All entries of the store were deleted.
  case deleteAll
}

extension Change {
  /// Decodes a change record, or returns nil if it is malformed.
  init?(_ record: ChangeRecord, in body: RawSpan, keysOnly: Bool) {
    let key = body.extracting(record.key).toString()
    switch record.kind {
    case .single, .list:
      let kind: ValueKind = record.kind == .list && !keysOnly ? .list : .single
      guard let value = EntryValue(kind, body.extracting(record.value).toArray()) else { return nil }
      self = .put(
        Entry(key: key, value: value, revision: record.revision, expiresIn: Entry.expiry(milliseconds: record.expiry)))
    case .deleted: self = .delete(key: key)
    case .allDeleted: self = .deleteAll
    case .lost, .incarnation: return nil
    }
  }
}
