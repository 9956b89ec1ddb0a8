/// A reader of the operations in records that a `CommitBuffer` wrote. It verifies a record's form and all its checksums
/// before it returns the record's first operation.
///
/// Safe because it compares every length with the available bytes before it uses it. The bytes must outlive the reader.
@safe
package struct CommitReader {
  private let bytes: UnsafeRawBufferPointer
  /// The offset of the current record.
  package private(set) var recordStart = 0
  private var recordEnd = 0
  /// The offset of the next operation in the record.
  private var offset = 0

  /// Whether operations may refer to values that are elsewhere.
  private let mayHaveReferences: Bool

  @unsafe
  package init(_ bytes: UnsafeRawBufferPointer, mayHaveReferences: Bool = false) {
    unsafe self.bytes = bytes
    self.mayHaveReferences = mayHaveReferences
  }

  /// Returns the next operation; nil after the last one.
  /// - Throws: `CommitDamage` for the record at `recordStart`, where the reader then stays.
  package mutating func next() throws(CommitDamage) -> CommitOperation? {
    if recordStart + offset == recordEnd {
      (recordStart, offset) = (recordEnd, 0)
      guard unsafe recordStart < bytes.count else { return nil }
      recordEnd = try verifiedEnd()
      offset = CommitBuffer.recordHeaderByteCount + 8
    }
    let record = unsafe UnsafeRawBufferPointer(rebasing: bytes[recordStart..<recordEnd])
    let operation = unsafe try operation(of: record, at: offset)
    offset = operation.end
    return operation
  }

  /// Verifies the record at `recordStart`, and returns the offset of its end.
  private func verifiedEnd() throws(CommitDamage) -> Int {
    let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[recordStart...])
    guard rest.count >= CommitBuffer.recordHeaderByteCount else { throw damage("the header is truncated") }
    let byteCount = unsafe rest.recordByteCount(at: 0)
    guard byteCount > CommitBuffer.recordHeaderByteCount + 8, byteCount <= rest.count else {
      throw damage("the record extends beyond the end")
    }
    let record = unsafe UnsafeRawBufferPointer(rebasing: rest[..<byteCount])
    func checksum(_ range: Range<Int>, after crc: UInt32) -> UInt32 {
      unsafe UnsafeRawBufferPointer(rebasing: record[range]).checksum(after: crc)
    }
    var crc = checksum(0..<CommitBuffer.checksumRange.lowerBound, after: 0)
    var (covered, offset) = (CommitBuffer.recordHeaderByteCount, CommitBuffer.recordHeaderByteCount + 8)
    while offset < byteCount {
      let operation = unsafe try operation(of: record, at: offset)
      offset = operation.end
      guard let expected = operation.separatedChecksum, operation.reference == nil else { continue }
      guard unsafe operation.value.checksum() == expected else { throw damage("a value's checksum is wrong") }
      crc = unsafe checksum(covered..<offset - operation.value.count, after: crc)
      covered = offset
    }
    guard unsafe checksum(covered..<byteCount, after: crc) == record.integer(at: 4, as: UInt32.self) else {
      throw damage("the checksum is wrong")
    }
    return recordStart + byteCount
  }

  private func operation(
    of record: UnsafeRawBufferPointer, at offset: Int
  ) throws(CommitDamage) -> CommitOperation {
    // A log's sync mark has a kind that no commit has.
    guard let operation = unsafe RecordOperation(in: record, at: offset, mayHaveReference: mayHaveReferences),
      let kind = CommitBuffer.Kind(rawValue: operation.kind)
    else { throw damage("an operation is malformed") }
    return unsafe CommitOperation(
      kind: kind, revision: record.integer(at: CommitBuffer.recordHeaderByteCount, as: UInt64.self),
      expiry: operation.expiry, separatedChecksum: operation.isSeparated ? operation.valueChecksum : nil,
      key: operation.key, value: operation.value, reference: operation.reference,
      valueByteCount: operation.valueByteCount, valueOffset: recordStart + operation.end - operation.value.count,
      end: operation.end)
  }

  private func damage(_ reason: String) -> CommitDamage { CommitDamage(offset: recordStart, reason: reason) }
}

