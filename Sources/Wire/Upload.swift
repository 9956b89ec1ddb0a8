/// The body of an upload-part request: `Protocol/wire.md` §6.13. The bytes are a range of the span that the request was
/// decoded from.
public struct UploadPart: Equatable, Sendable {
  static let headerSize = 16

  /// The number of the upload.
  public let number: UInt64
  /// Where the bytes begin in the value.
  public let offset: UInt64
  public let bytes: Range<Int>

  /// Decodes the body of a request, or returns nil if it is malformed.
  public init?(_ body: RawSpan) {
    guard let number = body.integer(at: 0, as: UInt64.self), let offset = body.integer(at: 8, as: UInt64.self) else {
      return nil
    }
    self.number = number
    self.offset = offset
    bytes = Self.headerSize..<body.byteCount
  }
}

/// The body of an upload-put request: `Protocol/wire.md` §6.13.
public struct UploadPut: Equatable, Sendable {
  static let headerSize = 16

  /// The number of the upload.
  public let number: UInt64
  /// The size of the value, in bytes.
  public let size: UInt64
  /// The record of the write, without the value.
  public let write: WriteRecord

  /// Decodes the body of a request, or returns nil if it is malformed.
  public init?(_ body: RawSpan) {
    guard let number = body.integer(at: 0, as: UInt64.self), let size = body.integer(at: 8, as: UInt64.self),
      let write = WriteRecord(body, at: Self.headerSize), write.value.isEmpty, write.end == body.byteCount
    else { return nil }
    self.number = number
    self.size = size
    self.write = write
  }
}

extension ByteBuffer {
  /// Appends the body of an upload-part request.
  public mutating func appendUploadPart(_ number: UInt64, offset: UInt64, bytes: RawSpan) {
    append(number)
    append(offset)
    append(bytes)
  }

  /// Appends the body of an upload-put request.
  /// - Parameters:
  ///   - size: The size of the value, in bytes.
  ///   - expiry: The milliseconds after which the entry expires; 0 for an entry that does not expire.
  ///   - revision: The revision that the current entry must have, or nil.
  public mutating func appendUploadPut(
    _ number: UInt64, size: UInt64, kind: ValueKind, expiry: UInt64 = 0, ifAbsent: Bool = false,
    ifRevision revision: UInt64? = nil, key: RawSpan
  ) {
    append(number)
    append(size)
    appendWrite(kind: kind, expiry: expiry, ifAbsent: ifAbsent, ifRevision: revision, key: key, value: RawSpan())
  }
}
