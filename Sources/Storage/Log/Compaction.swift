import Platform

/// The rewriting of neighbouring segments into one that has only what is live.
///
/// It takes its sources' place in one step, by renaming, when it is on the disk and so is everything that made the rest dead. Owned by one
/// `LogEngine`, made and looked at on the journal's thread, and run on the thread of a `CompactionRunner`.
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
  private let openFolder: any Folder
  private let file: ValueFile
  private var sources: [FoundSegment]
  /// The numbers of the sources.
  private let replaced: [UInt64]
  private var source: any File
  /// Whether the source has values apart, which somebody may still read when it has no name any more.
  private var hasSeparatedValues = false
  /// Sources that nobody reads any more.
  private var spent: [any File] = []
  private var reader: SegmentReader
  private var capacity = 0
  /// Everything before this place is on the disk.
  private var synced = 0
  /// Where the next record goes.
  private(set) var end = SegmentHeader.byteCount
  private(set) var tombstoneBytes = 0
  /// What must be on the disk before the sources may go: the store's revision when it was last asked what is live.
  private(set) var neededRevision: UInt64 = 0
  /// Where the values apart lie in the new file.
  private(set) var placed: [PlacedValue] = []
  /// What was collected and is not written yet: so many bytes of it are, and then come the values that it was collected without.
  private var output = CommitBuffer()
  private var written = 0
  private var copies: [ValueCopy] = []
  private let current = Lock(Phase.copying)

  /// Opens the sources and makes the file.
  init(
    _ folder: LogFolder, _ openFolder: any Folder, _ segments: [SealedSegment], run: Range<Int>, identity: UInt64,
    revision: UInt64
  ) throws(SystemError) {
    self.folder = folder
    self.openFolder = openFolder
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
      let file = try folder.files.open(path, .writing)
      let header = SegmentHeader(
        identity: identity, number: segment.number, lastNumber: segment.lastNumber,
        firstRevision: segment.firstRevision)
      sources.append(
        FoundSegment(
          files: folder.files, path: path, file: file, byteCount: try file.byteCount(), header: header))
    }
    let source = sources.removeFirst()
    self.source = source.file
    // A value is checked when it is copied.
    reader = SegmentReader(source, verifiesValues: false)
    self.sources = sources
    if try folder.files.kind(of: folder.compactionPath) != nil { try folder.files.remove(folder.compactionPath) }
    file = ValueFile(
      try folder.files.open(folder.compactionPath, .making), path: folder.segmentPath(header.number))
    try ensure(SegmentHeader.byteCount)
    try file.file.write(header.bytes, at: 0)
  }

  /// Takes a bounded piece of the sources over.
  /// - Returns: whether there is more.
  func step(_ store: Store) throws(CompactionError) -> Bool {
    if try goOnCopying() { return true }
    let piece: SegmentPiece
    do throws(LogError) { piece = try reader.next() } catch { throw .damaged("\(error)") }
    guard !piece.isEmpty else {
      guard case .sealed = reader.state else {
        throw .damaged("\(folder.segmentPath(header.number)) or one merged with it is damaged at byte \(reader.end)")
      }
      if !hasSeparatedValues { spent.append(source) }
      hasSeparatedValues = false
      guard !sources.isEmpty else { return false }
      let next = sources.removeFirst()
      source = next.file
      reader = SegmentReader(next, verifiesValues: false)
      return true
    }
    collect(piece, fates(of: piece, in: store))
    _ = try goOnCopying()
    return true
  }

  var phase: Phase { current.withLock { $0 } }

  func enter(_ phase: Phase) { current.withLock { $0 = phase } }

  /// Ends the file, and puts it on the disk and in its sources' place.
  /// - Returns: the file's size.
  func finish() throws(CompactionError) -> Int {
    let byteCount = end + SegmentTrailer.byteCount
    do throws(SystemError) {
      let trailer = SegmentTrailer(offset: end, lastRevision: header.lastRevision, identity: header.identity)
      try file.file.write(trailer.bytes, at: end)
      try file.file.truncate(to: byteCount)
      try file.file.sync()
      try folder.files.rename(folder.compactionPath, to: folder.segmentPath(header.number))
    } catch {
      throw .system(error)
    }
    do throws(SystemError) {
      try openFolder.sync()
      for number in replaced.dropFirst() { try folder.files.remove(folder.segmentPath(number)) }
    } catch {
      throw .unfinished(error)
    }
    return byteCount
  }

  /// Gives back a piece of the space of the sources, which have no names any more. Where the file system tells the disk of all blocks that
  /// it frees, every sync waits for a large file's.
  /// - Returns: how many bytes it was; nil when there are no more.
  func freePiece() -> Int? {
    guard let file = spent.last else { return nil }
    let rest = max(0, ((try? file.byteCount()) ?? 0) - (1 << 20))
    // Whatever fails, the space is given back when the file is closed.
    let isTruncated: Void? = try? file.truncate(to: rest)
    if rest == 0 || isTruncated == nil { spent.removeLast() }
    return 1 << 20
  }

  /// Takes the disk's space before it is written to, so that a full disk shows here.
  private func ensure(_ byteCount: Int) throws(SystemError) {
    guard byteCount > capacity else { return }
    let wanted = max(byteCount, capacity + min(1 << 20, max(4_096, capacity)))
    try file.file.allocate(wanted)
    capacity = wanted
  }

  /// What becomes of each operation of the records, in turn.
  private func fates(of piece: SegmentPiece, in store: Store) -> [Fate] {
    var fates: [Fate] = []
    let revision = store.access { map in
      piece.visit { operation, revision, _ in fates.append(fate(of: operation, revision, in: map)) }
      return map.revision
    }
    neededRevision = max(neededRevision, revision)
    return fates
  }

  private func fate(of operation: RecordOperation, _ revision: UInt64, in map: borrowing EntryMap) -> Fate {
    if operation.kind == SyncMark.kind { return .dropped }
    if operation.kind == CommitBuffer.Kind.deleteAll.rawValue { return revision <= buriedRevision ? .dropped : .kept }
    let key = unsafe Key(start: operation.key.baseAddress!, count: operation.key.count)
    let handle = map.find(key, hash: map.hashIndex.hash(key))
    if operation.isRemoval { return handle != 0 || revision <= buriedRevision ? .dropped : .kept }
    if handle != 0 { return map.record(handle).revision == revision ? .kept : .dropped }
    return operation.expiry != 0 && revision > buriedRevision ? .buried : .dropped
  }

  private func collect(_ piece: SegmentPiece, _ fates: [Fate]) {
    var index = 0
    piece.visit { operation, revision, valueOffset in
      if operation.isSeparated { hasSeparatedValues = true }
      let fate = fates[index]
      index += 1
      if fate == .dropped { return }
      if fate == .buried || operation.isRemoval { unsafe tombstoneBytes += 24 + operation.key.count }
      if fate == .buried || operation.kind == CommitBuffer.Kind.delete.rawValue {
        unsafe output.delete(operation.key, revision: revision)
      } else if let kind = CommitBuffer.Kind(rawValue: operation.kind), kind != .deleteAll {
        if operation.isSeparated {
          unsafe output.put(
            operation.key, leavingOut: operation.valueByteCount, checksum: operation.valueChecksum, kind: kind,
            expiry: operation.expiry, revision: revision)
          copies.append(
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
}

/// Writing what was collected.
extension Compaction {
  /// Writes a bounded piece of what was collected.
  /// - Returns: whether there is more.
  private func goOnCopying() throws(CompactionError) -> Bool {
    guard !output.isEmpty else { return false }
    // Up to the next value, or all of it.
    let count = (copies.first?.position ?? output.count) - written
    if count > 0 {
      let bytes = unsafe UnsafeRawBufferPointer(rebasing: output.bytes[written..<written + count])
      unsafe try write(bytes)
      written += count
    } else if var copy = copies.first {
      let piece = try copy.next()
      unsafe try piece.withBytes { (bytes) throws(CompactionError) in unsafe try write(bytes) }
      if copy.isComplete {
        placed.append(copy.placed(in: file, endingAt: end))
        copies.removeFirst()
      } else {
        copies[0] = copy
      }
    }
    guard copies.isEmpty, written == output.count else { return true }
    output.removeAll()
    written = 0
    return false
  }

  private func write(_ bytes: UnsafeRawBufferPointer) throws(CompactionError) {
    do throws(SystemError) {
      try ensure(end + bytes.count + SegmentTrailer.byteCount)
      unsafe try file.file.write(bytes, at: end)
      end += bytes.count
      // Little by little: commits would wait long for all of it at the end.
      guard end - synced >= 256 << 10 else { return }
      try file.file.sync()
      synced = end
    } catch {
      throw .system(error)
    }
  }
}

/// Why a compaction can't go on.
enum CompactionError: Error, Sendable {
  /// What the log needs for its next start can't be read.
  case damaged(String)
  /// A value can't be read. It stays where it is, for whoever asks for it to be told.
  case valueDamaged
  /// The sources are as they were.
  case system(SystemError)
  /// The first source is replaced already.
  case unfinished(SystemError)
}
