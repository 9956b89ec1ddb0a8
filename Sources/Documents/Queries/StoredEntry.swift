/// An entry whose value may be a document, where it is in memory.
///
/// Safe because its owner keeps that memory, and what is in it, as long as the entry.
@safe
package struct StoredEntry {
  package let handle: UInt32
  package let revision: UInt64
  /// When the entry expires, in milliseconds of its store's clock; 0 for never.
  package let expiry: UInt64
  /// Whether the value is known to be an I-JSON object.
  package var isTrusted: Bool
  /// The number of documents that it stands for: those that match, too, and have the same single values in the
  /// `decidingFields` of an aggregation.
  package let documentCount: Int
  /// The key, in UTF-8.
  private let key: UnsafeBufferPointer<UInt8>
  private let value: UnsafeBufferPointer<UInt8>

  @unsafe @inline(__always)
  package init(
    key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, revision: UInt64, expiry: UInt64 = 0,
    handle: UInt32 = 0, documentCount: Int = 1, isTrusted: Bool = false
  ) {
    self.handle = handle
    self.revision = revision
    self.expiry = expiry
    self.isTrusted = isTrusted
    self.documentCount = documentCount
    unsafe self.key = key.bindMemory(to: UInt8.self)
    unsafe self.value = value.bindMemory(to: UInt8.self)
  }

  /// Calls `body` with an entry whose key and value are elsewhere.
  @inline(__always)
  package static func with<Result>(
    key: Span<UInt8>, value: Span<UInt8>, revision: UInt64, _ body: (StoredEntry) -> Result
  ) -> Result {
    unsafe key.withUnsafeBytes { key in
      unsafe value.withUnsafeBytes { value in
        unsafe body(StoredEntry(key: key, value: value, revision: revision))
      }
    }
  }

  @inline(__always)
  package func withKey<Result>(_ body: (Span<UInt8>) -> Result) -> Result { unsafe body(key.span) }

  /// Calls `body` with the value, which need not be JSON.
  @inline(__always)
  package func withValue<Result, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result { unsafe try body(value.span) }

  /// Returns the entry with its value somewhere else.
  @unsafe
  package func replacingValue(_ value: UnsafeRawBufferPointer) -> StoredEntry {
    unsafe StoredEntry(
      key: UnsafeRawBufferPointer(key), value: value, revision: revision, expiry: expiry, handle: handle,
      documentCount: documentCount, isTrusted: isTrusted)
  }

  /// Calls `body` with the value and the metadata that matters.
  @inline(__always)
  func withSource<Result>(
    _ metadata: inout EntryMetadata, needsID: Bool, needsRevision: Bool, _ body: (DocumentSource) -> Result
  ) -> Result {
    guard needsID || needsRevision else { return unsafe body(DocumentSource(value, isTrusted: isTrusted)) }
    metadata.set(key: unsafe key.span, ifNeeded: needsID, revision: needsRevision ? revision : nil)
    return metadata.withSource(of: unsafe value.span, isTrusted: isTrusted, body)
  }
}
