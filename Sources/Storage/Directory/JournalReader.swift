import Platform

/// Reads the frames of a journal that another thread appends to, up to an end that this thread has announced. Used by
/// the settling thread of a directory store.
struct JournalReader {
  let number: Int
  private let header: JournalHeader
  private let file: any File
  /// The end of the frames that were read.
  private(set) var end: Int
  /// The position after them.
  private(set) var position: UInt64

  /// - Parameters:
  ///   - end: The offset of the first frame to read.
  ///   - position: Its position.
  init(_ number: Int, in folder: DirectoryFolder, from end: Int = Journal.start, position: UInt64) throws(SystemError) {
    file = try folder.open(Journal.name(number), .reading)
    guard let header = JournalHeader(in: try file.bytes(at: 0, count: Journal.start), number: number) else {
      throw Self.damage(number, at: 0)
    }
    (self.number, self.header, self.end, self.position) = (number, header, end, position)
  }

  private static func damage(_ number: Int, at offset: Int) -> SystemError {
    SystemError("\(Journal.name(number)) is damaged at byte \(offset)", errno: 5)
  }

  /// Makes the journal durable as far as it was written before the call.
  func sync() throws(SystemError) { try file.sync() }

  /// Reads at most that many bytes of frames, but at least one frame.
  /// - Returns: The greatest revision; 0 if there was nothing to read.
  mutating func read(
    to last: Int, limit: Int, into pending: inout PendingOperations
  ) throws(SystemError) -> UInt64 {
    guard end < last else { return 0 }
    var bytes = try file.bytes(at: end, count: min(limit, last - end))
    if bytes.count >= 4 {
      let byteCount = header.frameHeaderByteCount + Int(bytes.integer(at: 0, as: UInt32.self))
      if byteCount > bytes.count { bytes = try file.bytes(at: end, count: min(byteCount, last - end)) }
    }
    let base = end
    var (offset, revision): (Int, UInt64) = (0, 0)
    while let frame = JournalFrame(in: bytes, at: offset, base: base, of: header), frame.position == position {
      do throws(CommitDamage) {
        let summary = try frame.addOperations(in: bytes, base: base, of: number, after: revision, to: &pending)
        revision = summary.lastRevision
      } catch {
        throw Self.damage(number, at: base + frame.records.lowerBound + error.offset)
      }
      offset = frame.end
      position += UInt64(frame.byteCount(header))
    }
    guard offset > 0 else { throw Self.damage(number, at: base) }
    end = base + offset
    return revision
  }
}
