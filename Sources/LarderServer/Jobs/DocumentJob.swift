import Dispatch
import Documents
import Glibc
import Platform
import Storage
import Synchronization
import Wire

/// A request on all documents of a store that match a selector, such as a find (`Protocol/wire.md` §6.7 to §6.9), or on
/// many documents that it names, an apply with updates (§6.11). It looks at the documents of a snapshot, a few in each
/// turn that its `JobRunner` gives it.
///
/// The worker that makes it owns it together with the runner. Safe because the runner alone uses everything that
/// changes until it posts the job to the worker, and the worker alone uses it after that; `phase` is atomic.
final class DocumentJob: @unchecked Sendable {
  /// The connection that waits for the result.
  let token: ConnectionToken
  /// Who the job counts as when the server's jobs are shared.
  let sharer: Sharer
  let operation: Operation
  let store: Store
  /// The limits that the job is subject to.
  let limits: ServerLimits
  /// When the request was executed, in nanoseconds.
  let startTime = monotonicNanoseconds()
  /// The size of the request, in bytes.
  let requestByteCount: Int
  /// The job's result, or why it has none. Set when the job is posted.
  private(set) var outcome: Result<JobResult, CommandFailure>?

  private let request: DocumentRequest
  /// The body of the request, which has its texts.
  private let body: [UInt8]
  private let snapshot: Snapshot
  private let mailbox: Mailbox
  /// The space changes of the store before the last attempt to commit.
  private var spaceChangeCount: UInt64 = 0
  /// When the request was executed, in milliseconds of the clock that expiries are measured with.
  private let now: UInt64
  private let phase = JobPhase()
  /// Whether the runner has the job. Used by the worker.
  private var isRunning = false

  /// nil before the first turn.
  private var task: (any DocumentTask)?
  private var examiner: DocumentExaminer
  private var clock: JobClock
  /// The work that it may still do. Its thread asks for more again and again, in the middle of documents.
  private var budget = WorkBudget()

  /// Whether the documents may be divided among several threads.
  private var mayDivide = true
  /// What several threads examine, while the job has no turns.
  private var parts: [JobPart] = []
  private let runningPartCount = Atomic(0)

  /// - Parameters:
  ///   - body: The texts of the request.
  ///   - byteCount: The size of the request, in bytes.
  ///   - snapshot: Where the documents are. The caller ends it, after it has canceled the job or got its outcome.
  init(
    _ request: DocumentRequest, _ body: RawSpan, byteCount: Int, for token: ConnectionToken, _ sharer: Sharer,
    of store: Store,
    in snapshot: Snapshot, now: UInt64, limits: ServerLimits, _ mailbox: Mailbox
  ) {
    self.request = request
    self.body = body.toArray()
    requestByteCount = byteCount
    self.token = token
    self.sharer = sharer
    self.store = store
    self.snapshot = snapshot
    self.now = now
    self.limits = limits.withFindTime(request.time)
    clock = JobClock(limit: self.limits.findTime)
    self.mailbox = mailbox
    operation = request.operation
    examiner = DocumentExaminer(JobSearch(all: snapshot), of: store, now: now, limits: self.limits)
  }

  /// Whether it may change entries. Later requests of its connection wait then.
  var changesEntries: Bool { request.changesEntries }

  /// The revision of the snapshot that the documents were found in.
  var snapshotRevision: UInt64 { snapshot.revision }

  /// The revision of the newest snapshot that documents were looked at in.
  var newestRevision: UInt64 { examiner.search.documents.snapshot.revision }

  /// The number of documents that were looked at.
  var examinedDocuments: Int { examiner.examinedDocuments }

  /// The number of keys of indexes that were looked at.
  var examinedKeys: Int { examiner.search.examinedKeys }

  /// Whether the plan is to look at all entries.
  var isScan: Bool { examiner.search.isScan }

  /// The plan of a job that reads an index from the start, and its query.
  private(set) var indexPlan: (FindPlan, PlannedIndex, DocumentQuery)?

  /// Why the plan was chosen, as JSON, if the request wants to know; empty otherwise.
  var explanation: String { request.isExplained ? examiner.search.explanation?.json.description ?? "" : "" }

  /// The time since the request was executed, in nanoseconds.
  var elapsedTime: UInt64 { monotonicNanoseconds() - startTime }

  // MARK: From the worker

