/// Walks the operations of records as `CommitBuffer` writes them, record by record. A record's form and all its checksums are verified
/// before its first operation is handed out.
///
/// Safe because every length is compared with what is there before it is used; the bytes must outlive the reader.
@safe
package struct CommitReader {
  private let bytes: UnsafeRawBufferPointer
  /// Where the record begins that is read next, or being read.
  package private(set) var recordStart = 0
  private var recordEnd = 0
  /// Where the next operation begins in the record.
  private var place = 0

  @unsafe
  package init(_ bytes: UnsafeRawBufferPointer) { unsafe self.bytes = bytes }

  /// The next operation; nil behind the last one.
  /// - Throws: for the record at `recordStart`, where the reader then stays.
  package mutating func next() throws(CommitDamage) -> CommitOperation? {
    if recordStart + place == recordEnd {
      (recordStart, place) = (recordEnd, 0)
      guard unsafe recordStart < bytes.count else { return nil }
      recordEnd = try verifiedEnd()
      place = CommitBuffer.recordHeaderByteCount + 8
    }
    let record = unsafe UnsafeRawBufferPointer(rebasing: bytes[recordStart..<recordEnd])
    let operation = unsafe try operation(of: record, at: place)
    place = operation.end
    return operation
  }

  /// Verifies the record at `recordStart`.
  /// - Returns: where it ends.
  private func verifiedEnd() throws(CommitDamage) -> Int {
    let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[recordStart...])
    guard rest.count >= CommitBuffer.recordHeaderByteCount else { throw damage("the header is cut short") }
    let byteCount = unsafe rest.recordByteCount(at: 0)
    guard byteCount > CommitBuffer.recordHeaderByteCount + 8, byteCount <= rest.count else {
      throw damage("the length goes beyond the end")
    }
    let record = unsafe UnsafeRawBufferPointer(rebasing: rest[..<byteCount])
    func checksum(_ range: Range<Int>, after crc: UInt32) -> UInt32 {
      unsafe UnsafeRawBufferPointer(rebasing: record[range]).checksum(after: crc)
    }
    var crc = checksum(0..<CommitBuffer.checksumPlace.lowerBound, after: 0)
    var (covered, place) = (CommitBuffer.recordHeaderByteCount, CommitBuffer.recordHeaderByteCount + 8)
    while place < byteCount {
      let operation = unsafe try operation(of: record, at: place)
      place = operation.end
      guard let expected = operation.separatedChecksum else { continue }
      guard unsafe operation.value.checksum() == expected else { throw damage("a value's checksum is wrong") }
      crc = unsafe checksum(covered..<place - operation.value.count, after: crc)
      covered = place
    }
    guard unsafe checksum(covered..<byteCount, after: crc) == record.integer(at: 4, as: UInt32.self) else {
      throw damage("the checksum is wrong")
    }
    return recordStart + byteCount
  }

  private func operation(
    of record: UnsafeRawBufferPointer, at place: Int
  ) throws(CommitDamage) -> CommitOperation {
    // A mark is of no kind that a commit has.
    guard let operation = unsafe RecordOperation(in: record, at: place),
      let kind = CommitBuffer.Kind(rawValue: operation.kind)
    else { throw damage("an operation's form is wrong") }
    return unsafe CommitOperation(
      kind: kind, revision: record.integer(at: CommitBuffer.recordHeaderByteCount, as: UInt64.self),
      expiry: operation.expiry, separatedChecksum: operation.isSeparated ? operation.valueChecksum : nil,
      key: operation.key,
      value: operation.value, valueOffset: recordStart + operation.end - operation.value.count, end: operation.end)
  }

  private func damage(_ reason: String) -> CommitDamage { CommitDamage(offset: recordStart, reason: reason) }
}

/// One operation of a record, where it lies. Valid as long as the reader's bytes are.
@safe
package struct CommitOperation {
  package let kind: CommitBuffer.Kind
  package let revision: UInt64
  /// In milliseconds since 1970; 0 for never.
  package let expiry: UInt64
  /// Of a value apart; nil for others.
  fileprivate let separatedChecksum: UInt32?
  package let key: UnsafeRawBufferPointer
  package let value: UnsafeRawBufferPointer
  /// Where the value begins among the reader's bytes.
  package let valueOffset: Int
  /// Where the next operation begins in the record.
  fileprivate let end: Int

  /// CRC32C of the value.
  var valueChecksum: UInt32 { unsafe separatedChecksum ?? value.checksum() }
}

/// Why a record can't be read.
package struct CommitDamage: Error, Equatable, Sendable {
  /// Where the record begins.
  package let offset: Int
  package let reason: String
}
