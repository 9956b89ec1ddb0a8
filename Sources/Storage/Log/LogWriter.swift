import Basics
import Platform

/// The segments of a log, and everything that writes to them except compactions.
///
/// Records go to the end of the active segment. When it is full, it is sealed, and a segment that was allocated ahead
/// replaces it. All other segments are sealed, and together they cover every number from 1 on. Owned by one `LogEngine`
/// and used on its commit thread.
struct LogWriter {
  /// The space that a compaction may use on a full disk.
  private enum Reserve {
    /// The reserve has that size.
    case held(byteCount: Int)
    /// A compaction uses the space. Nothing else may take it until the compaction has ended.
    case lent
  }

  private let folder: LogFolder
  /// The open folder: a writer whose space is reserved must not need a file descriptor to use it.
  private let openFolder: any Folder
  private let identity: UInt64
  private let configuration: LogConfiguration
  private let syncTimes: DurationHistogram
  /// The manifest; nil as long as there is no space for one.
  private var manifest: ManifestFile?
  /// The sealed segments, oldest first.
  private(set) var sealed: [SealedSegment]
  /// The segment that records go to; nil after a start on a full disk.
  private var active: ActiveSegment?
  /// The segment that was allocated ahead.
  private var prepared: PreparedSegment?
  private var reserve: Reserve
  /// The revision of the last written record.
  private(set) var lastRevision: UInt64
  /// The last revision that is known to be on disk.
  private(set) var syncedRevision: UInt64
  /// The number of the next segment.
  private(set) var nextNumber: UInt64
  private(set) var syncCount = 0

  /// - Parameter reserveByteCount: The size of the existing reserve.
  init(
    _ folder: LogFolder, _ openFolder: any Folder, identity: UInt64, configuration: LogConfiguration,
    manifest: ManifestFile?, sealed: [SealedSegment], active: ActiveSegment?, lastRevision: UInt64, nextNumber: UInt64,
    reserveByteCount: Int,
    syncTimes: DurationHistogram
  ) {
    self.folder = folder
    self.openFolder = openFolder
    self.identity = identity
    self.configuration = configuration
    self.manifest = manifest
    self.sealed = sealed
    self.active = active
    self.lastRevision = lastRevision
    self.nextNumber = nextNumber
    self.syncTimes = syncTimes
    reserve = .held(byteCount: reserveByteCount)
    syncedRevision = lastRevision
  }

  /// The number of bytes of records that are certain to fit.
  var availableByteCount: Int { max(active?.space.availableByteCount ?? 0, prepared?.space.availableByteCount ?? 0) }

  /// Whether there is a segment that records go to.
  var isWritable: Bool { active != nil }

  /// The number of these bytes that only deletes may use.
  var removalReserveByteCount: Int { configuration.removalReserve }

  /// The size of all segments, counting only the written part of the active one.
  var byteCount: Int { sealed.reduce(active?.end ?? 0) { $0 + $1.byteCount } }

  var segmentCount: Int { sealed.count + (active == nil ? 0 : 1) }

  /// The size of the next segment.
  var segmentSize: Int { configuration.segmentSize(logByteCount: byteCount) }

  /// The size of the reserve; nil while a compaction uses it.
  var reserveByteCount: Int? { if case .held(let byteCount) = reserve { byteCount } else { nil } }

  // MARK: Records

  /// Writes sealed records.
  /// - Parameter syncs: Whether they must be on disk when this returns.
  /// - Returns: The locations of the separated values, in order.
  mutating func write(
    _ records: UnsafeRawBufferPointer, separatedCount: Int, syncs: Bool
  ) throws(EngineError) -> [ValueLocation] {
    var rest = unsafe records
    var locations: [ValueLocation] = []
    while rest.count > 0 {
      let fitting = unsafe Self.prefixByteCount(of: rest, within: active?.space.maxFrameByteCount ?? 0)
      if fitting > 0 {
        let prefix = unsafe UnsafeRawBufferPointer(rebasing: rest[..<fitting])
        unsafe try append(prefix, syncs: syncs && fitting == records.count)
        if separatedCount > 0, let active {
          unsafe locations += active.locations(ofLast: prefix)
        }
        unsafe rest = UnsafeRawBufferPointer(rebasing: rest[fitting...])
      } else {
        let recordByteCount = unsafe rest.recordByteCount(at: 0)
        do throws(EngineError) {
          try startSegment(fitting: recordByteCount)
        } catch {
          // A caller that respects the available space never gets here.
          throw error == .noSpace ? .failed("the disk is full (\(folder.path))") : error
        }
      }
    }
    if syncs { try sync() }
    return locations
  }