  /// Gives the job to the runner, unless it has it already.
  func start(on runner: JobRunner) {
    guard !isRunning else { return }
    isRunning = true
    budget = WorkBudget { [unowned self, unowned runner] in mayWork && clock.goOn { runner.pause(sharer) } }
    runner.run(self)
  }

  /// Ends the job without an outcome, unless it has made its changes. From any thread.
  /// - Returns: Whether the job changes nothing. It may still be about to notice, until the store is locked once.
  @discardableResult
  func cancel() -> Bool { phase.cancel() }

  /// Whether it has been canceled. From any thread.
  var isCanceled: Bool { phase.isCanceled }

  /// Ends the job with an error soon, unless it has made its changes, because another client's job has taken its place.
  /// From any thread.
  func giveUpPlace() { phase.displace() }

  /// Whether it ends without a result. From any thread.
  var mustEnd: Bool { phase.mustEnd }

  /// Whether what it finds matters. From any thread.
  var mayWork: Bool { !mustEnd && !store.mustEndReading }

  // MARK: From the task

  /// Prevents that the job is canceled, because it is about to make its changes. Call it with the store locked.
  /// - Returns: false if it has been canceled, or has no place any more.
  func beginCommit() -> Bool { phase.beginCommit() }

  /// Makes the error for a job that has reached a limit.
  func stop(_ reason: String) -> CommandFailure {
    let progress = task?.progress ?? "it examined \(examinedDocuments) of \(snapshot.count) entries"
    return CommandFailure(.queryStopped, "the \(request.noun) \(reason); \(progress)")
  }

  // MARK: Turns

  enum TurnEnd {
    case needsTurn, needsSpace, ended
    /// The next turn comes after a large commit.
    case needsCommit(any CommittingTask)
    /// The next turn needs values that must be read from a disk.
    case needsValues([SeparatedValue])
    /// The next turn comes after these parts have ended.
    case needsParts([JobPart])
  }

  /// Works for one turn. When the job has ended, posts it to the worker, unless it was canceled.
  func takeTurn(_ batch: inout DocumentBatch, on runner: JobRunner) -> TurnEnd {
    let end = work(&batch, runner)
    batch.end(in: store)
    switch end {
    case .pause(let end): return end
    case .end(let outcome):
      discardTask()
      parts.removeAll()
      examiner.end()
      if let outcome {
        self.outcome = outcome
        mailbox.post(endedJob: self)
      }
      return .ended
    }
  }

  private enum WorkEnd {
    case pause(TurnEnd)
    /// nil if the job was canceled.
    case end(Result<JobResult, CommandFailure>?)
  }

  private func work(_ batch: inout DocumentBatch, _ runner: JobRunner) -> WorkEnd {
    clock.beginTurn()
    do throws(CommandFailure) {
      try joinParts()
      var task = try preparedTask()
      var time = monotonicNanoseconds()
      while !clock.isTurnOver(at: time) {
        if mustEnd { return endWithoutResult() }
        if examiner.isAtEnd || task.isFinished {
          if store.mustEndReading { throw CommandFailure(StorageError.snapshotEnded) }
          spaceChangeCount = store.commitWriter?.spaceChangeCount ?? 0
          switch try end(task) {
          case .result(let result): return .end(.success(result))
          case .needsSpace: return .pause(.needsSpace)
          case .needsCommit(let task):
            clock.endTurn()
            return .pause(.needsCommit(task))
          case .canceled: return endWithoutResult()
          case .needsDocuments(let handles, let snapshot): examiner.search.goOn(with: handles, in: snapshot, of: store)
          case .unfinished: break
          }
        } else if try divide(task, on: runner) {
          clock.endTurn()
          return .pause(.needsParts(parts))
        } else {
          if let values = try examineNext(&batch, task) {
            clock.endTurn()
            return .pause(.needsValues(values))
          }
          task = try continuedTask(after: task)
        }
        time = monotonicNanoseconds()
      }
      clock.endTurn(at: time)
      guard !clock.isOverdue else { throw failure(.overdue) }
      return .pause(.needsTurn)
    } catch { return mustEnd ? endWithoutResult() : .end(.failure(error)) }
  }

  private func examineNext(
    _ batch: inout DocumentBatch, _ task: any DocumentTask
  ) throws(CommandFailure) -> [SeparatedValue]? {
    do throws(ExaminationFailure) {
      return try examiner.examineNext(&batch, task, maxKeptByteCount: limits.findMemory, &budget)
    } catch { throw failure(error) }
  }

