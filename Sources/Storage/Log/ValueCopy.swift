import Platform

/// A value apart on its way from one segment into another, piece by piece. It has arrived only if it is what was once written.
///
/// Owned by a `Compaction`.
struct ValueCopy {
  private static let pieceByteCount = 256 << 10

  let key: [UInt8]
  let revision: UInt64
  let source: any File
  let sourceOffset: Int
  let byteCount: Int
  let checksum: UInt32
  /// How much comes before the value of what was collected without it.
  let position: Int
  private(set) var copied = 0
  private var crc: UInt32 = 0

  init(
    of operation: RecordOperation, revision: UInt64, from source: any File, at sourceOffset: Int, position: Int
  ) {
    key = unsafe Array(operation.key)
    self.revision = revision
    self.source = source
    self.sourceOffset = sourceOffset
    byteCount = operation.valueByteCount
    checksum = operation.valueChecksum
    self.position = position
  }

  var isComplete: Bool { copied == byteCount }

  /// Reads the next piece.
  mutating func next() throws(CompactionError) -> [UInt8] {
    let count = min(Self.pieceByteCount, byteCount - copied)
    guard let piece = try? source.bytes(at: sourceOffset + copied, count: count), piece.count == count else {
      throw .valueDamaged
    }
    crc = unsafe piece.withBytes { unsafe $0.checksum(after: crc) }
    copied += count
    guard !isComplete || crc == checksum else { throw .valueDamaged }
    return piece
  }

  /// Where the value lies, now that its copy ends there.
  func placed(in file: ValueFile, endingAt end: Int) -> PlacedValue {
    PlacedValue(
      key: key, revision: revision,
      value: StoredValue(file: file, offset: end - byteCount, byteCount: byteCount, checksum: checksum))
  }
}
