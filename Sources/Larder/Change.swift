import Wire

/// What one request has changed in a store. Its changes became visible together.
public struct Commit: Hashable, Sendable {
  /// The revision that the request made. A watch that is to go on behind this commit begins from the next one.
  public let revision: UInt64
  /// In the order in which the request had them, those only that the watch asked for.
  public let changes: [Change]
}

/// One change of a store.
public enum Change: Hashable, Sendable {
  /// An entry was written. It has the commit's revision, and with keys only an empty value.
  case put(Entry)
  case delete(key: String)
  /// All entries of the store were deleted.
  case deleteAll
}

extension Change {
  /// Nil when the record is not of a change's form.
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
    case .lost: return nil
    }
  }
}
