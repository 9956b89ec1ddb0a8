/// A parser that reads a backup event by event from bytes that the caller supplies, and verifies all of it:
/// `Protocol/backup-format.md`.
///
/// It remembers only the last key.
package struct BackupReader {
  package enum Event {
    /// More of the file is needed: at least that many bytes from `offset` on.
    case incomplete(byteCount: Int)
    case header(BackupHeader)
    case entry(BackupEntry)
    /// The file is complete and intact.
    case end
  }

  private static let recordHeaderByteCount = CommitBuffer.recordHeaderByteCount
  /// The size of a record's body with a revision and one operation that has an expiry, a checksum and the longest key
  /// and value.
  private static let maxBodyByteCount = 8 + 8 + 8 + 4 + Key.lengths.upperBound + Int(Int32.max)

  /// The offset of the next part in the file. Everything before it is intact.
  package private(set) var offset = 0
  package private(set) var entries: UInt64 = 0
  /// The number of bytes of keys and values.
  package private(set) var byteCount: UInt64 = 0
  package private(set) var header: BackupHeader?
  private var lastKey: [UInt8] = []

  package init() {}

  /// Reads the next part.
  /// - Parameters:
  ///   - bytes: The bytes of the file from `offset` on.
  ///   - isWhole: Whether the file ends after these bytes.
  package mutating func next(_ bytes: UnsafeRawBufferPointer, isWhole: Bool) throws(BackupDamage) -> Event {
    do throws(ParseFailure) {
      guard let header else { return unsafe try readHeader(bytes) }
      guard bytes.count >= 4 else { throw .needsBytes(BackupTrailer.byteCount) }
      let length = unsafe Int(bytes.integer(at: 0, as: UInt32.self))
      if length == 0 { return unsafe try readTrailer(bytes, isWhole: isWhole, made: header.made) }
      guard length <= Self.maxBodyByteCount else { throw damage("a record's length is impossible") }
      guard bytes.count >= Self.recordHeaderByteCount + length else {
        throw .needsBytes(Self.recordHeaderByteCount + length)
      }
      return unsafe try readEntry(UnsafeRawBufferPointer(rebasing: bytes[..<(Self.recordHeaderByteCount + length)]))
    } catch {
      switch error {
      case .damage(let damage): throw damage
      case .needsBytes(let count):
        if !isWhole { return .incomplete(byteCount: count) }
        let start = unsafe Array(bytes.prefix(8))
        guard header != nil || BackupHeader.canBegin(with: start) else { throw .isNoBackup }
        let isEmpty = offset + bytes.count == 0
        throw BackupDamage(offset: offset, reason: isEmpty ? "the file is empty" : "the end of the file is missing")
      }
    }
  }

  /// Why a part can't be read.
  private enum ParseFailure: Error {
    /// It needs that many bytes from `offset` on.
    case needsBytes(Int)
    case damage(BackupDamage)
  }

  private func damage(_ reason: String, at relativeOffset: Int = 0) -> ParseFailure {
    .damage(BackupDamage(offset: offset + relativeOffset, reason: reason))
  }

  private mutating func readHeader(_ bytes: UnsafeRawBufferPointer) throws(ParseFailure) -> Event {
    guard bytes.count >= BackupHeader.fixedByteCount else { throw .needsBytes(BackupHeader.fixedByteCount) }
    let count: Int
    let start = unsafe Array(bytes.prefix(BackupHeader.maxFixedByteCount))
    do throws(BackupDamage) { count = try BackupHeader.byteCount(start) } catch { throw .damage(error) }
    guard bytes.count >= count else { throw .needsBytes(count) }
    do throws(BackupDamage) {
      let header = try BackupHeader(unsafe Array(bytes[..<count]))
      self.header = header
      offset = count
      return .header(header)
    } catch {
      throw .damage(error)
    }
  }

  private mutating func readEntry(_ record: UnsafeRawBufferPointer) throws(ParseFailure) -> Event {
    var reader = unsafe CommitReader(record)
    let operation: CommitOperation
    do throws(CommitDamage) {
      guard let first = try reader.next(), first.endsRecord(of: record.count) else {
        throw CommitDamage(offset: 0, reason: "a record has more than one entry")
      }
      operation = first
    } catch {
      throw damage(error.reason)
    }
    let kind: EntryKind
    switch operation.kind {
    case .single: kind = .single
    case .list: kind = .list
    case .delete, .deleteAll: throw damage("a record is not an entry")
    }
    let bytes = unsafe Array(operation.key)
    guard let key = String(validating: bytes, as: UTF8.self) else { throw damage("a key is not UTF-8") }
    guard lastKey.lexicographicallyPrecedes(bytes) else { throw damage("the keys are out of order") }
    let value = unsafe Array(operation.value)
    lastKey = bytes
    entries += 1
    byteCount += UInt64(bytes.count + value.count)
    offset += record.count
    return .entry(
      BackupEntry(key: key, kind: kind, value: value, expiry: operation.expiry, revision: operation.revision))
  }

  private mutating func readTrailer(
    _ bytes: UnsafeRawBufferPointer, isWhole: Bool, made: UInt64
  ) throws(ParseFailure) -> Event {
    guard bytes.count >= BackupTrailer.byteCount else { throw .needsBytes(BackupTrailer.byteCount) }
    let trailer = BackupTrailer(offset: UInt64(offset), entries: entries, made: made)
    guard unsafe bytes[..<BackupTrailer.byteCount].elementsEqual(trailer.bytes) else {
      throw damage("the trailer does not belong to this backup")
    }
    guard bytes.count == BackupTrailer.byteCount else {
      throw damage("something follows the end", at: BackupTrailer.byteCount)
    }
    guard isWhole else { throw .needsBytes(BackupTrailer.byteCount + 1) }
    offset += BackupTrailer.byteCount
    return .end
  }
}

extension CommitOperation {
  /// Returns whether this is the last operation in a record of that size.
  fileprivate func endsRecord(of byteCount: Int) -> Bool { unsafe valueOffset + value.count == byteCount }
}