  mutating func sync() throws(EngineError) {
    guard var active else { return }
    guard !active.isSynced else {
      syncedRevision = lastRevision
      return
    }
    let begun = monotonicNanoseconds()
    try attempt(active.path) { () throws(SystemError) in try active.sync() }
    syncTimes.note(nanoseconds: monotonicNanoseconds() - begun)
    self.active = active
    syncedRevision = lastRevision
    syncCount += 1
    noteSynced()
  }

  /// Notes in the manifest, without another sync, that all records are on disk. If the process is killed, the next start
  /// then detects whether any are missing.
  private mutating func noteSynced() {
    guard let active else { return }
    manifest?.noteBriefly(segment: (nextNumber - 1, active.end), revision: lastRevision)
  }

  /// Returns the size of the whole records at the beginning that fit, and that go into one frame. A large record has a
  /// frame of its own.
  private static func prefixByteCount(of records: UnsafeRawBufferPointer, within available: Int) -> Int {
    let limit = min(available, LogFrame.usualRecordByteCount)
    if records.count <= limit { return records.count }
    var offset = 0
    while offset < records.count {
      let end = unsafe offset + records.recordByteCount(at: offset)
      if end > limit { return offset > 0 || end > available ? offset : end }
      offset = end
    }
    return offset
  }

  /// Writes records that fit into the active segment.
  /// - Parameter syncs: Whether to sync with the same call if that is possible: not if there is more to sync.
  private mutating func append(_ records: UnsafeRawBufferPointer, syncs: Bool) throws(EngineError) {
    guard var active else { preconditionFailure("there is no active segment") }
    let begun = monotonicNanoseconds()
    var isDurable = false
    try attempt(active.path) { () throws(SystemError) in
      if syncs { try active.writeZeroes(after: records.count) }
      isDurable = syncs && active.isSynced
      if isDurable { unsafe try active.appendDurably(records) } else { unsafe try active.append(records) }
    }
    if isDurable {
      syncTimes.note(nanoseconds: monotonicNanoseconds() - begun)
      syncCount += 1
    }
    lastRevision = unsafe Self.lastRevision(of: records)
    self.active = active
    if isDurable { noteSynced() }
  }

  private static func lastRevision(of records: UnsafeRawBufferPointer) -> UInt64 {
    var (offset, revision) = (0, UInt64(0))
    while offset < records.count {
      revision = unsafe records.integer(at: offset + 8, as: UInt64.self)
      offset += unsafe records.recordByteCount(at: offset)
    }
    return revision
  }

  // MARK: Space

  /// Allocates a segment ahead, and the reserve.
  mutating func reserveSpace() throws(EngineError) {
    let size = min(LogConfiguration.maxFileByteCount, max(segmentSize, 2 * (prepared?.capacity ?? 0)))
    guard case .held(let reserveByteCount) = reserve else { throw .noSpace }
    do throws(SystemError) { try ensureManifest() } catch {
      throw error.isNoSpace ? .noSpace : .failed("\(error) (\(folder.manifestPath))")
    }
    do throws(EngineError) {
      try growReserve(from: reserveByteCount)
      try prepare(upTo: size)
    } catch {
      if error == .noSpace, availableByteCount < configuration.removalReserve {
        // Puts have to wait, but there may be space for deletes.
        try? prepare(capacity: SegmentSpace.byteCount(fitting: configuration.removalReserve / 2))
      }
      throw error
    }
  }

  /// Allocates the next segment before the active one is full. The log can do without.
  mutating func prepareAhead() throws(EngineError) {
    guard prepared == nil, active?.isHalfFull ?? true else { return }
    do throws(EngineError) { try reserveSpace() } catch { if error != .noSpace { throw error } }
  }

