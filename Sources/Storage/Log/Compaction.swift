import Platform

/// The rewriting of neighboring segments into one that has only their live records.
///
/// The output replaces its sources in one step, by renaming, when it is on disk and so is everything that made the rest
/// dead. One `LogMaintenance` owns it. The commit thread starts and observes it; the thread of a `CompactionRunner`
/// runs it.
///
/// Safe because the runner has everything except `phase` to itself until it leaves a phase, and `phase` is behind a
/// lock.
final class Compaction: @unchecked Sendable {
  enum Phase {
    /// The runner copies the live records.
    case copying
    /// Everything is written. What made the rest dead must be on disk before the commit thread continues: everything
    /// up to that revision of the store.
    case copied(neededRevision: UInt64)
    /// The runner puts the file in its sources' place.
    case replacing
    /// The output is in place, with separated values at these locations.
    case replaced(SealedSegment, [ValueLocation])
    case failed(CompactionError)
  }

  /// What the output contains in place of an operation.
  private enum Retention: UInt8 {
    case keep, drop
    /// The put has expired, and the map has nothing newer for its key: a tombstone keeps older puts from coming back.
    case replaceWithTombstone
  }

  /// The write rate at which the space of sources is freed: in pieces small enough not to delay commits, but much
  /// faster than space is used.
  private static let freedBytesPerSecond = 512 << 20
  private static let freedPieceByteCount = 1 << 20

  /// The sources, as indices of the sealed segments.
  let run: Range<Int>
  private let header: SegmentHeader
  /// The newest revision whose tombstones have nothing left to remove in the segments before the sources.
  private let obsoleteTombstoneRevision: UInt64
  private let folder: LogFolder
  private let openFolder: any Folder
  private let file: any File
  private let values: ValueFile
  /// The sources that have not been started.
  private var sources: [SegmentFile]
  /// The numbers of all sources.
  private let sourceNumbers: [UInt64]
  private var source: any File
  /// Whether the source has separated values, which clients may read even when the file has no name any more.
  private var hasSeparatedValues = false
  /// Sources that are not needed any more.
  private var obsoleteFiles: [any File] = []
  private var reader: SegmentReader
  private var capacity = 0
  /// The end of the part that is on disk.
  private var synced = 0
  /// The offset of the next record.
  private var end = SegmentHeader.byteCount
  private var tombstoneByteCount = 0
  /// The revision that must be on disk before the sources are replaced: the store's revision when the map was last
  /// asked what is live.
  private var neededRevision: UInt64 = 0
  /// The locations of the separated values in the output.
  private var locations: [ValueLocation] = []
  /// The collected records without their separated values, how much of them is written, and the values to insert.
  private var output = CommitBuffer()
  private var writtenByteCount = 0
  private var valueCopies: [ValueCopy] = []
  private let currentPhase = Lock(Phase.copying)

  /// Opens the sources and creates the output.
  init(
    _ folder: LogFolder, _ openFolder: any Folder, _ segments: [SealedSegment], run: Range<Int>, identity: UInt64,
    salt: UInt64, revision: UInt64
  ) throws(SystemError) {
    self.folder = folder
    self.openFolder = openFolder
    self.run = run
    let (first, last) = (segments[run.lowerBound], segments[run.upperBound - 1])
    header = SegmentHeader(
      identity: identity, number: first.number, lastNumber: last.lastNumber, firstRevision: first.firstRevision,
      lastRevision: last.lastRevision, sweptRevision: revision, salt: salt)
    obsoleteTombstoneRevision = segments[..<run.lowerBound].map(\.sweptRevision).min() ?? .max
    sourceNumbers = segments[run].map(\.number)
    var sources: [SegmentFile] = []
    for segment in segments[run] {
      let path = folder.segmentPath(segment.number)
      let file = try folder.openForWriting(path)
      let header = SegmentHeader(
        identity: identity, number: segment.number, lastNumber: segment.lastNumber,
        firstRevision: segment.firstRevision, salt: segment.salt)
      sources.append(
        SegmentFile(path: path, file: file, byteCount: try file.byteCount(), header: header))
    }
    let source = sources.removeFirst()
    self.source = source.file
    // A value is verified when it is copied.
    reader = SegmentReader(source, verifiesValues: false)
    self.sources = sources
    file = try folder.create(folder.compactionPath)
    values = ValueFile(file, path: folder.segmentPath(header.number))
    try allocate(SegmentHeader.byteCount)
    try file.write(header.bytes, at: 0)
  }

  // MARK: Phases

  var phase: Phase { currentPhase.withLock { $0 } }

  /// Starts copying, and wakes the commit thread when that is done.
  func copy(_ context: any MaintenanceContext, on runner: any CompactionRunner, bytesPerSecond: Int) {
    enter(.copying)
    runner.run(bytesPerSecond: bytesPerSecond) { [self] in
      let before = end
      do throws(CompactionError) {
        if try step(context) { return end - before }
        enter(.copied(neededRevision: neededRevision))
      } catch {
        enter(.failed(error))
      }
      context.wake()
      return nil
    }
  }

