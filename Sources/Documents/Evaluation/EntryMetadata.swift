/// The metadata of the entry that is examined, as JSON. Its memory is used again for the next entry.
struct EntryMetadata: Sendable {
  /// The key as a string, and the revision as a number.
  private var bytes: [UInt8] = []
  private var idCount = 0

  /// - Parameters:
  ///   - needsKey: Whether the key matters.
  ///   - revision: nil if it doesn't matter.
  @inline(__always)
  mutating func set(key: Span<UInt8>, ifNeeded needsKey: Bool = true, revision: UInt64?) {
    if !bytes.isEmpty { bytes.removeAll(keepingCapacity: true) }
    if needsKey { JSONString.append(quoting: key, to: &bytes) }
    idCount = bytes.count
    if let revision { bytes += JSONValue(revision: revision).encoded() }
  }

  /// Calls `body` with the places of the text and the metadata.
  /// - Parameter isTrusted: Whether the text is known to be an I-JSON object.
  @inline(__always)
  func withSource<Result>(
    of text: Span<UInt8>, isTrusted: Bool = false, _ body: (DocumentSource) -> Result
  ) -> Result {
    unsafe text.withUnsafeBufferPointer { text in
      unsafe bytes.withUnsafeBufferPointer { bytes in
        unsafe body(DocumentSource(text, metadata: bytes, idCount: idCount, isTrusted: isTrusted))
      }
    }
  }
}
