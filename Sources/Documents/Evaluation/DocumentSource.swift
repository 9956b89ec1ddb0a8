/// What paths are looked up in: the text of a value, and the metadata of a document.
///
/// It doesn't leave the scope in which the text is borrowed.
struct DocumentSource {
  let text: JSONText
  /// The key as a JSON string, and the revision as a number, in place of the members `_id` and `_rev`.
  let id: SourceValue?
  let revision: SourceValue?
  /// Whether the text is known to be an I-JSON object.
  let isTrusted: Bool

  @unsafe @inline(__always)
  init(
    _ text: UnsafeBufferPointer<UInt8>, id: SourceValue? = nil, revision: SourceValue? = nil, isTrusted: Bool = false
  ) {
    self.text = unsafe JSONText(UnsafeRawBufferPointer(text))
    self.isTrusted = isTrusted
    self.id = id
    self.revision = revision
  }

  /// - Parameter metadata: The key, of `idCount` bytes, and the revision. Both can be empty.
  @unsafe @inline(__always)
  init(_ text: UnsafeBufferPointer<UInt8>, metadata: UnsafeBufferPointer<UInt8>, idCount: Int, isTrusted: Bool) {
    unsafe self.init(
      text, id: idCount == 0 ? nil : SourceValue(UnsafeBufferPointer(rebasing: metadata[..<idCount])),
      revision: idCount == metadata.count ? nil : SourceValue(UnsafeBufferPointer(rebasing: metadata[idCount...])),
      isTrusted: isTrusted)
  }

  @inline(__always)
  init(_ value: SourceValue) { unsafe self.init(value.bytes) }

  /// Whether the text starts like an object.
  @inline(__always)
  var isObject: Bool {
    if isTrusted { return true }
    var position = 0
    return text.next(&position) == UInt8(ascii: "{")
  }

  /// Returns the same metadata with another text.
  @unsafe
  func replacing(_ text: UnsafeBufferPointer<UInt8>) -> DocumentSource {
    unsafe DocumentSource(text, id: id, revision: revision)
  }

  /// The value that the text is.
  /// - Precondition: The text is JSON.
  var value: SourceValue {
    var start = 0
    _ = text.next(&start)
    do throws(JSONText.Failure) {
      return SourceValue(start..<(try text.endOfValue(at: start, room: JSONLimits.deepest)), of: text)
    } catch { preconditionFailure("the text has been passed before") }
  }
}
