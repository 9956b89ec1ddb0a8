/// What an entry contains: one value, or a list whose encoding is up to its writer.
package enum EntryKind: UInt8, Sendable {
  case single = 1
  case list = 2
}

/// An entry as a reader sees it, in place in its store's memory. Nothing is copied.
///
/// Valid until the map next changes or the lock is released; never keep a view longer. A value in a file is not read:
/// `value` is nil then, and `separatedValue` refers to it.
@safe
package struct EntryView {
  package let kind: EntryKind
  /// The store's counter at the write that made the entry.
  package let revision: UInt64
  /// The time when the entry expires, in milliseconds of the clock that the caller passes as `now`; 0 for never.
  package let expiry: UInt64
  package let key: UnsafeRawBufferPointer
  /// The value's bytes; nil if they are not in memory.
  package let value: UnsafeRawBufferPointer?
  /// The size of the value in bytes, wherever the bytes are.
  package let valueByteCount: Int
  private let external: UnsafeMutableRawPointer?

  @inline(__always)
  init(
    kind: EntryKind, revision: UInt64, expiry: UInt64, key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
  ) {
    self.kind = kind
    self.revision = revision
    self.expiry = expiry
    unsafe self.key = key
    unsafe self.value = value
    valueByteCount = value.count
    unsafe external = nil
  }

  /// - Parameter external: A value of `ExternalValues`.
  init(
    kind: EntryKind, revision: UInt64, expiry: UInt64, key: UnsafeRawBufferPointer, external: UnsafeMutableRawPointer
  ) {
    self.kind = kind
    self.revision = revision
    self.expiry = expiry
    unsafe self.key = key
    unsafe value = ExternalValues.bytes(of: external)
    valueByteCount = unsafe ExternalValues.byteCount(of: external)
    unsafe self.external = external
  }

  /// Whether the value is known to be an I-JSON object. It may be one in any case.
  package var isKnownObject: Bool {
    guard let key = unsafe key.baseAddress else { return false }
    return unsafe Record(ofKeyAt: key, hasExpiry: expiry != 0).isKnownObject
  }

  /// Whether the value isn't in the entry's record.
  package var isExternal: Bool { unsafe external != nil }

  /// A reference to a value of 32 KiB or more in memory; nil for any other. It stays readable when the view is no longer
  /// valid.
  package var largeValue: LargeValue? {
    unsafe external.flatMap { unsafe ExternalValues.large($0) }
  }

  /// A reference to the value in its file; nil if the value is in memory. It stays readable when the view is no longer
  /// valid.
  package var separatedValue: SeparatedValue? {
    unsafe external.flatMap { unsafe ExternalValues.stored($0) }
  }
}

/// A precondition of a write on the entry that it replaces. An expired entry counts as absent.
package struct EntryCondition: Equatable, Sendable {
  /// Whether the key must have no entry.
  package var ifAbsent: Bool
  /// The revision that the entry must have; nil for any. No entry has revision 0, so 0 never matches.
  package var ifRevision: UInt64?

  package init(ifAbsent: Bool = false, ifRevision: UInt64? = nil) {
    self.ifAbsent = ifAbsent
    self.ifRevision = ifRevision
  }
}
