import CLinux

/// Walks the operations of records as `CommitBuffer` writes them, record by record. A record's form and all its checksums are verified
/// before its first operation is handed out.
///
/// Safe because every length is compared with what is there before it is used; the bytes must outlive the reader.
@safe
package struct CommitReader {
  private let bytes: UnsafeRawBufferPointer
  private let count: Int
  /// Where the record begins that is read next, or being read.
  package private(set) var recordStart = 0
  private var recordEnd = 0
  private var place = 0
  private var revision: UInt64 = 0

  @unsafe
  package init(_ bytes: UnsafeRawBufferPointer) {
    unsafe self.bytes = bytes
    count = bytes.count
  }

  /// The next operation; nil behind the last one.
  /// - Throws: for the record at `recordStart`, where the reader then stays.
  package mutating func next() throws(CommitDamage) -> CommitOperation? {
    if place == recordEnd {
      recordStart = recordEnd
      guard recordStart < count else { return nil }
      recordEnd = try verifiedEnd()
      place = recordStart + CommitBuffer.recordHeaderByteCount + 8
      revision = load(recordStart + CommitBuffer.recordHeaderByteCount)
    }
    guard let operation = operation(at: place, end: recordEnd) else { throw damage("an operation's form is wrong") }
    place = operation.end
    return operation
  }

  /// Verifies the record at `recordStart`.
  /// - Returns: where it ends.
  private func verifiedEnd() throws(CommitDamage) -> Int {
    let bodyStart = recordStart + CommitBuffer.recordHeaderByteCount
    guard bodyStart <= count else { throw damage("the header is cut short") }
    let length = Int(load(recordStart) as UInt32)
    guard length > 8, length <= count - bodyStart else { throw damage("the length goes beyond the end") }
    let end = bodyStart + length
    var crc = checksum(0, recordStart..<recordStart + 4)
    var (covered, place) = (bodyStart, bodyStart + 8)
    while place < end {
      guard let operation = operation(at: place, end: end) else { throw damage("an operation's form is wrong") }
      if let expected = operation.valueChecksum {
        let value = operation.valueOffset..<operation.end
        guard checksum(0, value) == expected else { throw damage("a value's checksum is wrong") }
        crc = checksum(crc, covered..<value.lowerBound)
        covered = value.upperBound
      }
      place = operation.end
    }
    crc = checksum(crc, covered..<end)
    guard crc == load(recordStart + 4) as UInt32 else { throw damage("the checksum is wrong") }
    return end
  }

  /// Nil when it doesn't have the form that it says it has.
  private func operation(at start: Int, end: Int) -> CommitOperation? {
    guard end - start >= CommitBuffer.operationHeaderByteCount,
      let kind = CommitBuffer.Kind(rawValue: load(start))
    else { return nil }
    let flags: UInt8 = load(start + 1)
    let keyCount = Int(load(start + 2) as UInt16)
    let valueCount = Int(load(start + 4) as UInt32)
    let (expires, isApart) = (flags & CommitBuffer.Flag.expires != 0, flags & CommitBuffer.Flag.apart != 0)
    var place = start + CommitBuffer.operationHeaderByteCount
    guard flags & ~(CommitBuffer.Flag.expires | CommitBuffer.Flag.apart) == 0,
      kind == .deleteAll ? keyCount == 0 : Key.lengths.contains(keyCount),
      kind == .single || kind == .list || flags == 0 && valueCount == 0,
      end - place >= (expires ? 8 : 0) + (isApart ? 4 : 0) + keyCount + valueCount
    else { return nil }
    var expiry: UInt64 = 0
    if expires {
      expiry = load(place)
      place += 8
    }
    var valueChecksum: UInt32?
    if isApart {
      valueChecksum = load(place) as UInt32
      place += 4
    }
    let valueStart = place + keyCount
    return unsafe CommitOperation(
      kind: kind, revision: revision, expiry: expiry, valueChecksum: valueChecksum,
      key: UnsafeRawBufferPointer(rebasing: bytes[place..<valueStart]),
      value: UnsafeRawBufferPointer(rebasing: bytes[valueStart..<valueStart + valueCount]),
      valueOffset: valueStart, end: valueStart + valueCount)
  }

  private func load<T: FixedWidthInteger & BitwiseCopyable>(_ offset: Int) -> T {
    T(littleEndian: unsafe bytes.loadUnaligned(fromByteOffset: offset, as: T.self))
  }

  private func checksum(_ crc: UInt32, _ range: Range<Int>) -> UInt32 {
    unsafe crc32c(crc, bytes.baseAddress! + range.lowerBound, range.count)
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
  package let valueChecksum: UInt32?
  package let key: UnsafeRawBufferPointer
  package let value: UnsafeRawBufferPointer
  /// Where the value begins among the reader's bytes.
  package let valueOffset: Int
  let end: Int
}

/// Why a record can't be read.
package struct CommitDamage: Error, Equatable, Sendable {
  /// Where the record begins.
  package let offset: Int
  package let reason: String
}
