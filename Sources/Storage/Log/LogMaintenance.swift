import Dispatch
import Glibc
import Platform
import Synchronization

/// The work of a log between commits: allocating space ahead of need, and compaction.
///
/// It is a state machine that `perform` advances by a bounded step. Owned by one `LogEngine` and used on its commit
/// thread.
struct LogMaintenance {
  private enum State {
    case idle(Liveness)
    /// A scan finds out how much of each segment is live.
    case scanning(LivenessScan)
    /// A compaction runs. Afterwards, the liveness is as it was before.
    case compacting(Compaction, Liveness)
  }

  /// What is known about the live bytes of each segment.
  private enum Liveness {
    /// Nothing useful. If a scan has found nothing worth compacting, this is the size of the log at that time.
    case unknown(fruitlessByteCount: Int?)
    /// The last scan found out.
    case known
  }

  private let folder: LogFolder
  private let runner: any CompactionRunner
  private let maxBytesPerSecond: Int
  private var state = State.idle(.unknown(fruitlessByteCount: nil))
  /// Whether the disk was full when the log last needed space.
  private var isShortOfSpace = false
  /// The size of the log when a compaction last failed for lack of space; nil if another try may succeed.
  private var blockedByteCount: Int?
  /// The revision of the last commit at the beginning of the last scan.
  private var scannedRevision: UInt64 = 0
  /// The number of steps of a scan at a time on a full disk, where the commit thread pauses in between.
  private static let scanSteps = 64
  /// The size of the live entries as records.
  private(set) var liveByteCount = 0
  private(set) var compactionCount = 0
  /// The number of bytes that compactions have written.
  private(set) var compactedByteCount = 0

  /// - Parameter maxBytesPerSecond: The write rate of a compaction, unless the log grows in spite of it.
  init(of folder: LogFolder, runner: any CompactionRunner, maxBytesPerSecond: Int) {
    self.folder = folder
    self.runner = runner
    self.maxBytesPerSecond = maxBytesPerSecond
  }

  /// Notes whether there was space when the log needed some. A compaction that failed may succeed the next time: the
  /// log can't detect space that was freed elsewhere.
  mutating func noteSpace(isMissing: Bool) {
    isShortOfSpace = isMissing
    blockedByteCount = nil
  }

  var isCompacting: Bool { if case .compacting = state { true } else { false } }

  /// Does the next step.
  /// - Returns: Whether there is more to do now.
  mutating func perform(
    on writer: inout LogWriter, _ context: any MaintenanceContext
  ) throws(EngineError) -> Bool {
    if case .compacting(let compaction, let liveness) = state {
      return try advance(compaction, liveness, &writer, context)
    }
    try writer.prepareAhead()
    let (live, isDropped, revision) = context.read { map in
      (Self.liveByteCount(of: map), map.isDropped, map.commitRevision)
    }
    guard !isDropped else { return false }
    liveByteCount = live
    switch state {
    case .compacting: preconditionFailure("a compaction has started meanwhile")
    case .scanning(var scan):
      var hasMore = true
      for _ in 0..<(isShortOfSpace ? Self.scanSteps : 1) where hasMore {
        hasMore = context.read { map in scan.step(map) }
      }
      if !hasMore { writer.setLiveByteCounts(scan.liveByteCounts) }
      state = hasMore ? .scanning(scan) : .idle(.known)
      return true
    case .idle(let liveness): return try chooseWork(liveness, revision: revision, &writer, context)
    }
  }

  /// Starts a compaction or a scan if the log is worth it.
  private mutating func chooseWork(
    _ liveness: Liveness, revision: UInt64, _ writer: inout LogWriter, _ context: any MaintenanceContext
  ) throws(EngineError) -> Bool {
    let (logByteCount, segmentSize) = (writer.byteCount, writer.segmentSize)
    if let blockedByteCount, logByteCount < blockedByteCount + segmentSize { return false }
    let policy = CompactionPolicy(writer.sealed, segmentSize: segmentSize, isShortOfSpace: isShortOfSpace)
    if let run = policy.smallSegmentRun() {
      return try compact(run, revision: revision, on: &writer, context)
    }
    guard policy.isTooLarge(live: liveByteCount, logByteCount: logByteCount) else {
      writer.returnReserve()
      return false
    }
    switch liveness {
    case .known:
      if let run = policy.run(live: liveByteCount, logByteCount: logByteCount) {
        return try compact(run, revision: revision, on: &writer, context)
      }
      writer.returnReserve()
      state = .idle(.unknown(fruitlessByteCount: logByteCount))
      return false
    case .unknown(let fruitlessByteCount):
      let isWorthAScan = isShortOfSpace && revision > scannedRevision
      if let fruitlessByteCount, logByteCount < fruitlessByteCount + segmentSize, !isWorthAScan { return false }
      scannedRevision = revision
      state = .scanning(LivenessScan(writer.sealed))
      return true
    }
  }

  /// Returns the size of the live entries as records of their own.
  private static func liveByteCount(of map: borrowing EntryMap) -> Int {
    map.counts.keyBytes + map.counts.valueBytes
      + map.order.count * (CommitBuffer.recordHeaderByteCount + 8 + CommitBuffer.operationHeaderByteCount)
  }

