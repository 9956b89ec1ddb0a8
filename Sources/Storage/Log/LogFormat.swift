// The parts of a segment's format, from its beginning to its end: `Protocol/log-format.md`. Commit records are written
// by `CommitBuffer`.

/// The header of a segment: `Protocol/log-format.md`, section 2.
struct SegmentHeader: Equatable, Sendable {
  /// The size of a header, in bytes.
  static let byteCount = 72
  private static let version: UInt16 = 2
  /// The size of a header in version 1, which has no salt.
  private static let oldByteCount = 64
  private static let oldVersion: UInt16 = 1
  /// The valid numbers.
  static let numbers: ClosedRange<UInt64> = 1...(1 << 62 - 1)
  private static let magic: [UInt8] = Array("LARDRLOG".utf8)
  private static let checksumRange = 12..<16

  /// The identity of the store, drawn when it was created.
  var identity: UInt64
  /// The number of the segment, which is also the name of its file.
  var number: UInt64
  /// The number of the last segment that this one replaces: its own number, or a higher one if others were merged into
  /// it.
  var lastNumber: UInt64
  /// The lower bound of the revisions in the segment.
  var firstRevision: UInt64
  /// The last revision of the segments that a compaction made this one of; 0 in a segment of commits.
  var lastRevision: UInt64 = 0
  /// The revision of the store at which everything dead was removed from this segment; 0 in a segment of commits.
  var sweptRevision: UInt64 = 0
  /// A random number in all frames of the segment, and in no other segment. Clients can't see it. Nil in version 1,
  /// which has no frames.
  var salt: UInt64?

  /// The number that distinguishes the frames, marks and trailer of the segment from what a client wrote.
  var secret: UInt64 { salt ?? identity }

  /// Whether a compaction made the segment. It was complete before it got its name.
  var isMadeByCompaction: Bool { lastRevision > 0 }

  /// The offset of the first frame, or in version 1 of the first record.
  var byteCount: Int { salt == nil ? Self.oldByteCount : Self.byteCount }

  var bytes: [UInt8] {
    var bytes = Self.magic
    bytes.append(littleEndian: salt == nil ? Self.oldVersion : Self.version)
    bytes.append(littleEndian: 0 as UInt16)
    bytes.append(littleEndian: 0 as UInt32)
    for field in [identity, number, lastNumber, firstRevision, lastRevision, sweptRevision] {
      bytes.append(littleEndian: field)
    }
    if let salt { bytes.append(littleEndian: salt) }
    bytes.replace(at: Self.checksumRange.lowerBound, littleEndian: bytes.checksum(excluding: Self.checksumRange))
    return bytes
  }

  /// Returns what the bytes of a damaged header state as the segment's salt; nil in version 1.
  static func statedSalt(_ bytes: [UInt8]) -> UInt64? {
    guard bytes.count >= byteCount, bytes.integer(at: 8, as: UInt16.self) != oldVersion else { return nil }
    return bytes.integer(at: oldByteCount, as: UInt64.self)
  }

  /// Why bytes are not a header.
  struct DecodingError: Error {
    let reason: String
    /// Whether a later version of this program has written them.
    var isLaterVersion = false

    func logError(_ path: String) -> LogError {
      isLaterVersion ? .laterVersion(path: path) : .damaged(path: path, offset: 0, reason: reason)
    }
  }

  /// Decodes the header at the beginning of a file.
  static func decode(_ start: [UInt8]) throws(DecodingError) -> SegmentHeader {
    guard start.count >= oldByteCount, Array(start[..<8]) == magic else {
      throw DecodingError(reason: "this is not a segment of a log")
    }
    let found = start.integer(at: 8, as: UInt16.self)
    guard found == version || found == oldVersion else {
      throw DecodingError(
        reason: "the format has version \(found), but this program supports only versions \(oldVersion) and \(version)",
        isLaterVersion: found > version)
    }
    let bytes = Array(start.prefix(found == version ? byteCount : oldByteCount))
    guard found == oldVersion || bytes.count == byteCount else {
      throw DecodingError(reason: "the header is truncated")
    }
    guard bytes.integer(at: checksumRange.lowerBound, as: UInt32.self) == bytes.checksum(excluding: checksumRange)
    else {
      throw DecodingError(reason: "the header's checksum is wrong")
    }
    let fields = (0..<6).map { bytes.integer(at: 16 + 8 * $0, as: UInt64.self) }
    let header = SegmentHeader(
      identity: fields[0], number: fields[1], lastNumber: fields[2], firstRevision: fields[3],
      lastRevision: fields[4], sweptRevision: fields[5],
      salt: found == version ? bytes.integer(at: oldByteCount, as: UInt64.self) : nil)
    guard header.lastNumber >= header.number, header.lastNumber <= numbers.upperBound,
      header.firstRevision <= CommitBuffer.revisions.upperBound + 1,
      header.lastRevision <= CommitBuffer.revisions.upperBound, header.secret & 1 == 1
    else { throw DecodingError(reason: "the header contradicts itself") }
    return header
  }
}

