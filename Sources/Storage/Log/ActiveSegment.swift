import Platform

/// The segment that commits are written to. Owned by one `LogWriter`.
struct ActiveSegment {
  private static let zeroes = [UInt8](repeating: 0, count: 64 << 10)

  private let file: any File
  private let values: ValueFile
  private let number: UInt64
  private let firstRevision: UInt64
  private let salt: UInt64
  private let capacity: Int
  /// The offset of the next record.
  private(set) var end = SegmentHeader.byteCount
  /// The end of the part that is on disk.
  private var synced = SegmentHeader.byteCount
  /// The end of the part that zeroes were written to.
  private var zeroed = SegmentHeader.byteCount
  private var hasUnsyncedZeroes = false

  /// - Parameter capacity: The allocated size of the file.
  init(_ file: any File, path: String, number: UInt64, firstRevision: UInt64, salt: UInt64, capacity: Int) {
    self.file = file
    values = ValueFile(file, path: path)
    self.number = number
    self.firstRevision = firstRevision
    self.salt = salt
    self.capacity = capacity
  }

  var path: String { values.path }

  var isEmpty: Bool { end == SegmentHeader.byteCount }

  /// Whether everything that was written is on disk.
  var isSynced: Bool { synced == end && !hasUnsyncedZeroes }

  /// Whether less than half of the space is available.
  var isHalfFull: Bool { space.availableByteCount < capacity / 2 }

  /// The space for records.
  var space: SegmentSpace { SegmentSpace(byteCount: capacity - end) }

  /// Writes zeroes after the next records, up to a multiple of 64 KiB, if these records are small and belong where nothing
  /// was written before. The file contains zeroes there anyway.
  ///
  /// In a file system such as ext4, the first write to allocated space also changes the file's extents, which must be on
  /// disk, too. For a small commit this takes as long as the rest. With the zeroes, few commits need it.
  mutating func writeZeroes(after recordByteCount: Int) throws(SystemError) {
    let start = end + LogFrame.byteCount + recordByteCount
    guard start > zeroed, recordByteCount <= Self.zeroes.count / 2 else { return }
    let count = min(capacity - start, Self.zeroes.count - start % Self.zeroes.count)
    unsafe try Self.zeroes.withBytes { (bytes) throws(SystemError) in
      unsafe try file.write(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: start)
    }
    zeroed = start + count
    hasUnsyncedZeroes = true
  }

  /// Writes records that fit, in a frame of their own.
  mutating func append(_ records: UnsafeRawBufferPointer) throws(SystemError) {
    let offset = end
    unsafe try frame(of: records).withBytes { (frame) throws(SystemError) in
      unsafe try file.write(frame, records, at: offset)
    }
    end += LogFrame.byteCount + records.count
  }

  /// Writes records that fit, in a frame of their own, and makes them durable. All records before them must be durable
  /// already.
  mutating func appendDurably(_ records: UnsafeRawBufferPointer) throws(SystemError) {
    precondition(isSynced)
    let offset = end
    unsafe try frame(of: records).withBytes { (frame) throws(SystemError) in
      unsafe try file.writeDurably(frame, records, at: offset)
    }
    end += LogFrame.byteCount + records.count
    synced = end
  }

  private func frame(of records: UnsafeRawBufferPointer) -> LogFrame {
    LogFrame(recordByteCount: records.count, salt: salt, syncedByteCount: synced, at: end)
  }

  mutating func sync() throws(SystemError) {
    try file.sync()
    synced = end
    hasUnsyncedZeroes = false
  }

  /// Returns the locations of the separated values in the records that were written last.
  func locations(ofLast records: UnsafeRawBufferPointer) -> [ValueLocation] {
    unsafe ValueLocation.all(in: records, at: end - records.count, of: values)
  }

  /// Writes the trailer, and frees the space after it.
  /// - Parameter lastRevision: The revision of the log's last record.
  func seal(lastRevision: UInt64) throws(SystemError) -> SealedSegment {
    let last = max(lastRevision, firstRevision - 1)
    let byteCount = end + SegmentTrailer.byteCount
    try file.write(SegmentTrailer(offset: end, lastRevision: last, secret: salt).bytes, at: end)
    try file.sync()
    try file.truncate(to: byteCount)
    return SealedSegment(
      number: number, lastNumber: number, firstRevision: firstRevision, lastRevision: last, sweptRevision: 0,
      salt: salt, byteCount: byteCount, tombstoneByteCount: nil, liveByteCount: byteCount)
  }
}

/// The rest of a segment, which has room for frames of records and for the trailer.
struct SegmentSpace {
  let byteCount: Int

  /// The maximum size of the records of a frame that fits.
  var maxFrameByteCount: Int { max(0, min(byteCount - LogFrame.byteCount - SegmentTrailer.byteCount, Int(UInt32.max))) }

  /// The number of bytes of records that fit, however they are divided into frames. Two neighboring frames of a run
  /// have more than the usual size together, and there are up to three runs: one that is divided between two segments,
  /// and one that is committed meanwhile.
  var availableByteCount: Int {
    let frameCount = 3 + 2 * byteCount / LogFrame.usualRecordByteCount
    return max(0, byteCount - frameCount * LogFrame.byteCount - SegmentTrailer.byteCount)
  }

  /// The number of bytes that a segment needs for a record.
  static func byteCount(fitting recordByteCount: Int) -> Int {
    SegmentHeader.byteCount + recordByteCount + LogFrame.byteCount + SegmentTrailer.byteCount
  }
}
