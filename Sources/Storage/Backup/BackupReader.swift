/// Reads a backup part by part from bytes that others bring, and checks all of it: `Protocol/backup-format.md`.
///
/// It keeps nothing but the last key. Owned by whoever reads the file.
package struct BackupReader {
  package enum Part {
    /// There is more of the file, and at least so many bytes of it are needed from `offset` on.
    case incomplete(byteCount: Int)
    case header(BackupHeader)
    case entry(BackupEntry)
    /// The file is whole and intact.
    case end
  }

  private static let recordHeaderByteCount = CommitBuffer.recordHeaderByteCount
  /// Of a revision and an operation, with an expiry, a checksum, a key and a value that are as long as can be.
  private static let longestBody = 8 + 8 + 8 + 4 + Key.lengths.upperBound + Int(Int32.max)

  /// Where the next part begins in the file: everything before is intact.
  package private(set) var offset = 0
  package private(set) var entries: UInt64 = 0
  /// Of keys and values.
  package private(set) var byteCount: UInt64 = 0
  package private(set) var header: BackupHeader?
  private var lastKey: [UInt8] = []

  package init() {}

  /// Takes the next part.
  /// - Parameters:
  ///   - bytes: of the file, from `offset` on.
  ///   - isWhole: whether the file ends behind them.
  package mutating func next(_ bytes: UnsafeRawBufferPointer, isWhole: Bool) throws(BackupDamage) -> Part {
    do throws(Need) {
      guard let header else { return unsafe try readHeader(bytes) }
      guard bytes.count >= 4 else { throw .bytes(BackupTrailer.byteCount) }
      let length = unsafe Int(bytes.integer(at: 0, as: UInt32.self))
      if length == 0 { return unsafe try readTrailer(bytes, isWhole: isWhole, made: header.made) }
      guard length <= Self.longestBody else { throw damage("a record's length is impossible") }
      guard bytes.count >= Self.recordHeaderByteCount + length else {
        throw .bytes(Self.recordHeaderByteCount + length)
      }
      return unsafe try readEntry(UnsafeRawBufferPointer(rebasing: bytes[..<(Self.recordHeaderByteCount + length)]))
    } catch {
      switch error {
      case .damage(let damage): throw damage
      case .bytes(let count):
        if !isWhole { return .incomplete(byteCount: count) }
        let isEmpty = offset + bytes.count == 0
        throw BackupDamage(offset: offset, reason: isEmpty ? "it is empty" : "the end of the file is missing")
      }
    }
  }

  /// Why a part can't be taken.
  private enum Need: Error {
    case bytes(Int)
    case damage(BackupDamage)
  }

  private func damage(_ reason: String, at place: Int = 0) -> Need {
    .damage(BackupDamage(offset: offset + place, reason: reason))
  }

  private mutating func readHeader(_ bytes: UnsafeRawBufferPointer) throws(Need) -> Part {
    guard bytes.count >= BackupHeader.fixedByteCount else { throw .bytes(BackupHeader.fixedByteCount) }
    guard let count = BackupHeader.byteCount(unsafe Array(bytes[..<BackupHeader.fixedByteCount])) else {
      throw damage("this is no backup of a store")
    }
    guard bytes.count >= count else { throw .bytes(count) }
    do throws(BackupDamage) {
      let header = try BackupHeader(unsafe Array(bytes[..<count]))
      self.header = header
      offset = count
      return .header(header)
    } catch {
      throw .damage(error)
    }
  }

  private mutating func readEntry(_ record: UnsafeRawBufferPointer) throws(Need) -> Part {
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
    case .delete, .deleteAll: throw damage("a record is no entry's")
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
  ) throws(Need) -> Part {
    guard bytes.count >= BackupTrailer.byteCount else { throw .bytes(BackupTrailer.byteCount) }
    let trailer = BackupTrailer(offset: UInt64(offset), entries: entries, made: made)
    guard unsafe bytes[..<BackupTrailer.byteCount].elementsEqual(trailer.bytes) else {
      throw damage("the end is not that of this backup")
    }
    guard bytes.count == BackupTrailer.byteCount else {
      throw damage("something follows the end", at: BackupTrailer.byteCount)
    }
    guard isWhole else { throw .bytes(BackupTrailer.byteCount + 1) }
    offset += BackupTrailer.byteCount
    return .end
  }
}

/// An entry of a backup.
package struct BackupEntry: Equatable, Sendable {
  package let key: String
  package let kind: EntryKind
  /// Of a list: its elements as on the wire.
  package let value: [UInt8]
  /// In milliseconds since 1970; 0 for never.
  package let expiry: UInt64
  package let revision: UInt64
}

/// Why a file is no whole backup, and from which byte on.
package struct BackupDamage: Error, Equatable, Sendable {
  package let offset: Int
  package let reason: String
}

extension CommitOperation {
  /// Whether no other operation follows in a record of that size.
  fileprivate func endsRecord(of byteCount: Int) -> Bool { unsafe valueOffset + value.count == byteCount }
}
