import Platform

/// A reference to a value in a file of its store or elsewhere outside of its memory, or to a part of it, with what
/// distinguishes the value from any other bytes there.
///
/// It can be read without the store's lock, and for as long as it exists, even if the entry has changed meanwhile.
package struct SeparatedValue: Sendable {
  let file: ValueFile
  /// Where the whole value begins in the file.
  let offset: Int
  /// The number of bytes that a read returns.
  package let byteCount: Int
  /// The CRC32C of the whole value.
  let checksum: UInt32
  /// The part of the value; nil for the whole value.
  var part: ValuePart?

  /// Reads the value into a buffer of its size, and waits for the disk if necessary.
  /// - Throws: If the value can't be read, or is not what was written. The contents of the buffer are then undefined.
  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(SeparatedValueError) {
    precondition(buffer.count == byteCount)
    if let part {
      _ = unsafe try read(part, into: buffer) { (offset, room) throws(SeparatedValueError) in
        unsafe try readAll(at: offset, into: room)
        return true
      }
    } else {
      unsafe try readAll(at: offset, into: buffer)
      unsafe try check(buffer)
    }
  }

  private func readAll(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SeparatedValueError) {
    let count = unsafe try file.source.read(at: offset, into: buffer)
    guard count == buffer.count else { throw .damaged(path: file.path, offset: self.offset) }
  }

  /// Reads the value into a buffer of its size if that doesn't have to wait for the disk, or for the verification of a
  /// much larger value.
  /// - Returns: Whether it was read. The contents of the buffer are undefined if not.
  /// - Throws: `damaged` if it is not what was written.
  package func readFromCache(into buffer: UnsafeMutableRawBufferPointer) throws(SeparatedValueError) -> Bool {
    precondition(buffer.count == byteCount)
    if let part {
      guard
        part.valueByteCount <= Self.maxQuicklyVerifiedByteCount || file.verifiedSlices(ofValueAt: offset) != nil
      else { return false }
      return unsafe try read(part, into: buffer) { (offset, room) throws(SeparatedValueError) in
        unsafe file.source.readFromCache(at: offset, into: room) == room.count
      }
    }
    guard unsafe file.source.readFromCache(at: offset, into: buffer) == byteCount else { return false }
    unsafe try check(buffer)
    return true
  }

  /// Whether the value can probably be read without waiting for the disk: its first and last bytes can.
  package var isProbablyCached: Bool {
    var byte: UInt8 = 0
    return unsafe withUnsafeMutableBytes(of: &byte) { byte in
      unsafe file.source.readFromCache(at: offset, into: byte) == 1
        && file.source.readFromCache(at: offset + byteCount - 1, into: byte) == 1
    }
  }

  /// Reads the value, so that it is in memory afterward. May wait.
  package func readAhead() { file.source.readAhead(at: offset, byteCount: byteCount) }

  private func check(_ buffer: UnsafeMutableRawBufferPointer) throws(SeparatedValueError) {
    guard unsafe UnsafeRawBufferPointer(buffer).checksum() == checksum else {
      throw .damaged(path: file.path, offset: offset)
    }
  }
}

/// The location of the separated value that a put of this key and revision has written.
package struct ValueLocation: Sendable {
  let key: [UInt8]
  let revision: UInt64
  package let value: SeparatedValue
}

extension ValueLocation {
  /// Returns the locations of all separated values of records that were written at that offset of a file.
  static func all(in records: UnsafeRawBufferPointer, at offset: Int, of file: ValueFile) -> [ValueLocation] {
    unsafe all(in: records, at: offset) { operation, valueOffset in
      SeparatedValue(
        file: file, offset: valueOffset, byteCount: operation.valueByteCount, checksum: operation.valueChecksum)
    }
  }

  /// Returns the locations of all separated values of the records of a commit.
  /// - Precondition: The records are intact.
  package static func all(
    in records: UnsafeRawBufferPointer, ofCommitAt position: Int64, in values: any ValuesInCommits
  ) -> [ValueLocation] {
    unsafe all(in: records, at: 0) { operation, valueOffset in
      SeparatedValue(
        ValueReference(position: position, offset: valueOffset), byteCount: operation.valueByteCount,
        checksum: operation.valueChecksum, in: values)
    }
  }

  private static func all(
    in records: UnsafeRawBufferPointer, at offset: Int, value: (RecordOperation, Int) -> SeparatedValue
  ) -> [ValueLocation] {
    var locations: [ValueLocation] = []
    let chunk = unsafe SegmentChunk(bytes: records, offset: offset, frameEnd: .max, isSparse: false)
    chunk.visit { operation, revision, valueOffset in
      guard operation.isSeparated else { return }
      unsafe locations.append(
        ValueLocation(key: Array(operation.key), revision: revision, value: value(operation, valueOffset)))
    }
    return locations
  }
}

/// Why a separated value can't be read.
package enum SeparatedValueError: Error, Equatable, Sendable {
  /// The bytes in the file are not what was written.
  case damaged(path: String, offset: Int)
  case failed(path: String, SystemError)
  /// What has the value can't be reached, or no longer has it, for this reason. Another attempt may succeed.
  case unavailable(String)
}

extension SeparatedValueError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .damaged(let path, let offset):
      "the value in \(path) at byte \(offset) is damaged; run \"larder check\" to see what is intact"
    case .failed(let path, let error): "can't read the value: \(error) (\(path))"
    case .unavailable(let reason): "can't read the value: \(reason)"
    }
  }
}