  private func end(_ task: any DocumentTask) throws(CommandFailure) -> TaskEnd {
    do throws(ExaminationFailure) { return try task.end(self, &budget) } catch { throw failure(error) }
  }

  private func failure(_ failure: ExaminationFailure) -> CommandFailure {
    switch examiner.cause(of: failure) {
    case .failed(let failure): failure
    case .tooManyDocuments: stop("examined as many documents as permitted (limits.find-documents)")
    case .tooMuchMemory: stop("needs more than \(limits.findMemory) bytes of memory (limits.find-memory)")
    case .overdue, .exhaustedBudget: stop("took longer than \(limits.findTime) (\(limits.findTimeSetting))")
    }
  }

  /// Releases what the task keeps: on another thread if that takes a while, as with a million groups.
  private func discardTask() {
    guard let discarded = task.take(), discarded.keptByteCount > Self.maxFreedByteCount else { return }
    // Safe because nothing else refers to the task.
    nonisolated(unsafe) let task = discarded
    Self.freeing.async { withExtendedLifetime(unsafe task) {} }
  }

  /// The size of what is kept, in bytes, that the runner frees itself.
  private static let maxFreedByteCount = 1 << 20
  private static let freeing = DispatchQueue(label: "larder.freeing")

  /// Calls `body` once when the store may have room for a commit, or after a second.
  func whenThereIsSpace(_ body: @escaping @Sendable () -> Void) {
    guard let commitWriter = store.commitWriter else { return body() }
    let hasBegun = Atomic(false)
    let begin: @Sendable () -> Void = { if !hasBegun.exchange(true, ordering: .relaxed) { body() } }
    commitWriter.waitForSpace(since: spaceChangeCount, begin)
    DispatchQueue.global().asyncAfter(deadline: .now() + 1, execute: begin)
  }

  /// Ends a job that has been canceled, or has no place any more.
  private func endWithoutResult() -> WorkEnd {
    if isCanceled { return .end(nil) }
    return .end(
      .failure(
        CommandFailure(
          .tooManyRequests,
          """
          the \(request.noun) was ended for a request of another client: this client had more unfinished finds than \
          others, and there are \(limits.finds) in all (limits.finds); try again later
          """)))
  }

  // MARK: Parts

  /// The minimum number of documents that are divided. They take about a millisecond.
  private static let minDividedCount = 16_384

  /// Divides the documents that are left among parts if they are many.
  ///
  /// The parts depend on the documents only, so that sums of fractions are rounded in the same way each time.
  /// - Returns: Whether there are parts now.
  private func divide(_ task: any DocumentTask, on runner: JobRunner) throws(CommandFailure) -> Bool {
    let partCount = runner.maxThreadCount
    guard mayDivide, partCount > 1, let count = examiner.search.divisibleCount, count >= Self.minDividedCount,
      // There must be room to examine all of them, and some of them twice.
      count <= (limits.findDocuments - examinedDocuments) / 2, task.isDivisible(count, after: examinedDocuments)
    else { return false }
    mayDivide = false
    let maxKeptByteCount = (limits.findMemory - examiner.search.documents.keptByteCount) / partCount
    for var search in examiner.search.divide(into: partCount) {
      let task = try request.makeTask(body, limits)
      try search.beginPart(task)
      let examiner = DocumentExaminer(search, of: store, now: now, limits: limits)
      parts.append(JobPart(of: self, task, examiner, maxKeptByteCount: maxKeptByteCount, runner))
    }
    runningPartCount.store(partCount, ordering: .relaxed)
    return true
  }

  /// Notes that a part has ended. From any thread.
  /// - Returns: Whether it was the last one, so that the job has its next turn.
  func endPart() -> Bool { runningPartCount.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 }

  /// Adds what the parts have found to the task, or starts over without parts if one has needed more than its share of
  /// the memory.
  private func joinParts() throws(CommandFailure) {
    guard !parts.isEmpty, let task, !mustEnd else { return }
    let parts = self.parts
    self.parts.removeAll()
    for part in parts { examiner.addWork(of: part.examiner) }
    for case let failure? in parts.map(\.failure) {
      guard case .tooMuchMemory = failure else { throw self.failure(failure) }
      return startOver()
    }
    var handles: [UInt32] = []
    do throws(ExaminationFailure) {
      for part in parts { handles += try task.join(part.task, &budget) }
    } catch { throw failure(error) }
    examiner.search.goOn(with: handles)
  }

  // MARK: Planning

