import Platform

/// The rewriting of neighbouring segments into one that has only what is live.
///
/// It takes its sources' place in one step, by renaming, when it is on the disk and so is everything that made the rest dead. Owned by one
/// `LogSink`, made and looked at on the journal's thread, and run on the thread of a `CompactionRunner`.
///
/// Safe because the runner has all but `phase` to itself until it leaves a phase, which is behind a lock.
final class Compaction: @unchecked Sendable {
  /// What becomes of an operation.
  private enum Fate: UInt8 {
    case kept, dropped
    /// A put that has expired, with nothing newer of its key: older puts must not come back.
    case buried
  }

  /// The sources, as they stand in the list of sealed segments.
  let run: Range<Int>
  let header: SegmentHeader
  /// Removals of this revision and older ones have nothing left to remove in the segments before.
  private let buriedRevision: UInt64
  private let folder: LogFolder
  private let file: any File
  private var sources: [FoundSegment]
  /// The numbers of the sources.
  private let replaced: [UInt64]
  private var reader: SegmentReader
  private var capacity = 0
  /// Everything before this place is on the disk.
  private var synced = 0
  /// Where the next record goes.
  private(set) var end = SegmentHeader.byteCount
  private(set) var tombstoneBytes = 0
  /// What must be on the disk before the sources may go: the store's revision when it was last asked what is live.
  private(set) var neededRevision: UInt64 = 0
  private var output = CommitBuffer()
  private let current = Lock(Phase.copying)

  /// Opens the sources and makes the file.
  init(_ folder: LogFolder, _ segments: [SealedSegment], run: Range<Int>, identity: UInt64, revision: UInt64)
    throws(SystemError)
  {
    self.folder = folder
    self.run = run
    let (first, last) = (segments[run.lowerBound], segments[run.upperBound - 1])
    header = SegmentHeader(
      identity: identity, number: first.number, lastNumber: last.lastNumber, firstRevision: first.firstRevision,
      lastRevision: last.lastRevision, sweptRevision: revision)
    buriedRevision = segments[..<run.lowerBound].map(\.sweptRevision).min() ?? .max
    replaced = segments[run].map(\.number)
    var sources: [FoundSegment] = []
    for segment in segments[run] {
      let path = folder.segmentPath(segment.number)
      let file = try folder.files.open(path, .reading)
      let header = SegmentHeader(
        identity: identity, number: segment.number, lastNumber: segment.lastNumber,
        firstRevision: segment.firstRevision)
      sources.append(
        FoundSegment(
          files: folder.files, path: path, file: file, byteCount: try file.byteCount(), header: header))
    }
    reader = SegmentReader(sources.removeFirst())
    self.sources = sources
    if try folder.files.kind(of: folder.compactionPath) != nil { try folder.files.remove(folder.compactionPath) }
    file = try folder.files.open(folder.compactionPath, .making)
    try ensure(SegmentHeader.byteCount)
    try file.write(header.bytes, at: 0)
  }

  /// Takes a bounded piece of the sources over.
  /// - Returns: whether there is more.
  func step(_ store: Store) throws(CompactionError) -> Bool {
    let piece: UnsafeRawBufferPointer
    do throws(LogError) { unsafe piece = try reader.next() } catch { throw .damaged("\(error)") }
    guard piece.count > 0 else {
      guard case .sealed = reader.state else {
        throw .damaged("\(folder.segmentPath(header.number)) or one merged with it is damaged at byte \(reader.end)")
      }
      guard !sources.isEmpty else { return false }
      reader = SegmentReader(sources.removeFirst())
      return true
    }
    let fates = unsafe self.fates(of: piece, in: store)
    unsafe collect(piece, fates)
    let bytes = unsafe output.bytes
    if bytes.count > 0 {
      do throws(SystemError) {
        try ensure(end + bytes.count + SegmentTrailer.byteCount)
        unsafe try file.write(bytes, at: end)
        end += bytes.count
        // Little by little: commits would wait long for all of it at the end.
        if end - synced >= 1 << 20 {
          try file.sync()
          synced = end
        }
      } catch {
        throw .system(error)
      }
    }
    output.removeAll()
    return true
  }

