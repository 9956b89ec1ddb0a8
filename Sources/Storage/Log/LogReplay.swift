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
  private var loader = MapLoader()
  private(set) var recordCount = 0

  init(now: UInt64, unixNow: UInt64) {
    self.now = now
    self.unixNow = unixNow
  }

  /// Reads one segment.
  /// - Throws: `damaged`, unless what is broken is the torn tail of the last one.
  mutating func read(
    _ segment: FoundSegment, isLast: Bool, into map: inout EntryMap
  ) throws(LogError) -> Ending {
    var reader = SegmentReader(segment)
    var tombstoneBytes = 0
    while true {
      let piece = unsafe try reader.next()
      if piece.count == 0 { break }
      do throws(StorageError) {
        unsafe tombstoneBytes += try load(piece, into: &map)
      } catch {
        throw .noMemory(error)
      }
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

  /// Loads whole records.
  /// - Returns: what removals among them take.
  private mutating func load(
    _ records: UnsafeRawBufferPointer, into map: inout EntryMap
  ) throws(StorageError) -> Int {
    var (start, tombstoneBytes) = (0, 0)
    while start < records.count {
      let end = unsafe start &+ CommitBuffer.recordHeaderByteCount &+ Int(records.integer(at: start, as: UInt32.self))
      let record = unsafe UnsafeRawBufferPointer(rebasing: records[start..<end])
      let revision = unsafe record.integer(at: 8, as: UInt64.self)
      var place = CommitBuffer.recordHeaderByteCount &+ 8
      while place < record.count {
        guard let operation = unsafe LogOperation(in: record, at: place) else { preconditionFailure("it was checked") }
        if operation.isRemoval { tombstoneBytes += operation.end - place }
        try apply(operation, revision: revision, to: &map)
        place = operation.end
      }
      recordCount &+= 1
      start = end
    }
    try loader.flush(into: &map)
    return tombstoneBytes
  }

  @inline(__always)
  private mutating func apply(
    _ operation: LogOperation, revision: UInt64, to map: inout EntryMap
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
      unsafe try loader.put(
        operation.key, operation.value, kind: operation.kind == 1 ? .single : .list, expiry: expiry,
        revision: revision, into: &map)
    case 3: unsafe try loader.remove(operation.key, revision: revision, from: &map)
    case 4: try loader.removeAll(revision: revision, from: &map)
    default: break
    }
  }

  mutating func finish(_ map: inout EntryMap, revision: UInt64) throws(StorageError) {
    try loader.finish(&map, revision: revision)
  }
}