  /// Starts replacing the sources, and wakes the commit thread when that is done.
  func replaceSources(_ context: any MaintenanceContext, on runner: any CompactionRunner) {
    enter(.replacing)
    runner.run(bytesPerSecond: Self.freedBytesPerSecond) { [self] in
      do throws(CompactionError) {
        enter(.replaced(try finish(), locations))
      } catch {
        enter(.failed(error))
      }
      context.wake()
      return nil
    }
    runner.run(bytesPerSecond: Self.freedBytesPerSecond) { [self] in
      // Nothing waits for this. Unless the sources are replaced for good, they are still needed.
      if case .replaced = phase { freeNextPiece() } else { nil }
    }
  }

  private func enter(_ phase: Phase) { currentPhase.withLock { $0 = phase } }

  // MARK: Copying

  /// Copies a bounded piece of the sources.
  /// - Returns: Whether there is more.
  private func step(_ context: any MaintenanceContext) throws(CompactionError) -> Bool {
    if try writeOutput() { return true }
    let chunk: SegmentChunk
    do throws(LogError) { chunk = try reader.next() } catch { throw .damaged("\(error)") }
    guard !chunk.isEmpty else {
      guard case .sealed = reader.state else {
        throw .damaged("\(folder.segmentPath(header.number)) or one merged with it is damaged at byte \(reader.end)")
      }
      if !hasSeparatedValues { obsoleteFiles.append(source) }
      hasSeparatedValues = false
      guard !sources.isEmpty else { return false }
      let next = sources.removeFirst()
      source = next.file
      reader = SegmentReader(next, verifiesValues: false)
      return true
    }
    collect(chunk, retentions(of: chunk, context))
    try writeFrame()
    _ = try writeOutput()
    return true
  }

  /// Returns what to do with each operation of the chunk, in order.
  private func retentions(of chunk: SegmentChunk, _ context: any MaintenanceContext) -> [Retention] {
    let (retentions, revision) = context.read { map in
      var retentions: [Retention] = []
      chunk.visit { operation, revision, _ in retentions.append(retention(of: operation, revision, in: map)) }
      return (retentions, map.commitRevision)
    }
    neededRevision = max(neededRevision, revision)
    return retentions
  }

  private func retention(
    of operation: RecordOperation, _ revision: UInt64, in map: borrowing EntryMap
  ) -> Retention {
    if operation.kind == SyncMark.kind { return .drop }
    let isTombstoneObsolete = revision <= obsoleteTombstoneRevision
    if operation.kind == CommitBuffer.Kind.deleteAll.rawValue { return isTombstoneObsolete ? .drop : .keep }
    let key = unsafe Key(start: operation.key.baseAddress!, count: operation.key.count)
    let handle = map.find(key, hash: map.hashIndex.hash(key))
    if operation.isRemoval { return handle != 0 || isTombstoneObsolete ? .drop : .keep }
    if handle != 0 { return map.record(handle).revision == revision ? .keep : .drop }
    return operation.expiry != 0 && !isTombstoneObsolete ? .replaceWithTombstone : .drop
  }

  private func collect(_ chunk: SegmentChunk, _ retentions: [Retention]) {
    var index = 0
    chunk.visit { operation, revision, valueOffset in
      if operation.isSeparated { hasSeparatedValues = true }
      let retention = retentions[index]
      index += 1
      if retention == .drop { return }
      if retention == .replaceWithTombstone || operation.isRemoval {
        unsafe tombstoneByteCount += 24 + operation.key.count
      }
      if retention == .replaceWithTombstone || operation.kind == CommitBuffer.Kind.delete.rawValue {
        unsafe output.delete(operation.key, revision: revision)
      } else if let kind = CommitBuffer.Kind(rawValue: operation.kind), kind != .deleteAll {
        if operation.isSeparated {
          unsafe output.put(
            operation.key, omittingValueOf: operation.valueByteCount, checksum: operation.valueChecksum, kind: kind,
            expiry: operation.expiry, revision: revision)
          valueCopies.append(
            ValueCopy(of: operation, revision: revision, from: source, at: valueOffset, position: output.count))
        } else {
          unsafe output.put(
            operation.key, operation.value, kind: kind, expiry: operation.expiry, revision: revision)
        }
      } else {
        output.deleteAll(revision: revision)
      }
    }
    output.seal()
  }

  /// Writes the header of the frame of the collected records and values.
  private func writeFrame() throws(CompactionError) {
    let byteCount = valueCopies.reduce(output.count) { $0 + $1.byteCount }
    guard byteCount > 0, let salt = header.salt else { return }
    let frame = LogFrame(recordByteCount: byteCount, salt: salt, syncedByteCount: synced, at: end)
    unsafe try frame.withBytes { (bytes) throws(CompactionError) in unsafe try write(bytes) }
  }

