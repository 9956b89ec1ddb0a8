/// The body of a find request: `Protocol/wire.md` §6.7. The texts are ranges of the span that the request was decoded
/// from; they may be empty, and are not checked.
public struct FindRequest: Equatable, Sendable {
  static let countOnly: UInt8 = 1
  static let limit: UInt8 = 2
  static let explain: UInt8 = 4
  static let time: UInt8 = 8
  public static let headerSize = 32

  /// Whether the reply has no documents, only their number.
  public let isCountOnly: Bool
  /// Whether the reply has an explanation in place of the documents.
  public let isExplained: Bool
  /// The maximum number of documents to return; nil for all.
  public let limit: UInt32?
  /// The number of matching documents to leave out at the start.
  public let skip: UInt64
  /// How long the find may take, in milliseconds, at least 1; nil for as long as the server allows by default.
  public let time: UInt32?
  /// A JSON object; empty for all documents.
  public let selector: Range<Int>
  /// A JSON array; empty for the order of the keys' bytes.
  public let sort: Range<Int>
  /// A JSON array; empty for whole documents.
  public let fields: Range<Int>
  /// The bookmark of an earlier page; empty for the first page.
  public let bookmark: Range<Int>
  /// The name of the index to use; empty to let the server choose.
  public let index: Range<Int>

  /// Decodes the body of a request, or returns nil if it is malformed.
  public init?(_ body: RawSpan) {
    guard
      let flags = body.integer(at: 0, as: UInt16.self),
      flags <= UInt16(Self.countOnly | Self.limit | Self.explain | Self.time),
      let indexSize = body.integer(at: 2, as: UInt16.self),
      let limit = body.integer(at: 4, as: UInt32.self), let skip = body.integer(at: 8, as: UInt64.self),
      let selectorSize = body.integer(at: 16, as: UInt32.self), let sortSize = body.integer(at: 20, as: UInt32.self),
      let fieldsSize = body.integer(at: 24, as: UInt32.self), let bookmarkSize = body.integer(at: 28, as: UInt32.self)
    else { return nil }
    let hasLimit = flags & UInt16(Self.limit) != 0
    guard hasLimit || limit == 0 else { return nil }
    guard let (time, textStart) = body.requestTime(at: Self.headerSize, isGiven: flags & UInt16(Self.time) != 0)
    else { return nil }
    self.time = time
    let selectorEnd = textStart + Int(selectorSize)
    let sortEnd = selectorEnd + Int(sortSize)
    let fieldsEnd = sortEnd + Int(fieldsSize)
    let bookmarkEnd = fieldsEnd + Int(bookmarkSize)
    let indexEnd = bookmarkEnd + Int(indexSize)
    guard indexEnd == body.byteCount else { return nil }
    isCountOnly = flags & UInt16(Self.countOnly) != 0
    isExplained = flags & UInt16(Self.explain) != 0
    self.limit = hasLimit ? limit : nil
    self.skip = skip
    selector = textStart..<selectorEnd
    sort = selectorEnd..<sortEnd
    fields = sortEnd..<fieldsEnd
    bookmark = fieldsEnd..<bookmarkEnd
    index = bookmarkEnd..<indexEnd
  }
}

/// The last record of the reply to a find or an aggregate request: `Protocol/wire.md` §6.7.
public struct FindResult: Equatable, Sendable {
  /// The kind of the record, where an entry record has the kind of its value.
  public static let recordKind: UInt8 = 3
  /// The size of the value without the text.
  static let valueHeaderSize = 32

  /// The revision of the snapshot that the reply shows.
  public let revision: UInt64
  /// The number of documents that were examined.
  public let examinedDocuments: UInt64
  /// The number of keys of indexes that were examined.
  public let examinedKeys: UInt64
  /// The number of documents that were found or, if only their number was requested, counted; the number of rows of an
  /// aggregate reply.
  public let found: UInt64
  /// How long finding the documents took, in nanoseconds.
  public let nanoseconds: UInt64
  /// The bookmark of the next page, or empty if there is none; the explanation in JSON, if it was requested.
  public let text: String

  public init(
    revision: UInt64, examinedDocuments: UInt64, examinedKeys: UInt64 = 0, found: UInt64, nanoseconds: UInt64,
    text: String = ""
  ) {
    self.revision = revision
    self.examinedDocuments = examinedDocuments
    self.examinedKeys = examinedKeys
    self.found = found
    self.nanoseconds = nanoseconds
    self.text = text
  }

  /// The size of the record, in bytes.
  public var size: Int { EntryRecord.headerSize + Self.valueHeaderSize + text.utf8.count }

  /// Decodes the record at `offset`, or returns nil if it is malformed, is an entry record, or does not end the body.
  public init?(_ body: RawSpan, at offset: Int) {
    let value = offset + EntryRecord.headerSize
    guard
      // Flags and key size are zero.
      body.integer(at: offset, as: UInt32.self) == UInt32(Self.recordKind),
      let valueSize = body.integer(at: offset + 4, as: UInt32.self),
      let revision = body.revision(at: offset + 8),
      value + Int(valueSize) == body.byteCount,
      let examinedDocuments = body.integer(at: value, as: UInt64.self),
      let examinedKeys = body.integer(at: value + 8, as: UInt64.self),
      let found = body.integer(at: value + 16, as: UInt64.self),
      let nanoseconds = body.integer(at: value + 24, as: UInt64.self)
    else { return nil }
    self.revision = revision
    self.examinedDocuments = examinedDocuments
    self.examinedKeys = examinedKeys
    self.found = found
    self.nanoseconds = nanoseconds
    text = body.extracting(value + Self.valueHeaderSize..<body.byteCount).toString()
  }
}

extension ByteBuffer {
  /// Appends the body of a find request. Texts may be empty; see `FindRequest`.
  /// - Parameters:
  ///   - limit: The maximum number of documents to return; nil for all.
  ///   - skip: The number of matching documents to leave out at the start.
  ///   - index: The name of the index to use, of at most 65,535 bytes; nil to let the server choose.
  ///   - time: How long the find may take, in milliseconds, at least 1; nil for as long as the server allows by default.
  public mutating func appendFind(
    countOnly: Bool = false, explain: Bool = false, limit: UInt32?, skip: UInt64, selector: RawSpan, sort: RawSpan,
    fields: RawSpan, bookmark: RawSpan, index: String? = nil, time: UInt32? = nil
  ) {
    var flags: UInt8 = 0
    if countOnly { flags |= FindRequest.countOnly }
    if limit != nil { flags |= FindRequest.limit }
    if explain { flags |= FindRequest.explain }
    if time != nil { flags |= FindRequest.time }
    append(UInt16(flags))
    append(UInt16(index?.utf8.count ?? 0))
    append(limit ?? 0)
    append(skip)
    append(UInt32(selector.byteCount))
    append(UInt32(sort.byteCount))
    append(UInt32(fields.byteCount))
    append(UInt32(bookmark.byteCount))
    if let time { append(time) }
    append(selector)
    append(sort)
    append(fields)
    append(bookmark)
    if let index { append(index) }
  }

  /// Appends the last record of the reply to a find or an aggregate request.
  public mutating func append(_ result: FindResult) {
    append(UInt32(FindResult.recordKind))
    append(UInt32(FindResult.valueHeaderSize + result.text.utf8.count))
    append(result.revision)
    append(result.examinedDocuments)
    append(result.examinedKeys)
    append(result.found)
    append(result.nanoseconds)
    append(result.text)
  }
}