/// A check of the record at the beginning of some bytes: `Protocol/log-format.md`, section 3.
enum LogRecord {
  /// What a check has found.
  enum CheckResult: Equatable {
    /// An intact record.
    case intact(byteCount: Int)
    /// The beginning of a record with separated values. The check has verified only that the record ends within the
    /// file.
    case sparse
    /// The check needs more of the file: that many bytes from the record's beginning.
    case incomplete(byteCount: Int)
    /// A length of zero: the end of the records.
    case end
    case damaged(String)
    /// A whole record that no writer makes.
    case invalid(String, byteCount: Int)
  }

  /// The smallest body: a revision and one operation.
  private static let minBodyByteCount = 16

  /// The largest operation whose value is not separated.
  private static let maxInlineOperationByteCount =
    CommitBuffer.operationHeaderByteCount + 8 + Key.lengths.upperBound + CommitBuffer.separatedByteCount

  /// Checks the record at the beginning of the bytes completely, unless it has separated values, which need not be
  /// read.
  ///
  /// - Parameters:
  ///   - bytes: The bytes that were read, from the record's beginning on.
  ///   - remaining: The number of bytes in the file from there on.
  ///   - frameRemaining: The number of bytes in the record's frame from there on. A length of zero ends the records even
  ///     where the frame has no room for one.
  ///   - previous: The revision of the previous record.
  static func check(
    _ bytes: UnsafeRawBufferPointer, remaining: Int, frameRemaining: Int, after previous: UInt64
  ) -> CheckResult {
    guard remaining >= 4 else { return remaining == 0 ? .end : .damaged("a record is truncated") }
    guard bytes.count >= 4 else { return .incomplete(byteCount: min(8, remaining)) }
    let length = unsafe Int(bytes.integer(at: 0, as: UInt32.self))
    if length == 0 { return .end }
    guard length >= minBodyByteCount else { return .damaged("a record has an impossible length") }
    let byteCount = CommitBuffer.recordHeaderByteCount + length
    guard byteCount <= min(remaining, frameRemaining) else {
      return .damaged("a record extends beyond the end of its frame or file")
    }
    // Only a body that is longer than this can have a separated value.
    if length >= CommitBuffer.separatedByteCount, let result = unsafe scan(bytes, byteCount: byteCount) {
      return result
    }
    guard byteCount <= bytes.count else { return .incomplete(byteCount: byteCount) }
    let record = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<byteCount])
    let crc = unsafe record.checksum(excluding: CommitBuffer.checksumRange)
    guard unsafe record.integer(at: 4, as: UInt32.self) == crc else { return .damaged("a record's checksum is wrong") }
    return unsafe checkBody(record, after: previous)
  }

  private static func checkBody(_ record: UnsafeRawBufferPointer, after previous: UInt64) -> CheckResult {
    let revision = unsafe record.integer(at: 8, as: UInt64.self)
    var offset = CommitBuffer.recordHeaderByteCount + 8
    var (isMark, invalidContents) = (false, String?.none)
    while offset < record.count {
      guard let operation = unsafe RecordOperation(in: record, at: offset) else {
        return .damaged("a record is malformed")
      }
      if !operation.hasValidContents { invalidContents = operation.invalidContents }
      isMark = operation.kind == SyncMark.kind
      offset = operation.end
    }
    guard isMark ? revision >= previous : revision > previous, revision <= CommitBuffer.revisions.upperBound else {
      return .invalid("revisions are out of order", byteCount: record.count)
    }
    if let invalidContents { return .invalid(invalidContents, byteCount: record.count) }
    return .intact(byteCount: record.count)
  }

  /// Scans the available operations for a separated value or a malformed operation, so that a record that only claims
  /// to be long is not read to its end.
  /// - Returns: Nil if there is neither.
  private static func scan(_ bytes: UnsafeRawBufferPointer, byteCount: Int) -> CheckResult? {
    let available = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<min(byteCount, bytes.count)])
    var offset = CommitBuffer.recordHeaderByteCount + 8
    while offset + CommitBuffer.operationHeaderByteCount <= available.count {
      if unsafe available[offset + 1] & CommitBuffer.Flag.separated != 0 { return .sparse }
      guard let operation = unsafe RecordOperation(in: available, at: offset) else {
        return available.count - offset < maxInlineOperationByteCount ? nil : .damaged("a record is malformed")
      }
      offset = operation.end
    }
    return nil
  }
}

