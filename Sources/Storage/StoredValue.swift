import Platform

/// A value that lies in a file of its store: where, and how it is told from anything else that may lie there.
///
/// It can be read without the store's lock, and for as long as anyone has it, whatever became of the entry meanwhile.
package struct StoredValue: Sendable {
  let file: ValueFile
  let offset: Int
  package let byteCount: Int
  /// CRC32C of the value.
  let checksum: UInt32

  /// Reads the value into `room`, which has its size.
  /// - Throws: when it can't be read, or isn't what was written. What `room` holds then is not to be used.
  package func read(into room: UnsafeMutableRawBufferPointer) throws(StoredValueError) {
    precondition(room.count == byteCount)
    let count: Int
    do throws(SystemError) {
      count = unsafe try file.file.read(at: offset, into: room)
    } catch {
      throw .failed(path: file.path, error)
    }
    guard count == byteCount, unsafe UnsafeRawBufferPointer(room).checksum() == checksum else {
      throw .damaged(path: file.path, offset: offset)
    }
  }
}

/// A file that values are read from. It stays open, and so readable when its name is gone, as long as a value in it is known.
final class ValueFile: Sendable {
  let file: any File
  let path: String

  init(_ file: any File, path: String) {
    self.file = file
    self.path = path
  }
}

/// Where the value lies of a put of that key and revision.
package struct PlacedValue: Sendable {
  let key: [UInt8]
  let revision: UInt64
  let value: StoredValue
}

extension PlacedValue {
  /// Where the values apart of records lie that were written into that place of a file.
  static func all(in records: UnsafeRawBufferPointer, at offset: Int, of file: ValueFile) -> [PlacedValue] {
    var placed: [PlacedValue] = []
    let piece = unsafe SegmentPiece(bytes: records, offset: offset, isSparse: false)
    piece.visit { operation, revision, valueOffset in
      guard operation.isSeparated else { return }
      let value = StoredValue(
        file: file, offset: valueOffset, byteCount: operation.valueByteCount, checksum: operation.valueChecksum)
      unsafe placed.append(PlacedValue(key: Array(operation.key), revision: revision, value: value))
    }
    return placed
  }
}

/// Why a value can't be read from its file.
package enum StoredValueError: Error, Equatable, Sendable {
  /// What lies there is not what was written.
  case damaged(path: String, offset: Int)
  case failed(path: String, SystemError)
}

extension StoredValueError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .damaged(let path, let offset):
      "the value in \(path) at byte \(offset) is damaged; see what is intact with \"larder check\""
    case .failed(let path, let error): "the value can't be read: \(error) (\(path))"
    }
  }
}
