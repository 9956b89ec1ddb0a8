import Wire

extension EntryValue {
  /// The value of a record, or nil when a list is not of a list's form.
  init?(_ kind: ValueKind, _ bytes: RawSpan) {
    switch kind {
    case .single: self = .single(bytes.toArray())
    case .list:
      guard let elements = ListValue.decode(bytes) else { return nil }
      self = .list(elements)
    }
  }

  init?(_ kind: ValueKind, _ bytes: [UInt8]) {
    switch kind {
    case .single: self = .single(bytes)
    case .list: unsafe self.init(kind, bytes.span.bytes)
    }
  }
}

extension Entry {
  /// The entry of a record, or nil when the record can't be one: it is of no kind, or its list is malformed.
  init?(_ record: EntryRecord, in body: RawSpan, key: String? = nil, keysOnly: Bool = false) {
    guard let kind = record.kind else { return nil }
    let value: EntryValue? = keysOnly ? .single([]) : EntryValue(kind, body.extracting(record.value))
    guard let value else { return nil }
    self.init(
      key: key ?? body.extracting(record.key).toString(), value: value, revision: record.revision,
      expiresIn: Self.expiry(milliseconds: record.expiry))
  }

  /// - Parameter milliseconds: 0 for an entry that does not expire.
  static func expiry(milliseconds: UInt64) -> Duration? {
    milliseconds == 0 ? nil : .milliseconds(Int64(clamping: milliseconds))
  }
}