/// A record that segments of version 1 have instead of frames: how much of the segment was on disk when the mark was
/// written (`Protocol/log-format.md`, section 8).
///
/// A crash may leave any part of what wasn't synced, in any order. A mark after a broken place shows whether that place
/// was synced.
struct SyncMark: Equatable, Sendable {
  static let byteCount = 40
  static let kind: UInt8 = 5
  /// The offset of the store's identity in the record.
  static let identityOffset = 24

  private let revision: UInt64
  private let identity: UInt64
  let syncedByteCount: Int

  /// - Parameter syncedByteCount: The end of the part of the segment that was on disk.
  init(revision: UInt64, identity: UInt64, syncedByteCount: Int) {
    self.revision = revision
    self.identity = identity
    self.syncedByteCount = syncedByteCount
  }

  var bytes: [UInt8] {
    var body: [UInt8] = []
    body.append(littleEndian: UInt32(Self.byteCount - 8))
    body.append(littleEndian: revision)
    body.append(littleEndian: Self.kind)
    body.append(littleEndian: 0 as UInt8)
    body.append(littleEndian: 0 as UInt16)
    body.append(littleEndian: 16 as UInt32)
    body.append(littleEndian: identity)
    body.append(littleEndian: UInt64(syncedByteCount))
    var bytes = Array(body[..<4])
    bytes.append(littleEndian: body.checksum())
    return bytes + body[4...]
  }

  /// Decodes the mark at the beginning of the bytes; nil unless there is one that belongs to that store.
  static func decode(_ bytes: UnsafeRawBufferPointer, identity: UInt64) -> SyncMark? {
    guard bytes.count >= byteCount, unsafe bytes.integer(at: 0, as: UInt32.self) == UInt32(byteCount - 8),
      unsafe bytes[16] == kind, unsafe bytes.integer(at: identityOffset, as: UInt64.self) == identity
    else { return nil }
    let mark = unsafe SyncMark(
      revision: bytes.integer(at: 8, as: UInt64.self), identity: identity,
      syncedByteCount: Int(clamping: bytes.integer(at: 32, as: UInt64.self)))
    let record = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<byteCount])
    return unsafe mark.bytes.elementsEqual(record) ? mark : nil
  }
}

/// The trailer of a sealed segment: `Protocol/log-format.md`, section 4.
///
/// Everything before it was on disk when it was written, so it also distinguishes damage from a torn tail.
struct SegmentTrailer: Equatable, Sendable {
  static let byteCount = 32
  /// The offset of the segment's secret in the trailer.
  static let secretOffset = 24

  private let offset: Int
  /// The store's revision when the segment was sealed.
  let lastRevision: UInt64
  let secret: UInt64

  /// - Parameters:
  ///   - offset: The offset of the trailer: the end of the records.
  ///   - secret: The segment's salt, or in version 1 the store's identity.
  init(offset: Int, lastRevision: UInt64, secret: UInt64) {
    self.offset = offset
    self.lastRevision = lastRevision
    self.secret = secret
  }

  var bytes: [UInt8] {
    var body: [UInt8] = []
    for field in [UInt64(offset), lastRevision, secret] { body.append(littleEndian: field) }
    var bytes: [UInt8] = []
    bytes.append(littleEndian: 0 as UInt32)
    bytes.append(littleEndian: body.checksum())
    return bytes + body
  }

  /// Decodes a trailer; nil unless the bytes are the trailer that belongs at that offset.
  /// - Parameter secret: The segment's secret; nil if it is unknown.
  static func decode(_ bytes: UnsafeRawBufferPointer, at offset: Int, secret: UInt64?) -> SegmentTrailer? {
    guard bytes.count >= byteCount else { return nil }
    let found = unsafe SegmentTrailer(
      offset: Int(clamping: bytes.integer(at: 8, as: UInt64.self)),
      lastRevision: bytes.integer(at: 16, as: UInt64.self),
      secret: bytes.integer(at: secretOffset, as: UInt64.self))
    guard unsafe bytes.integer(at: 0, as: UInt32.self) == 0, found.offset == offset,
      found.secret == secret ?? found.secret,
      unsafe bytes.integer(at: 4, as: UInt32.self) == UnsafeRawBufferPointer(rebasing: bytes[8..<byteCount]).checksum()
    else { return nil }
    return found
  }
}