  /// Starts the compaction of neighboring sealed segments. Discards a scan that is under way.
  /// - Parameter revision: The revision of the last commit.
  /// - Returns: Whether there is more to do now.
  mutating func compact(
    _ run: Range<Int>, revision: UInt64, on writer: inout LogWriter, _ context: any MaintenanceContext
  ) throws(EngineError) -> Bool {
    let liveness: Liveness
    switch state {
    case .idle(let known): liveness = known
    case .scanning: liveness = .unknown(fruitlessByteCount: nil)
    case .compacting: preconditionFailure("two compactions at a time")
    }
    do throws(SystemError) {
      let compaction = try writer.makeCompaction(of: run, revision: revision)
      state = .compacting(compaction, liveness)
      compaction.copy(context, on: runner, bytesPerSecond: bytesPerSecond(writer))
      return true
    } catch {
      return try abandonCompaction(error, liveness, &writer)
    }
  }

  /// Returns the write rate of a compaction: unlimited if the log grows in spite of compaction.
  private func bytesPerSecond(_ writer: LogWriter) -> Int {
    let isUrgent = writer.byteCount > 4 * liveByteCount + 4 * writer.segmentSize
    return isUrgent ? .max : maxBytesPerSecond
  }

  private mutating func advance(
    _ compaction: Compaction, _ liveness: Liveness, _ writer: inout LogWriter, _ context: any MaintenanceContext
  ) throws(EngineError) -> Bool {
    switch compaction.phase {
    case .copying, .replacing: return false
    case .copied(let neededRevision):
      // The map of a dropped store is empty, so the output lacks what the store has if it comes back because its folder
      // was not renamed.
      guard !context.read({ $0.isDropped }) else { return false }
      // The commits that made the rest dead must be on disk first, so the outstanding ones come before this.
      guard writer.lastRevision >= neededRevision else { return false }
      if writer.syncedRevision < neededRevision { try writer.sync() }
      // Without these commits, the log would be of no revision at all once the sources are replaced.
      try writer.noteRevision(neededRevision)
      compaction.replaceSources(context, on: runner)
    case .replaced(let segment, let locations):
      // Only now: a value that may not be on disk must not be the only copy.
      context.updateLocations(locations)
      writer.replaceSources(compaction.run, with: segment)
      compactionCount += 1
      compactedByteCount += segment.byteCount
      state = .idle(liveness)
    case .failed(.damaged(let description)): throw .failed(description)
    case .failed(.valueDamaged):
      // The log works without this value. Its segments stay as they are, and a client that reads the value gets an
      // error.
      state = .idle(liveness)
      try writer.excludeFromCompaction(compaction.run)
    case .failed(.system(let error)): return try abandonCompaction(error, liveness, &writer)
    case .failed(.unfinished(let error)): throw .failed("\(error) (\(folder.path))")
    }
    return true
  }

  /// Ends a compaction that has failed. On a full disk, the next attempt may use the reserve; without one, compaction
  /// waits until the log needs space again, as it does without file descriptors.
  private mutating func abandonCompaction(
    _ error: SystemError, _ liveness: Liveness, _ writer: inout LogWriter
  ) throws(EngineError) -> Bool {
    state = .idle(liveness)
    guard error.isNoSpace else { throw .failed("\(error) (\(folder.compactionPath))") }
    let canRetry = try writer.abandonCompaction(lendsReserve: !error.isNoDescriptor)
    if !canRetry { blockedByteCount = writer.byteCount }
    return canRetry
  }

  /// Stops a running compaction, and waits until it has stopped.
  func stop() { runner.stop() }
}

/// Runs the steps of compactions, one after the other.
protocol CompactionRunner: AnyObject, Sendable {
  /// Calls `step` until it returns nil, after all steps that were added before with a limited rate, or, if the rate is
  /// unlimited, after all of those. `step` returns the number of bytes that it has written.
  func run(bytesPerSecond: Int, _ step: @escaping @Sendable () -> Int?)

  /// Returns when no step is running any more and none will be.
  func stop()
}

/// Runs the steps on threads of their own, so that no commit waits for them. Those with a limited rate leave the disk
/// and, because their thread has a niceness of 10, the processors to commits.
final class BackgroundRunner: CompactionRunner {
  private let queue = DispatchQueue(label: "larder.log.compaction", qos: .background)
  private let urgentQueue = DispatchQueue(label: "larder.log.compaction.urgent", qos: .utility)
  private let isStopping = Atomic<Bool>(false)

  func run(bytesPerSecond: Int, _ step: @escaping @Sendable () -> Int?) {
    (bytesPerSecond < .max ? queue : urgentQueue).async { [self] in
      let start = DispatchTime.now().uptimeNanoseconds
      var written = 0
      while !isStopping.load(ordering: .relaxed), let byteCount = step() {
        written += byteCount
        pause(until: start + UInt64(Double(written) / Double(bytesPerSecond) * 1e9))
      }
    }
  }

  func stop() {
    isStopping.store(true, ordering: .relaxed)
    queue.sync {}
    urgentQueue.sync {}
  }

  /// Pauses in short intervals, so that `stop` doesn't wait long.
  private func pause(until due: UInt64) {
    while !isStopping.load(ordering: .relaxed) {
      let now = DispatchTime.now().uptimeNanoseconds
      if now >= due { return }
      usleep(UInt32(min(due - now, 20_000_000) / 1_000) + 1)
    }
  }
}