/// An operation of a verified record, in place. Valid as long as the reader's bytes are.
@safe
package struct CommitOperation {
  package let kind: CommitBuffer.Kind
  package let revision: UInt64
  /// In milliseconds since 1970; 0 for never.
  package let expiry: UInt64
  /// The checksum of a separated value; nil for other values.
  fileprivate let separatedChecksum: UInt32?
  package let key: UnsafeRawBufferPointer
  /// The value; empty if it is elsewhere.
  package let value: UnsafeRawBufferPointer
  /// Where the value is; nil if it is here.
  package let reference: ValueReference?
  /// The size of the value, wherever it is.
  let valueByteCount: Int
  /// The offset of the value in the reader's bytes.
  package let valueOffset: Int
  /// The offset of the next operation in the record.
  fileprivate let end: Int

  /// The CRC32C of the value.
  var valueChecksum: UInt32 { unsafe separatedChecksum ?? value.checksum() }

  /// Whether the value can be left where it is, instead of being kept in memory.
  var isSeparated: Bool { separatedChecksum != nil }

  /// What is wrong with the form of key and value; nil if nothing is.
  var invalidContents: String? {
    guard kind != .deleteAll else { return nil }
    return unsafe EntryForm.problem(key: key, value: value, isList: kind == .list && reference == nil)
  }
}

/// The form that keys and lists have, so that every client can use them (`Protocol/wire.md`, section 4).
enum EntryForm {
  static let keyProblem = "a key is not UTF-8"
  static let listProblem = "a list is malformed"

  /// Returns what is wrong with the form of an entry; nil if nothing is.
  static func problem(key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, isList: Bool) -> String? {
    guard unsafe isUTF8(key) else { return keyProblem }
    return unsafe !isList || Self.isList(value) ? nil : listProblem
  }

  @inline(__always)
  static func isUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var offset = 0
    // The high bits of all bytes: none is set in ASCII.
    var high: UInt64 = 0
    while offset &+ 8 <= bytes.count {
      unsafe high |= bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
      offset &+= 8
    }
    while offset < bytes.count {
      unsafe high |= UInt64(bytes[offset])
      offset &+= 1
    }
    if high & 0x8080_8080_8080_8080 == 0 { return true }
    return unsafe (try? UTF8Span(validating: Span(_unsafeBytes: bytes))) != nil
  }

  /// Returns whether the bytes are elements, each after its 4-byte size, and nothing else.
  static func isList(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var offset = 0
    while offset + 4 <= bytes.count { offset += unsafe 4 + Int(bytes.integer(at: offset, as: UInt32.self)) }
    return offset == bytes.count
  }
}

/// Why a record can't be read.
package struct CommitDamage: Error, Equatable, Sendable {
  /// The offset of the record.
  package let offset: Int
  package let reason: String
}

/// An operation of a record, in place: one that a `CommitBuffer` wrote, or a log's sync mark.
///
/// Safe because every length is compared with the available bytes before it is used. The bytes must outlive the
/// operation.
@safe
struct RecordOperation {
  /// A `CommitBuffer.Kind`, or `SyncMark.kind`.
  let kind: UInt8
  let isSeparated: Bool
  /// The checksum of a separated value; 0 for other values.
  let valueChecksum: UInt32
  /// In milliseconds since 1970; 0 for never.
  let expiry: UInt64
  let key: UnsafeRawBufferPointer
  /// The value; empty for a separated value that is omitted or elsewhere.
  let value: UnsafeRawBufferPointer
  /// Where the value is; nil if it is here, or omitted.
  let reference: ValueReference?
  let valueByteCount: Int
  /// The offset of the next operation in the record.
  let end: Int

  var isRemoval: Bool { kind == CommitBuffer.Kind.delete.rawValue || kind == CommitBuffer.Kind.deleteAll.rawValue }

