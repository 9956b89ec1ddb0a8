import Platform

/// The position before which all frames of a directory store are on disk, in the file with the list of journals.
///
/// It is written after each sync of a journal and not synced itself, which would cost as much as the commit. The system
/// keeps it when the process is killed, so the next start knows whether frames are missing. After a power failure it may
/// be an older one. Any thread may use it.
final class SyncedPosition: Sendable {
  /// The file has two copies, each with the position and its CRC32C.
  private static let start = JournalList.fileByteCount
  private static let copyByteCount = 512
  private static let fieldsByteCount = 12
  /// The end of the copies in the file.
  static let end = start + 2 * copyByteCount

  private let file: any File
  private let state = Lock((position: UInt64(0), copy: 0))

  /// - Parameter file: The file with the list of journals.
  init(in file: any File) { self.file = file }

  /// Notes that all frames before a position are on disk. A failure costs only this note.
  func note(_ position: UInt64) {
    state.withLock { state in
      guard position > state.position else { return }
      var fields: [UInt8] = []
      fields.reserveCapacity(Self.fieldsByteCount)
      fields.append(littleEndian: position)
      fields.append(littleEndian: fields.checksum())
      guard (try? file.write(fields, at: Self.start + state.copy * Self.copyByteCount)) != nil else { return }
      state = (position, 1 - state.copy)
    }
  }

  /// Returns the greatest position of the valid copies; nil if there are none.
  /// - Parameter bytes: The beginning of the file.
  static func read(in bytes: [UInt8]) -> UInt64? {
    let positions = [start, start + copyByteCount].compactMap { offset -> UInt64? in
      guard bytes.count >= offset + fieldsByteCount else { return nil }
      let isValid = Array(bytes[offset..<offset + 8]).checksum() == bytes.integer(at: offset + 8, as: UInt32.self)
      return isValid ? bytes.integer(at: offset, as: UInt64.self) : nil
    }
    return positions.max()
  }
}
