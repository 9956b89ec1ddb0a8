import Platform

/// The segment that commits are written to. Owned by one `LogWriter`.
struct ActiveSegment {
  private static let zeroes = [UInt8](repeating: 0, count: 64 << 10)

  private let values: ValueFile
  private let number: UInt64
  private let firstRevision: UInt64
  private let capacity: Int
  /// The offset of the next record.
  private(set) var end = SegmentHeader.byteCount
  /// The end of the part that is on disk.
  private var synced = SegmentHeader.byteCount
  /// The end of the part that zeroes were written to.
  private var zeroed = SegmentHeader.byteCount
  private var hasUnsyncedZeroes = false
  /// The end of the part that the last sync mark covers.
  private var marked = SegmentHeader.byteCount

  /// - Parameter capacity: The allocated size of the file.
  init(values: ValueFile, number: UInt64, firstRevision: UInt64, capacity: Int) {
    self.values = values
    self.number = number
    self.firstRevision = firstRevision
    self.capacity = capacity
  }

  var path: String { values.path }

  var isEmpty: Bool { end == SegmentHeader.byteCount }

  /// Whether everything that was written is on disk.
  var isSynced: Bool { synced == end && !hasUnsyncedZeroes }

  /// Whether less than half of the space is available.
  var isHalfFull: Bool { availableByteCount < capacity / 2 }

  /// The space for records: a mark and the trailer must fit, too.
  var availableByteCount: Int { max(0, capacity - end - SyncMark.byteCount - SegmentTrailer.byteCount) }

  /// Writes zeroes after the next records, up to a multiple of 64 KiB, if these records are small and belong where nothing
  /// was written before. The file contains zeroes there anyway.
  ///
  /// In a file system such as ext4, the first write to allocated space also changes the file's extents, which must be on
  /// disk, too. For a small commit this takes as long as the rest. With the zeroes, few commits need it.
  mutating func writeZeroes(after recordByteCount: Int) throws(SystemError) {
    let start = end + recordByteCount
    guard start > zeroed, recordByteCount <= Self.zeroes.count / 2 else { return }
    let (file, count) = (values.file, min(capacity - start, Self.zeroes.count - start % Self.zeroes.count))
    unsafe try Self.zeroes.withBytes { (bytes) throws(SystemError) in
      unsafe try file.write(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: start)
    }
    zeroed = start + count
    hasUnsyncedZeroes = true
  }

  /// Writes records that fit.
  mutating func append(_ records: UnsafeRawBufferPointer) throws(SystemError) {
    unsafe try values.file.write(records, at: end)
    end += records.count
  }

  /// Writes records that fit, and makes them durable. All records before them must be durable already.
  mutating func appendDurably(_ records: UnsafeRawBufferPointer) throws(SystemError) {
    precondition(isSynced)
    unsafe try values.file.writeDurably(records, at: end)
    end += records.count
    synced = end
  }

  /// Writes a sync mark if that many bytes have been synced since the last one.
  /// - Parameter lastRevision: The revision of the log's last record.
  mutating func appendMark(interval: Int, lastRevision: UInt64, identity: UInt64) throws(SystemError) {
    guard synced - marked >= interval else { return }
    let mark = SyncMark(
      revision: max(max(firstRevision, 1) - 1, lastRevision), identity: identity, syncedByteCount: synced)
    try values.file.write(mark.bytes, at: end)
    marked = synced
    end += SyncMark.byteCount
  }

  mutating func sync() throws(SystemError) {
    try values.file.sync()
    synced = end
    hasUnsyncedZeroes = false
  }

  /// Returns the locations of the separated values in the records that were written last.
  func locations(ofLast records: UnsafeRawBufferPointer) -> [ValueLocation] {
    unsafe ValueLocation.all(in: records, at: end - records.count, of: values)
  }

  /// Writes the trailer, and frees the space after it.
  /// - Parameter lastRevision: The revision of the log's last record.
  func seal(lastRevision: UInt64, identity: UInt64) throws(SystemError) -> SealedSegment {
    let last = max(lastRevision, firstRevision - 1)
    let byteCount = end + SegmentTrailer.byteCount
    try values.file.write(SegmentTrailer(offset: end, lastRevision: last, identity: identity).bytes, at: end)
    try values.file.sync()
    try values.file.truncate(to: byteCount)
    return SealedSegment(
      number: number, lastNumber: number, firstRevision: firstRevision, lastRevision: last, sweptRevision: 0,
      byteCount: byteCount, tombstoneByteCount: nil, liveByteCount: byteCount)
  }
}