  /// Decodes the operation at that offset; nil unless it is well formed and ends within the record.
  /// - Parameters:
  ///   - isSparse: Whether the record's separated values are omitted.
  ///   - mayHaveReference: Whether a separated value may be elsewhere.
  @inline(__always)
  init?(
    in record: UnsafeRawBufferPointer, at start: Int, isSparse: Bool = false, mayHaveReference: Bool = false
  ) {
    var offset = start &+ CommitBuffer.operationHeaderByteCount
    guard offset <= record.count else { return nil }
    kind = unsafe record[start]
    let flags = unsafe record[start &+ 1]
    let keyCount = unsafe Int(record.integer(at: start &+ 2, as: UInt16.self))
    let valueCount = unsafe Int(record.integer(at: start &+ 4, as: UInt32.self))
    isSeparated = flags & CommitBuffer.Flag.separated != 0
    let expires = flags & CommitBuffer.Flag.expires != 0
    let extra = (expires ? 8 : 0) &+ (isSeparated ? 4 : 0)
    let isElsewhere = flags & CommitBuffer.Flag.elsewhere != 0
    guard flags <= (mayHaveReference ? 7 : 3), isSeparated || !isElsewhere else { return nil }
    let presentCount = isElsewhere ? ValueReference.byteCount : isSparse && isSeparated ? 0 : valueCount
    guard offset &+ extra &+ keyCount &+ presentCount <= record.count else { return nil }
    switch kind {
    case 1, 2:
      guard Key.lengths.contains(keyCount), valueCount <= Int32.max else { return nil }
      guard isSeparated == (valueCount >= CommitBuffer.separatedByteCount) else { return nil }
    case 3: guard Key.lengths.contains(keyCount), valueCount == 0, flags == 0 else { return nil }
    case 4: guard keyCount == 0, valueCount == 0, flags == 0 else { return nil }
    case SyncMark.kind:
      guard record.count == SyncMark.byteCount, keyCount == 0, valueCount == 16, flags == 0 else { return nil }
    default: return nil
    }
    expiry = expires ? unsafe record.integer(at: offset, as: UInt64.self) : 0
    if expires { offset &+= 8 }
    valueChecksum = isSeparated ? unsafe record.integer(at: offset, as: UInt32.self) : 0
    if isSeparated { offset &+= 4 }
    guard !expires || expiry != 0 else { return nil }
    unsafe key = UnsafeRawBufferPointer(start: record.baseAddress! + offset, count: keyCount)
    offset &+= keyCount
    unsafe value = UnsafeRawBufferPointer(start: record.baseAddress! + offset, count: isElsewhere ? 0 : presentCount)
    reference =
      isElsewhere
      ? unsafe ValueReference(
        position: Int64(bitPattern: record.integer(at: offset, as: UInt64.self)),
        offset: Int(clamping: record.integer(at: offset &+ 8, as: UInt64.self)))
      : nil
    valueByteCount = valueCount
    end = offset &+ presentCount
  }
}

extension RecordOperation {
  /// Whether key and value have the form that every client of the store may expect, unless the value is a separated
  /// list, which is not examined.
  var hasValidContents: Bool {
    unsafe EntryForm.isUTF8(key) && (!isList || isSeparated || EntryForm.isList(value))
  }

  /// Why the contents aren't valid.
  var invalidContents: String { unsafe EntryForm.isUTF8(key) ? EntryForm.listProblem : EntryForm.keyProblem }

  private var isList: Bool { kind == CommitBuffer.Kind.list.rawValue }
}

/// An estimate of what is lost where records are damaged, for reports only.
enum DamagedRecords {
  /// The size of the smallest record: the deletion of all entries.
  static let minByteCount = CommitBuffer.recordHeaderByteCount + 8 + CommitBuffer.operationHeaderByteCount

  /// Returns the number of operations in damaged bytes, as far as their lengths are right.
  /// - Parameters:
  ///   - frameEnd: The end of the frame that the bytes begin in; 0 if they begin with a frame.
  ///   - headerByteCount: The size of the header of a frame.
  static func operationCount(
    in bytes: UnsafeRawBufferPointer, frameEnd: Int = 0, headerByteCount: Int
  ) -> Int {
    var (offset, frameEnd, count) = (0, frameEnd, 0)
    while offset + headerByteCount + minByteCount <= bytes.count || offset < frameEnd && offset + 16 < bytes.count {
      if offset >= frameEnd {
        frameEnd = unsafe offset + headerByteCount + Int(bytes.integer(at: offset, as: UInt32.self))
        offset += headerByteCount
        continue
      }
      let byteCount = unsafe bytes.recordByteCount(at: offset)
      guard byteCount >= minByteCount else { break }
      let record = unsafe UnsafeRawBufferPointer(rebasing: bytes[offset..<min(offset + byteCount, bytes.count)])
      var place = CommitBuffer.recordHeaderByteCount + 8
      while place < record.count, let operation = unsafe RecordOperation(in: record, at: place) {
        (count, place) = (count + 1, operation.end)
      }
      offset += byteCount
    }
    return count
  }

  /// Returns the number of operations that were lost, at most as far as is known.
  /// - Parameters:
  ///   - operationCount: What the damaged bytes seem to have; at least one is lost.
  ///   - previous: The last revision before the damaged place.
  ///   - next: The first revision after it; nil if there is none.
  ///   - byteCount: The size of what is lost; nil if it is unknown.
  static func lossCount(_ operationCount: Int, after previous: UInt64, before next: UInt64?, byteCount: Int?) -> Int {
    let revisions = next.map { $0 > previous + 1 ? Int(clamping: $0 - previous - 1) : 0 } ?? 0
    return max(1, operationCount, min(revisions, byteCount.map { $0 / minByteCount } ?? .max))
  }
}

extension UnsafeRawBufferPointer {
  /// Returns the size of the record at that offset, as its header states it.
  @inline(__always)
  func recordByteCount(at offset: Int) -> Int {
    unsafe CommitBuffer.recordHeaderByteCount &+ Int(integer(at: offset, as: UInt32.self))
  }
}