  /// Writes a bounded piece of the collected records and values.
  /// - Returns: Whether there is more.
  private func writeOutput() throws(CompactionError) -> Bool {
    guard !output.isEmpty else { return false }
    // Write up to the next value, or everything.
    let count = (valueCopies.first?.position ?? output.count) - writtenByteCount
    if count > 0 {
      let bytes = unsafe UnsafeRawBufferPointer(rebasing: output.bytes[writtenByteCount..<writtenByteCount + count])
      unsafe try write(bytes)
      writtenByteCount += count
    } else if var copy = valueCopies.first {
      let piece = try copy.next()
      unsafe try piece.withBytes { (bytes) throws(CompactionError) in unsafe try write(bytes) }
      if copy.isComplete {
        locations.append(copy.location(in: values, endingAt: end))
        valueCopies.removeFirst()
      } else {
        valueCopies[0] = copy
      }
    }
    guard valueCopies.isEmpty, writtenByteCount == output.count else { return true }
    output.removeAll()
    writtenByteCount = 0
    return false
  }

  private func write(_ bytes: UnsafeRawBufferPointer) throws(CompactionError) {
    do throws(SystemError) {
      try allocate(end + bytes.count + SegmentTrailer.byteCount)
      unsafe try file.write(bytes, at: end)
      end += bytes.count
      // Sync little by little: one large sync at the end would delay commits.
      guard end - synced >= 256 << 10 else { return }
      try file.sync()
      synced = end
    } catch {
      throw .system(error)
    }
  }

  /// Allocates disk space before it is written to, so that a full disk shows up here.
  private func allocate(_ byteCount: Int) throws(SystemError) {
    guard byteCount > capacity else { return }
    let newCapacity = max(byteCount, capacity + min(1 << 20, max(4_096, capacity)))
    try file.allocate(newCapacity)
    capacity = newCapacity
  }

  // MARK: Replacing

  /// Completes the output, syncs it, and puts it in its sources' place.
  private func finish() throws(CompactionError) -> SealedSegment {
    let byteCount = end + SegmentTrailer.byteCount
    do throws(SystemError) {
      let trailer = SegmentTrailer(offset: end, lastRevision: header.lastRevision, secret: header.secret)
      try file.write(trailer.bytes, at: end)
      try file.truncate(to: byteCount)
      try file.sync()
      try folder.rename(folder.compactionPath, to: folder.segmentPath(header.number))
    } catch {
      throw .system(error)
    }
    do throws(SystemError) {
      try openFolder.sync()
      for number in sourceNumbers.dropFirst() { try folder.remove(folder.segmentPath(number)) }
    } catch {
      throw .unfinished(error)
    }
    return SealedSegment(
      number: header.number, lastNumber: header.lastNumber, firstRevision: header.firstRevision,
      lastRevision: header.lastRevision, sweptRevision: header.sweptRevision,
      salt: header.salt, byteCount: byteCount, tombstoneByteCount: tombstoneByteCount,
      liveByteCount: max(0, byteCount - tombstoneByteCount))
  }

  /// Frees a piece of the space of the sources, which have no names any more. On a file system that discards freed
  /// blocks, every sync would wait for all of a large file.
  /// - Returns: The size of the piece; nil if there are no more.
  private func freeNextPiece() -> Int? {
    guard let file = obsoleteFiles.last else { return nil }
    let rest = max(0, ((try? file.byteCount()) ?? 0) - Self.freedPieceByteCount)
    // If a call fails, closing the file frees the space.
    let isTruncated: Void? = try? file.truncate(to: rest)
    if rest == 0 || isTruncated == nil { obsoleteFiles.removeLast() }
    return Self.freedPieceByteCount
  }
}

/// Why a compaction can't continue.
enum CompactionError: Error, Sendable {
  /// A record that the next start needs can't be read.
  case damaged(String)
  /// A separated value can't be read. It stays in place, and a client that reads it gets an error.
  case valueDamaged
  /// A call failed. The sources are unchanged.
  case system(SystemError)
  /// A call failed after the first source was replaced.
  case unfinished(SystemError)
}

/// A separated value on its way from one segment to another, piece by piece. The copy counts only if it is what was
/// once written.
private struct ValueCopy {
  private static let pieceByteCount = 256 << 10

  private let key: [UInt8]
  private let revision: UInt64
  private let source: any File
  private let sourceOffset: Int
  let byteCount: Int
  private let checksum: UInt32
  /// The offset in the collected records where the value belongs.
  let position: Int
  private var copied = 0
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

  /// Returns the location of the complete copy.
  func location(in file: ValueFile, endingAt end: Int) -> ValueLocation {
    ValueLocation(
      key: key, revision: revision,
      value: SeparatedValue(file: file, offset: end - byteCount, byteCount: byteCount, checksum: checksum))
  }
}