  var phase: Phase { current.withLock { $0 } }

  func enter(_ phase: Phase) { current.withLock { $0 = phase } }

  /// Ends the file, and puts it on the disk and in its sources' place.
  func finish() throws(SystemError) -> Int {
    let trailer = SegmentTrailer(offset: end, lastRevision: header.lastRevision, identity: header.identity)
    try file.write(trailer.bytes, at: end)
    try file.truncate(to: end + SegmentTrailer.byteCount)
    try file.sync()
    try folder.files.rename(folder.compactionPath, to: folder.segmentPath(header.number))
    try folder.files.syncFolder(folder.path)
    for number in replaced.dropFirst() { try folder.files.remove(folder.segmentPath(number)) }
    return end + SegmentTrailer.byteCount
  }

  /// Takes the disk's space before it is written to, so that a full disk shows here.
  private func ensure(_ byteCount: Int) throws(SystemError) {
    guard byteCount > capacity else { return }
    let wanted = max(byteCount, capacity + min(1 << 20, max(4_096, capacity)))
    try file.allocate(wanted)
    capacity = wanted
  }

  /// What becomes of each operation of the records, in turn.
  private func fates(of records: UnsafeRawBufferPointer, in store: Store) -> [Fate] {
    var fates: [Fate] = []
    let revision = store.access { map in
      unsafe Self.visit(records) { operation, revision in
        fates.append(fate(of: operation, revision, in: map))
      }
      return map.revision
    }
    neededRevision = max(neededRevision, revision)
    return fates
  }

  private func fate(of operation: LogOperation, _ revision: UInt64, in map: borrowing EntryMap) -> Fate {
    if operation.kind == SyncMark.kind { return .dropped }
    if operation.kind == CommitBuffer.Kind.deleteAll.rawValue { return revision <= buriedRevision ? .dropped : .kept }
    let key = unsafe Key(start: operation.key.baseAddress!, count: operation.key.count)
    let handle = map.find(key, hash: map.hashIndex.hash(key))
    if operation.isRemoval { return handle != 0 || revision <= buriedRevision ? .dropped : .kept }
    if handle != 0 { return map.record(handle).revision == revision ? .kept : .dropped }
    return operation.expiry != 0 && revision > buriedRevision ? .buried : .dropped
  }

  private func collect(_ records: UnsafeRawBufferPointer, _ fates: [Fate]) {
    var index = 0
    unsafe Self.visit(records) { operation, revision in
      let fate = fates[index]
      index += 1
      if fate == .dropped { return }
      if fate == .buried || operation.isRemoval { unsafe tombstoneBytes += 24 + operation.key.count }
      if fate == .buried || operation.kind == CommitBuffer.Kind.delete.rawValue {
        unsafe output.delete(operation.key, revision: revision)
      } else if let kind = CommitBuffer.Kind(rawValue: operation.kind), kind != .deleteAll {
        unsafe output.put(
          operation.key, operation.value, kind: kind, expiry: operation.expiry, revision: revision)
      } else {
        output.deleteAll(revision: revision)
      }
    }
    output.seal()
  }

  private static func visit(_ records: UnsafeRawBufferPointer, _ body: (LogOperation, UInt64) -> Void) {
    var start = 0
    while start < records.count {
      let end = unsafe start &+ CommitBuffer.recordHeaderByteCount &+ Int(records.integer(at: start, as: UInt32.self))
      let record = unsafe UnsafeRawBufferPointer(rebasing: records[start..<end])
      let revision = unsafe record.integer(at: 8, as: UInt64.self)
      var place = CommitBuffer.recordHeaderByteCount &+ 8
      while place < record.count {
        guard let operation = unsafe LogOperation(in: record, at: place) else { preconditionFailure("it was checked") }
        body(operation, revision)
        place = operation.end
      }
      start = end
    }
  }
}

/// Why a compaction can't go on.
enum CompactionError: Error, Sendable {
  case damaged(String)
  case system(SystemError)
}