  /// Returns the task, which has begun, with the documents that it must look at in `search`.
  private func preparedTask() throws(CommandFailure) -> any DocumentTask {
    if let task { return task }
    guard let task = try prepareTask(maxRanges: .max) else { preconditionFailure("planning isn't limited") }
    return task
  }

  /// - Parameter maxRanges: The number of ranges that may be read to choose a plan.
  /// - Returns: nil if choosing a plan takes more ranges.
  private func prepareTask(maxRanges: Int) throws(CommandFailure) -> (any DocumentTask)? {
    let task = try request.makeTask(body, limits)
    let indexes: [IndexView]
    do throws(StorageError) {
      indexes = try store.accessInTurn { map throws(StorageError) in try map.indexes(in: snapshot) }
    } catch { throw CommandFailure(error) }
    var ranks = RankReader(store, indexes, in: snapshot, maxCount: maxRanges)
    let choice = try choosePlan(task, indexes, &ranks)
    guard !ranks.isExhausted else { return nil }
    if case .index(let number, _) = choice.plan.source {
      indexPlan = (choice.plan, indexes[number].planned, task.query)
    }
    try examiner.search.begin(choice, task, indexes, &ranks)
    self.task = task
    return task
  }

  private func choosePlan(
    _ task: any DocumentTask, _ indexes: [IndexView], _ ranks: inout RankReader
  ) throws(CommandFailure) -> PlanChoice {
    do throws(SelectorError) {
      let hint = request.hint.map { String(decoding: body[$0], as: UTF8.self) }
      var planner = try Planner(
        task.query, indexes: indexes.map(\.planned), entryCount: snapshot.count, ignoresOrder: task.ignoresOrder,
        grouping: task.grouping, hint: hint)
      return planner.plan(&ranks)
    } catch { throw CommandFailure(error) }
  }

  /// Starts over with another plan if this one has examined too many documents and isn't done.
  /// - Returns: The task that examines documents from now on.
  private func continuedTask(after task: any DocumentTask) throws(CommandFailure) -> any DocumentTask {
    guard examiner.search.mustFallBack(afterExamining: examinedDocuments), !task.isFinished else { return task }
    let task = try request.makeTask(body, limits)
    try examiner.search.fallBack(task, of: store, in: snapshot)
    self.task = task
    return task
  }

  // MARK: Brief jobs

  /// The maximum size of the request, in bytes, and the maximum number of documents of a job that runs at once.
  private static let maxBriefBodyByteCount = 1_024
  private static let maxBriefChangeCount = 8
  /// The maximum number of ranges that are read to choose its plan.
  private static let maxBriefRangeCount = 64
  /// The maximum work of examining the documents, because the store is locked meanwhile.
  private static let maxBriefUnits = 1 << 13

  /// Runs the job at once if it takes a few microseconds. On the worker's thread, with no store locked.
  /// - Returns: Whether it has ended. If not, the runner continues it.
  func runBriefly() -> Bool {
    guard operation == .find || operation == .changeMatching, body.count <= Self.maxBriefBodyByteCount else {
      return false
    }
    let maxCount = operation == .find ? DocumentExaminer.maxBriefCount : Self.maxBriefChangeCount
    do throws(CommandFailure) {
      guard let task = try prepareTask(maxRanges: Self.maxBriefRangeCount) else { return false }
      guard let count = examiner.search.documents.count, min(count, task.neededCount ?? .max) <= maxCount else {
        return false
      }
      guard let result = try briefResult(of: task) else { return false }
      outcome = .success(result)
    } catch { outcome = .failure(error) }
    task = nil
    return true
  }

  /// Returns the result of a task; nil if the runner must continue it.
  private func briefResult(of task: any DocumentTask) throws(CommandFailure) -> JobResult? {
    var budget = WorkBudget(units: Self.maxBriefUnits)
    do throws(ExaminationFailure) {
      try examiner.examineInPlace(task, &budget)
      guard examiner.isAtEnd || task.isFinished else { return nil }
      let end = try task.end(self, &budget)
      if case .result(let result) = end { return result }
      if case .needsDocuments(_, let snapshot) = end { store.access { $0.end(snapshot) } }
    } catch {
      guard case .exhaustedBudget = error else { throw failure(error) }
    }
    startOver()
    return nil
  }

  /// Forgets what was examined, so that the next turn begins again.
  private func startOver() {
    discardTask()
    examiner.startOver(JobSearch(all: snapshot))
  }
}

extension CommandFailure {
  init(_ error: SelectorError) { self.init(.illegalArgument, "\(error)") }
}