  /// Prepares a segment of that size, or a smaller one if the disk has no space for it.
  private mutating func prepare(upTo size: Int) throws(EngineError) {
    var capacity = size
    while true {
      do throws(EngineError) { return try prepare(capacity: capacity) } catch {
        capacity /= 2
        guard error == .noSpace, capacity >= configuration.smallestSegmentSize, capacity > prepared?.capacity ?? 0
        else {
          throw error
        }
      }
    }
  }

  /// Allocates space for a compaction before the log takes more, because nothing could be compacted on a full disk
  /// otherwise.
  private mutating func growReserve(from current: Int) throws(EngineError) {
    var size = segmentSize
    guard byteCount >= configuration.reserveThreshold, current < size else { return }
    while true {
      do throws(EngineError) { return try growReserve(from: current, to: size) } catch {
        size /= 2
        guard error == .noSpace, size >= configuration.smallestSegmentSize else { throw error }
      }
    }
  }

  private mutating func growReserve(from current: Int, to size: Int) throws(EngineError) {
    var exists = true
    do throws(SystemError) {
      exists = try folder.exists(folder.reservePath)
      let file = try exists ? folder.openForWriting(folder.reservePath) : folder.create(folder.reservePath)
      do throws(SystemError) { try file.allocate(size) } catch {
        // The existing reserve will do.
        guard error.isNoSpace, current > 0 else { throw error }
        return try file.truncate(to: current)
      }
      reserve = .held(byteCount: size)
    } catch {
      if !exists { try? folder.remove(folder.reservePath) }
      if error.isNoSpace { throw .noSpace }
      throw .failed("\(error) (\(folder.reservePath))")
    }
  }

  /// Prepares a file of at least that capacity, with all its space allocated on disk.
  private mutating func prepare(capacity: Int) throws(EngineError) {
    if let prepared, prepared.capacity >= capacity { return }
    do throws(SystemError) { prepared = try PreparedSegment(capacity: capacity, enlarging: prepared, in: folder) } catch
    {
      throw error.isNoSpace ? .noSpace : .failed("\(error) (\(folder.nextPath))")
    }
  }

  // MARK: Segments

  /// Seals the active segment and continues in the prepared one, with space for a record of that size.
  mutating func startSegment(fitting recordByteCount: Int) throws(EngineError) {
    if (prepared?.space.maxFrameByteCount ?? 0) < recordByteCount {
      try prepare(capacity: max(segmentSize, SegmentSpace.byteCount(fitting: recordByteCount)))
    }
    try seal()
    guard let prepared else { preconditionFailure("no segment was prepared") }
    guard var manifest else { preconditionFailure("space was reserved without a manifest") }
    guard SegmentHeader.numbers.contains(nextNumber) else {
      throw .failed("the log has used up the numbers of segments (\(folder.path))")
    }
    let salt = configuration.makeSalt()
    let header = SegmentHeader(
      identity: identity, number: nextNumber, lastNumber: nextNumber, firstRevision: lastRevision + 1, salt: salt)
    let path = folder.segmentPath(nextNumber)
    try attempt(path) { () throws(SystemError) in
      try prepared.file.write(header.bytes, at: 0)
      try prepared.file.sync()
      try folder.rename(folder.nextPath, to: path)
      try openFolder.sync()
    }
    // Before a record in the segment can be durable.
    try attempt(folder.manifestPath) { () throws(SystemError) in
      try manifest.note(segment: (nextNumber, SegmentHeader.byteCount), revision: header.firstRevision - 1)
    }
    self.manifest = manifest
    active = ActiveSegment(
      prepared.file, path: path, number: nextNumber, firstRevision: header.firstRevision, salt: salt,
      capacity: prepared.capacity)
    self.prepared = nil
    nextNumber += 1
  }

  /// Seals the log, so that the next start finds all of it sealed, with at least that revision as its last.
  mutating func seal(lastRevision revision: UInt64) throws(EngineError) {
    try sync()
    lastRevision = max(lastRevision, revision)
    try seal()
    try noteRevision(lastRevision)
  }

