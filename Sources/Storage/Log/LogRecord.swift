/// A record where it lies in memory, checked or about to be: `CommitBuffer` and `Protocol/log-format.md`, section 3.
enum LogRecord {
  /// What there is at a place where a record may begin.
  enum Finding: Equatable {
    case whole(byteCount: Int)
    /// Something that begins like a record that has values apart. Nothing of it is checked but that it ends within the file.
    case sparse
    /// More of the file has to be read first: so many bytes from the record's beginning.
    case incomplete(byteCount: Int)
    /// A length of zero: the end of the records.
    case end
    case damaged(String)
  }

  /// The least there can be: a revision and one operation.
  private static let smallestBody = 16

  /// Checks everything about the record that these bytes begin with, unless it has values apart: those need not be read.
  ///
  /// - Parameters:
  ///   - bytes: what was read, from the record's beginning on.
  ///   - remaining: how many bytes the file has from there on.
  ///   - previous: the revision of the record before.
  static func check(_ bytes: UnsafeRawBufferPointer, remaining: Int, after previous: UInt64) -> Finding {
    guard remaining >= 4 else { return remaining == 0 ? .end : .damaged("a record is cut short") }
    guard bytes.count >= 4 else { return .incomplete(byteCount: min(8, remaining)) }
    let length = unsafe Int(bytes.integer(at: 0, as: UInt32.self))
    if length == 0 { return .end }
    guard length >= smallestBody else { return .damaged("a record has an impossible length") }
    let byteCount = CommitBuffer.recordHeaderByteCount + length
    guard byteCount <= remaining else { return .damaged("a record reaches beyond the end of the file") }
    // A value apart is longer than this.
    if length >= CommitBuffer.separatedByteCount, let finding = unsafe look(at: bytes, byteCount: byteCount) {
      return finding
    }
    guard byteCount <= bytes.count else { return .incomplete(byteCount: byteCount) }
    let record = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<byteCount])
    let crc = unsafe record.checksum(leavingOut: CommitBuffer.checksumPlace)
    guard unsafe record.integer(at: 4, as: UInt32.self) == crc else { return .damaged("a record's checksum is wrong") }
    return unsafe checkBody(record, after: previous)
  }

  private static func checkBody(_ record: UnsafeRawBufferPointer, after previous: UInt64) -> Finding {
    let revision = unsafe record.integer(at: 8, as: UInt64.self)
    var place = CommitBuffer.recordHeaderByteCount + 8
    var isMark = false
    while place < record.count {
      guard let operation = unsafe RecordOperation(in: record, at: place) else {
        return .damaged("a record is not well formed")
      }
      isMark = operation.kind == SyncMark.kind
      place = operation.end
    }
    guard isMark ? revision >= previous : revision > previous, revision <= CommitBuffer.revisions.upperBound else {
      return .damaged("revisions are out of order")
    }
    return .whole(byteCount: record.count)
  }

  /// The most that an operation takes whose value isn't apart.
  private static let largestOperation =
    CommitBuffer.operationHeaderByteCount + 8 + Key.lengths.upperBound + CommitBuffer.separatedByteCount

  /// Looks through the operations that are there already for a value apart, and for what is no operation: what only says that it is long
  /// must not be read to its end.
  /// - Returns: nil when neither was found.
  private static func look(at bytes: UnsafeRawBufferPointer, byteCount: Int) -> Finding? {
    let there = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<min(byteCount, bytes.count)])
    var place = CommitBuffer.recordHeaderByteCount + 8
    while place + CommitBuffer.operationHeaderByteCount <= there.count {
      if unsafe there[place + 1] & CommitBuffer.Flag.separated != 0 { return .sparse }
      guard let operation = unsafe RecordOperation(in: there, at: place) else {
        return there.count - place < largestOperation ? nil : .damaged("a record is not well formed")
      }
      place = operation.end
    }
    return nil
  }
}
