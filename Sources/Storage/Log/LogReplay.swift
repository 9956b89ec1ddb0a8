import Platform

/// Loads the records of segments into a map, in order.
struct LogReplay {
  /// What a segment came to.
  struct Ending {
    /// Where its last whole record ends.
    var end: Int
    var lastRevision: UInt64
    var isSealed: Bool
    /// What is behind the end of an unsealed segment.
    var tornBytes = 0
    var tombstoneBytes = 0
  }

  let now: UInt64
  let unixNow: UInt64
  private var loader = BulkLoader()
  private(set) var recordCount = 0
  /// Of the segments that were read.
  private var lastRevision: UInt64 = 0

  init(now: UInt64, unixNow: UInt64) {
    self.now = now
    self.unixNow = unixNow
  }

  /// Reads one segment. Values apart stay where they are, and of a sealed segment they are not even looked at: they have been on the disk,
  /// and are checked when they are read.
  /// - Parameter progress: called a piece with how many of the segment's bytes are read.
  /// - Throws: `damaged`, unless what is broken is the torn tail of the last one.
  mutating func read(
    _ segment: FoundSegment, isLast: Bool, into map: inout EntryMap, progress: (Int) -> Void
  ) throws(LogError) -> Ending {
    var isSealed = !isLast
    if isLast {
      isSealed = try LogError.on(segment.path) { () throws(SystemError) in try segment.endsWithTrailer() }
    }
    var reader = SegmentReader(segment, verifiesValues: !isSealed)
    reader.lastRevision = max(reader.lastRevision, lastRevision)
    defer { lastRevision = reader.lastRevision }
    let file = ValueFile(segment.file, path: segment.path)
    var tombstoneBytes = 0
    while true {
      let piece = try reader.next()
      if piece.isEmpty { break }
      do throws(StorageError) {
        tombstoneBytes += try load(piece, of: file, into: &map)
      } catch {
        throw .noMemory(error)
      }
      progress(reader.end)
    }
    var ending = Ending(
      end: reader.end, lastRevision: reader.lastRevision, isSealed: false, tombstoneBytes: tombstoneBytes)
    if case .sealed(let trailer) = reader.state {
      ending.isSealed = true
      ending.lastRevision = max(ending.lastRevision, trailer.lastRevision)
      return ending
    }
    var what = "the segment doesn't end as it should"
    if case .damaged(let reason) = reader.state { what = reason }
    let damage = LogError.damaged(path: segment.path, offset: reader.end, what: what)
    guard isLast else { throw damage }
    let (end, byteCount, identity) = (reader.end, reader.byteCount, reader.identity)
    let tail = try LogError.on(segment.path) { () throws(SystemError) in
      try TornTail(of: segment.file, from: end, fileByteCount: byteCount, identity: identity)
    }
    guard !tail.wasSynced else { throw damage }
    ending.tornBytes = tail.byteCount
    return ending
  }

  /// Loads the records of a piece.
  /// - Returns: what removals among them take.
  private mutating func load(
    _ piece: SegmentPiece, of file: ValueFile, into map: inout EntryMap
  ) throws(StorageError) -> Int {
    var tombstoneBytes = 0
    let count = try piece.visit { (operation, revision, valueOffset) throws(StorageError) in
      if operation.isRemoval { unsafe tombstoneBytes += CommitBuffer.operationHeaderByteCount + operation.key.count }
      if operation.isSeparated {
        let value = StoredValue(
          file: file, offset: valueOffset, byteCount: operation.valueByteCount, checksum: operation.valueChecksum)
        try apply(operation, revision: revision, value, to: &map)
      } else {
        try apply(operation, revision: revision, nil, to: &map)
      }
    }
    recordCount &+= count
    try loader.flush(into: &map)
    return tombstoneBytes
  }

  /// - Parameter stored: where the value lies, if it is apart.
  @inline(__always)
  private mutating func apply(
    _ operation: RecordOperation, revision: UInt64, _ stored: StoredValue?, to map: inout EntryMap
  ) throws(StorageError) {
    switch operation.kind {
    case 1, 2:
      var expiry: UInt64 = 0
      if operation.expiry != 0 {
        guard operation.expiry > unixNow else {
          unsafe try loader.remove(operation.key, revision: revision, from: &map)
          return
        }
        expiry = now &+ (operation.expiry &- unixNow)
      }
      let kind: EntryKind = operation.kind == 1 ? .single : .list
      if let stored {
        unsafe try loader.put(operation.key, stored, kind: kind, expiry: expiry, revision: revision, into: &map)
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