  /// Seals the active segment unless it is empty, and notes where the log ends.
  mutating func close() throws(EngineError) {
    guard let active else { return try noteRevision(lastRevision) }
    let end = active.end
    if !active.isEmpty { try seal() }
    try noteRevision(lastRevision, segment: (nextNumber - 1, end))
  }

  /// Notes what opening has found and made durable, before anything depends on it.
  mutating func noteOpening() throws(EngineError) {
    try noteRevision(lastRevision, segment: active.map { (nextNumber - 1, $0.end) })
  }

  /// Notes in the manifest that everything up to this revision is on disk.
  /// - Parameter segment: The newest segment, and the end of its records.
  mutating func noteRevision(
    _ revision: UInt64, segment: (number: UInt64, end: Int)? = nil
  ) throws(EngineError) {
    guard var manifest else { return }
    try attempt(folder.manifestPath) { () throws(SystemError) in try manifest.note(segment: segment, revision: revision)
    }
    self.manifest = manifest
  }

  /// Creates the manifest unless there is one. Everything in the log must be on disk.
  private mutating func ensureManifest() throws(SystemError) {
    guard manifest == nil else { return }
    // The log was opened without one, and nothing has been written since.
    manifest = try ManifestFile.create(
      LogManifest(identity: identity, number: nextNumber - 1, revision: lastRevision), in: folder, openFolder)
  }

  /// Seals the active segment. Its records are on disk before the trailer says so.
  private mutating func seal() throws(EngineError) {
    guard let ended = active else { return }
    try sync()
    let segment = try attempt(ended.path) { () throws(SystemError) in
      try ended.seal(lastRevision: lastRevision)
    }
    sealed.append(segment)
    active = nil
  }

  // MARK: Compaction

  /// Returns a compaction of neighboring sealed segments.
  /// - Parameter revision: The revision of the last commit.
  mutating func makeCompaction(of run: Range<Int>, revision: UInt64) throws(SystemError) -> Compaction {
    try ensureManifest()
    return try Compaction(
      folder, openFolder, sealed, run: run, identity: identity, salt: configuration.makeSalt(), revision: revision)
  }

  /// Records what a scan has found in each sealed segment.
  mutating func setLiveByteCounts(_ counts: [Int]) {
    for (index, count) in counts.enumerated() { sealed[index].liveByteCount = count }
  }

  /// Replaces the sources of a finished compaction with its output.
  mutating func replaceSources(_ run: Range<Int>, with output: SealedSegment) {
    sealed.replaceSubrange(run, with: [output])
    returnReserve()
  }

  /// Excludes segments with an unreadable value from compaction, and removes the output of the attempt.
  mutating func excludeFromCompaction(_ run: Range<Int>) throws(EngineError) {
    for index in run { sealed[index].hasDamagedValue = true }
    returnReserve()
    try attempt(folder.compactionPath) { () throws(SystemError) in try folder.remove(folder.compactionPath) }
  }

  /// Removes the output of an abandoned compaction.
  /// - Parameter lendsReserve: Whether to free the reserve for the next attempt.
  /// - Returns: Whether there was a reserve to lend.
  mutating func abandonCompaction(lendsReserve: Bool) throws(EngineError) -> Bool {
    try attempt(folder.path) { () throws(SystemError) in
      try folder.removeIfPresent(folder.compactionPath)
      if lendsReserve { try folder.removeIfPresent(folder.reservePath) }
    }
    guard lendsReserve, case .held(let byteCount) = reserve, byteCount > 0 else {
      returnReserve()
      return false
    }
    reserve = .lent
    return true
  }

  /// Makes the space of a lent reserve available again.
  mutating func returnReserve() {
    if case .lent = reserve { reserve = .held(byteCount: 0) }
  }

  /// Runs calls on a file, and adds its path to the error if one fails.
  private func attempt<Result>(
    _ path: String, _ body: () throws(SystemError) -> Result
  ) throws(EngineError) -> Result {
    do throws(SystemError) { return try body() } catch { throw .failed("\(error) (\(path))") }
  }
}
