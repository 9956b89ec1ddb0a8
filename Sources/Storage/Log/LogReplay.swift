import Platform

/// Loads the records of segments into a map, in order.
struct LogReplay {
  /// How a segment ends.
  struct SegmentEnd {
    /// The end of the last intact record.
    let offset: Int
    /// The end of the part that was certainly on disk when the last of these records was written.
    let synced: Int
    let lastRevision: UInt64
    let isSealed: Bool
    /// The size of the torn tail of an unsealed segment.
    let tornByteCount: Int
    let tombstoneByteCount: Int
  }

  private let now: ClockReading
  private var loader = BulkLoader()
  private(set) var recordCount = 0
  /// The last revision of the segments read so far.
  private var lastRevision: UInt64 = 0

  init(now: ClockReading) { self.now = now }

  /// Reads one segment. Separated values stay where they are. In a sealed segment they are not even verified: they were
  /// on disk, and are verified when they are read.
  /// - Parameter progress: Called repeatedly with how many of the segment's bytes have been read.
  /// - Throws: `damaged`, unless the broken part is the torn tail of the last segment.
  mutating func read(
    _ segment: SegmentFile, isLast: Bool, into map: inout EntryMap, progress: (Int) -> Void
  ) throws(LogError) -> SegmentEnd {
    var isSealed = !isLast
    if isLast {
      isSealed = try LogError.wrapping(segment.path) { () throws(SystemError) in try segment.endsWithTrailer() }
    }
    var reader = SegmentReader(segment, verifiesValues: !isSealed, after: lastRevision)
    defer { lastRevision = reader.lastRevision }
    let file = ValueFile(segment.file, path: segment.path)
    var tombstoneByteCount = 0
    while true {
      let chunk = try reader.next()
      if chunk.isEmpty { break }
      do throws(StorageError) {
        tombstoneByteCount += try load(chunk, of: file, into: &map)
      } catch {
        throw .noMemory(error)
      }
      progress(reader.end)
    }
    if case .sealed(let trailer) = reader.state {
      return SegmentEnd(
        offset: reader.end, synced: reader.end, lastRevision: max(reader.lastRevision, trailer.lastRevision),
        isSealed: true, tornByteCount: 0, tombstoneByteCount: tombstoneByteCount)
    }
    var reason = "the segment doesn't end as it should"
    if case .damaged(let description) = reader.state { reason = description }
    let damage = LogError.damaged(path: segment.path, offset: reader.end, reason: reason)
    guard isLast, !segment.header.isMadeByCompaction else { throw damage }
    let tail = try reader.tornTail()
    guard !tail.wasSynced else { throw damage }
    return SegmentEnd(
      offset: reader.end, synced: reader.synced, lastRevision: reader.lastRevision, isSealed: false,
      tornByteCount: tail.byteCount, tombstoneByteCount: tombstoneByteCount)
  }

  /// Loads the records of a chunk.
  /// - Returns: The size of the tombstones among them.
  private mutating func load(
    _ chunk: SegmentChunk, of file: ValueFile, into map: inout EntryMap
  ) throws(StorageError) -> Int {
    var tombstoneByteCount = 0
    let count = try chunk.visit { (operation, revision, valueOffset) throws(StorageError) in
      if operation.isRemoval {
        unsafe tombstoneByteCount += CommitBuffer.operationHeaderByteCount + operation.key.count
      }
      if operation.isSeparated {
        let value = SeparatedValue(
          file: file, offset: valueOffset, byteCount: operation.valueByteCount, checksum: operation.valueChecksum)
        try apply(operation, revision: revision, value, to: &map)
      } else {
        try apply(operation, revision: revision, nil, to: &map)
      }
    }
    recordCount &+= count
    try loader.flush(into: &map)
    return tombstoneByteCount
  }

  /// - Parameter separated: A reference to the value if it is separated.
  @inline(__always)
  private mutating func apply(
    _ operation: RecordOperation, revision: UInt64, _ separated: SeparatedValue?, to map: inout EntryMap
  ) throws(StorageError) {
    switch operation.kind {
    case 1, 2:
      var expiry: UInt64 = 0
      if operation.expiry != 0 {
        guard operation.expiry > now.wall else {
          unsafe try loader.remove(operation.key, revision: revision, from: &map)
          return
        }
        expiry = now.monotonic &+ (operation.expiry &- now.wall)
      }
      let kind: EntryKind = operation.kind == 1 ? .single : .list
      if let separated {
        unsafe try loader.put(operation.key, separated, kind: kind, expiry: expiry, revision: revision, into: &map)
      } else {
        unsafe try loader.put(
          operation.key, operation.value, kind: kind, expiry: expiry, revision: revision, into: &map)
      }
    case 3: unsafe try loader.remove(operation.key, revision: revision, from: &map)
    case 4: try loader.removeAll(revision: revision, from: &map)
    default: break
    }
  }

  mutating func finish(_ map: inout EntryMap, revision: UInt64) throws(StorageError) {
    try loader.finish(&map, revision: revision)
  }
}
