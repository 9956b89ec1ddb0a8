/// The body of a change-matching request: `Protocol/wire.md` §6.9. The texts are ranges of the span that the request was
/// decoded from, and are not checked.
public struct ChangeMatchingRequest: Equatable, Sendable {
  static let dryRun: UInt8 = 1
  static let delete: UInt8 = 2
  static let time: UInt8 = 4
  public static let headerSize = 8

  /// Whether nothing is changed, so that the reply says what would change.
  public let isDryRun: Bool
  /// Whether the documents are deleted. If not, they are updated.
  public let isDelete: Bool
  /// How long it may take, in milliseconds, at least 1; nil for as long as the server allows by default.
  public let time: UInt32?
  /// A JSON object; empty for all documents.
  public let selector: Range<Int>
  /// A JSON object; empty if the documents are deleted.
  public let update: Range<Int>

  /// Decodes the body of a request, or returns nil if it is malformed.
  public init?(_ body: RawSpan) {
    guard
      let flags = body.integer(at: 0, as: UInt32.self), flags <= UInt32(Self.dryRun | Self.delete | Self.time),
      let selectorSize = body.integer(at: 4, as: UInt32.self),
      let (time, start) = body.requestTime(at: Self.headerSize, isGiven: flags & UInt32(Self.time) != 0),
      start + Int(selectorSize) <= body.byteCount
    else { return nil }
    self.time = time
    let selectorEnd = start + Int(selectorSize)
    isDryRun = flags & UInt32(Self.dryRun) != 0
    isDelete = flags & UInt32(Self.delete) != 0
    selector = start..<selectorEnd
    update = selectorEnd..<body.byteCount
    guard isDelete == update.isEmpty else { return nil }
  }
}

/// The reply to a change-matching request: `Protocol/wire.md` §6.9.
public struct MatchingChanges: Equatable, Sendable {
  public static let size = 48

  /// The number of documents that match.
  public let matched: UInt64
  /// The number of documents that were changed or, in a dry run, would be.
  public let changed: UInt64
  /// The revision of the changed documents, or of their deletion; 0 if nothing was changed.
  public let revision: UInt64
  /// The number of documents that were examined.
  public let examinedDocuments: UInt64
  /// The number of keys of indexes that were examined.
  public let examinedKeys: UInt64
  /// How long finding and changing the documents took, in nanoseconds.
  public let nanoseconds: UInt64

  public init(
    matched: UInt64, changed: UInt64, revision: UInt64, examinedDocuments: UInt64, examinedKeys: UInt64 = 0,
    nanoseconds: UInt64
  ) {
    self.matched = matched
    self.changed = changed
    self.revision = revision
    self.examinedDocuments = examinedDocuments
    self.examinedKeys = examinedKeys
    self.nanoseconds = nanoseconds
  }

  /// Decodes the reply, or returns nil if it is malformed.
  public init?(_ body: RawSpan) {
    guard
      body.byteCount == Self.size, let matched = body.integer(at: 0, as: UInt64.self),
      let changed = body.integer(at: 8, as: UInt64.self), let revision = body.revision(at: 16),
      let examinedDocuments = body.integer(at: 24, as: UInt64.self),
      let examinedKeys = body.integer(at: 32, as: UInt64.self), let nanoseconds = body.integer(at: 40, as: UInt64.self)
    else { return nil }
    self.init(
      matched: matched, changed: changed, revision: revision, examinedDocuments: examinedDocuments,
      examinedKeys: examinedKeys, nanoseconds: nanoseconds)
  }
}

extension ByteBuffer {
  /// Appends the body of a change-matching request.
  /// - Parameters:
  ///   - selector: A JSON object; empty for all documents.
  ///   - update: A JSON object, which isn't empty; nil to delete the documents.
  ///   - time: How long it may take, in milliseconds, at least 1; nil for as long as the server allows by default.
  public mutating func appendChangeMatching(
    dryRun: Bool = false, selector: RawSpan, update: RawSpan?, time: UInt32? = nil
  ) {
    var flags: UInt8 = 0
    if dryRun { flags |= ChangeMatchingRequest.dryRun }
    if update == nil { flags |= ChangeMatchingRequest.delete }
    if time != nil { flags |= ChangeMatchingRequest.time }
    append(UInt32(flags))
    append(UInt32(selector.byteCount))
    if let time { append(time) }
    append(selector)
    if let update { append(update) }
  }

  public mutating func append(_ changes: MatchingChanges) {
    append(changes.matched)
    append(changes.changed)
    append(changes.revision)
    append(changes.examinedDocuments)
    append(changes.examinedKeys)
    append(changes.nanoseconds)
  }
}
