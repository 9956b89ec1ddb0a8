/// What an entry holds: one value, or a list whose encoding is the business of whoever wrote it.
package enum EntryKind: UInt8, Sendable {
  case single = 1
  case list = 2
}

/// An entry as a reader sees it, where it lies in its store's memory: nothing is copied.
///
/// Valid until the next change of the map under the same hold of its lock; never keep one beyond that. A value that lies in a file is not
/// read: `value` is nil then, and `storedValue` says where.
@safe
package struct EntryView {
  package let kind: EntryKind
  /// The store's counter at the write that made the entry.
  package let revision: UInt64
  /// When the entry expires, in milliseconds of the clock that the caller passes as `now`; 0 for never.
  package let expiry: UInt64
  package let key: UnsafeRawBufferPointer
  /// The value's bytes; nil when they are not in memory.
  package let value: UnsafeRawBufferPointer?
  /// How many bytes the value has, wherever they are.
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

  /// - Parameter external: one of the `ExternalValues`.
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

  /// Where the value lies; nil when it is in memory. It may be kept, and read when the view is gone.
  package var storedValue: StoredValue? {
    unsafe external.flatMap { unsafe ExternalValues.stored($0) }
  }
}

/// What a write may ask of the entry it is about to replace. An entry that has expired counts as absent.
package struct WriteCondition: Equatable, Sendable {
  /// There must be no entry.
  package var ifAbsent: Bool
  /// There must be an entry of this revision. No entry has revision 0, so 0 is never met.
  package var ifRevision: UInt64?

  package init(ifAbsent: Bool = false, ifRevision: UInt64? = nil) {
    self.ifAbsent = ifAbsent
    self.ifRevision = ifRevision
  }
}
