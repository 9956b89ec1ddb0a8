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
  private var search: JobSearch
  /// The number of documents that were looked at.
  private(set) var examinedDocuments = 0
  private var clock: JobClock
  /// The work that it may still do. Its thread asks for more again and again, in the middle of documents.
  private var budget = WorkBudget()
  /// The number of entries that are examined at a time, so that a turn ends in time whatever an entry takes.
  private var batchCount = 16
  /// A batch that has been gathered, while its values are read from a disk.
  private var waitingBatch: DocumentBatch?

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
    search = JobSearch(all: snapshot)
  }

  /// Whether it may change entries. Later requests of its connection wait then.
  var changesEntries: Bool { request.changesEntries }

  /// The revision of the snapshot that the documents were found in.
  var snapshotRevision: UInt64 { snapshot.revision }

  /// The revision of the newest snapshot that documents were looked at in.
  var newestRevision: UInt64 { search.documents.snapshot.revision }

  /// The number of keys of indexes that were looked at.
  var examinedKeys: Int { search.examinedKeys }

  /// Whether the plan is to look at all entries.
  var isScan: Bool { search.isScan }

  /// The plan of a job that reads an index from the start, and its query.
  private(set) var indexPlan: (FindPlan, PlannedIndex, DocumentQuery)?

  /// Why the plan was chosen, as JSON, if the request wants to know; empty otherwise.
  var explanation: String { request.isExplained ? search.explanation?.json.description ?? "" : "" }

  /// The time since the request was executed, in nanoseconds.
  var elapsedTime: UInt64 { monotonicNanoseconds() - startTime }

  // MARK: From the worker

  /// Gives the job to the runner, unless it has it already.
  func start(on runner: JobRunner) {
    guard !isRunning else { return }
    isRunning = true
    budget = WorkBudget { [unowned self, unowned runner] in mayContinue(on: runner) }
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
  }

  /// Works for one turn. When the job has ended, posts it to the worker, unless it was canceled.
  func takeTurn(_ batch: inout DocumentBatch) -> TurnEnd {
    let end = work(&batch)
    batch.end(in: store)
    switch end {
    case .pause(let end): return end
    case .end(let outcome):
      discardTask()
      if var waiting = waitingBatch.take() { waiting.end(in: store) }
      search.endNewerSnapshot(of: store)
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

  private func work(_ batch: inout DocumentBatch) -> WorkEnd {
    var end = clock.beginTurn()
    do throws(CommandFailure) {
      var task = try preparedTask()
      while !clock.isTurnOver(at: end) {
        if mustEnd { return endWithoutResult() }
        if store.mustEndReading { throw CommandFailure(StorageError.snapshotEnded) }
        if waitingBatch == nil, search.documents.isAtEnd || task.isFinished {
          spaceChangeCount = store.commitWriter?.spaceChangeCount ?? 0
          let taskEnd = try task.end(self, &budget)
          try checkBudget()
          switch taskEnd {
          case .result(let result): return .end(.success(result))
          case .needsSpace: return .pause(.needsSpace)
          case .needsCommit(let task):
            clock.endTurn()
            return .pause(.needsCommit(task))
          case .canceled: return endWithoutResult()
          case .needsDocuments(let handles, let snapshot): search.goOn(with: handles, in: snapshot, of: store)
          case .unfinished: break
          }
        } else {
          if let values = try gatherBatch(&batch) {
            clock.endTurn()
            return .pause(.needsValues(values))
          }
          try examineBatch(&batch, task)
          task = try continuedTask(after: task)
          // A worker that waits for this core comes first.
          sched_yield()
        }
        let now = monotonicNanoseconds()
        adaptBatch(to: now - end)
        end = now
      }
      clock.endTurn(at: end)
      guard !clock.isOverdue else { throw timeFailure }
      return .pause(.needsTurn)
    } catch { return mustEnd ? endWithoutResult() : .end(.failure(error)) }
  }

  /// Gives other jobs their turns if this one's is over. Called in the middle of a turn, without a lock.
  /// - Returns: false if the job must end.
  private func mayContinue(on runner: JobRunner) -> Bool {
    let now = monotonicNanoseconds()
    guard !mustEnd, !store.mustEndReading, !clock.isOverdue(at: now) else { return false }
    if clock.isTurnOver(at: now) {
      clock.endTurn(at: now)
      runner.pause(sharer)
      _ = clock.beginTurn()
    }
    return true
  }

  /// - Throws: If the job must end in the middle of its work.
  private func checkBudget() throws(CommandFailure) {
    if budget.isExhausted { throw store.mustEndReading ? CommandFailure(StorageError.snapshotEnded) : timeFailure }
  }

  private var timeFailure: CommandFailure { stop("took longer than \(limits.findTime) (\(limits.findTimeSetting))") }

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

  /// Makes the next batch smaller or larger so that it takes a fraction of a turn.
  private func adaptBatch(to nanoseconds: UInt64) {
    if nanoseconds > JobClock.turnTime / 2 {
      batchCount = max(1, batchCount / 2)
    } else if nanoseconds < JobClock.turnTime / 8 {
      batchCount = min(DocumentBatch.maxCount, batchCount * 2)
    }
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
    try search.begin(choice, task, indexes, &ranks)
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
    guard search.mustFallBack(afterExamining: examinedDocuments), !task.isFinished else { return task }
    let task = try request.makeTask(body, limits)
    try search.fallBack(task, of: store, in: snapshot)
    self.task = task
    return task
  }

  // MARK: Examining

  /// Gathers the next entries, or continues with those that have waited for a disk.
  /// - Returns: the values that must be read from a disk before the entries are examined; nil if there are none.
  private func gatherBatch(_ batch: inout DocumentBatch) throws(CommandFailure) -> [SeparatedValue]? {
    if let waiting = waitingBatch.take() {
      batch = waiting
      return nil
    }
    let allowedCount = limits.findDocuments - examinedDocuments
    guard allowedCount > 0 else { throw stop("examined as many documents as permitted (limits.find-documents)") }
    do throws(StorageError) {
      if try search.gather(from: store, now: now) {
        batch.end(in: store)
      } else {
        try store.accessInTurn { map throws(StorageError) in
          try batch.begin(search.documents.snapshot, in: &map)
          try search.visitNext(min(allowedCount, batchCount), in: &map, now: now) { head, entry in
            batch.append(entry, head)
            return batch.isFull ? .stop : .next
          }
        }
      }
    } catch { throw CommandFailure(error) }
    let values = batch.uncachedValues
    if values.isEmpty { return nil }
    var waiting = DocumentBatch()
    swap(&waiting, &batch)
    waitingBatch = consume waiting
    return values
  }

  /// Examines the entries that have been gathered.
  private func examineBatch(_ batch: inout DocumentBatch, _ task: any DocumentTask) throws(CommandFailure) {
    let maxKeptByteCount = limits.findMemory - search.documents.keptByteCount
    if maxKeptByteCount >= 0 {
      if task.looksAtValues { batch.checkObjects(&budget) }
      var count = 0
      while count < batch.count, !task.isFinished, task.keptByteCount <= maxKeptByteCount {
        count += try batch.withEntries(from: count) { entries throws(CommandFailure) in
          try task.examine(entries, maxKeptByteCount: maxKeptByteCount, &budget)
        }
        try checkBudget()
      }
      examinedDocuments += count
    }
    guard task.keptByteCount <= maxKeptByteCount else {
      throw stop("needs more than \(limits.findMemory) bytes of memory (limits.find-memory)")
    }
  }

  // MARK: Brief jobs

  /// The maximum size of the request and of the documents, in bytes, and the maximum number of documents of a job that
  /// runs at once.
  private static let maxBriefBodyByteCount = 1_024
  private static let maxBriefByteCount = 64 << 10
  private static let maxBriefCount = 256
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
    let maxCount = operation == .find ? Self.maxBriefCount : Self.maxBriefChangeCount
    do throws(CommandFailure) {
      guard let task = try prepareTask(maxRanges: Self.maxBriefRangeCount) else { return false }
      guard let count = search.documents.count, min(count, task.neededCount ?? .max) <= maxCount else { return false }
      var budget = WorkBudget(units: Self.maxBriefUnits)
      let failure = try examineInPlace(task, &budget)
      guard !budget.isExhausted else {
        startOver()
        return false
      }
      if let failure { throw failure }
      guard search.documents.isAtEnd || task.isFinished else { return false }
      let end = try task.end(self, &budget)
      guard case .result(let result) = end else {
        if case .needsDocuments(_, let snapshot) = end { store.access { $0.end(snapshot) } }
        startOver()
        return false
      }
      outcome = .success(result)
    } catch { outcome = .failure(error) }
    task = nil
    return true
  }

  /// Forgets what was examined, so that the runner examines it.
  private func startOver() {
    task = nil
    search = JobSearch(all: snapshot)
    examinedDocuments = 0
  }

  /// Examines a few entries under the store's lock.
  private func examineInPlace(
    _ task: any DocumentTask, _ budget: inout WorkBudget
  ) throws(CommandFailure) -> CommandFailure? {
    var (failure, byteCount, isRefused) = (CommandFailure?.none, 0, false)
    let maxCount = min(Self.maxBriefCount, limits.findDocuments)
    // Of what is no document, there may be more.
    var visits = 0
    var checker = IJSON()
    var entries: [StoredEntry] = []
    var objects: [UInt32] = []
    let looksAtValues = task.looksAtValues
    do throws(StorageError) {
      try store.accessInTurn { map throws(StorageError) in
        while !search.documents.isAtEnd, !task.isFinished, !isRefused, failure == nil, examinedDocuments < maxCount,
          visits < Self.maxBriefCount, !budget.isExhausted
        {
          visits += 1
          entries.removeAll(keepingCapacity: true)
          try search.visitNext(
            min(maxCount - examinedDocuments, task.neededCount ?? .max), in: &map, now: now
          ) { head, view in
            guard view.kind == .single else { return .next }
            guard let value = unsafe view.value, byteCount + value.count <= Self.maxBriefByteCount else {
              isRefused = true
              return .refuse
            }
            byteCount += value.count
            var entry = unsafe StoredEntry(view, head, value: value)
            if looksAtValues, !entry.isTrusted {
              entry.isTrusted = entry.withValue { checker.isObject($0, &budget) }
              if entry.isTrusted { objects.append(head.handle) }
            }
            entries.append(entry)
            return budget.isExhausted ? .stop : .next
          }
          var count = 0
          do throws(CommandFailure) {
            while count < entries.count, !task.isFinished, !budget.isExhausted {
              count += try task.examine(entries.span.extracting(count...), maxKeptByteCount: .max, &budget)
            }
          } catch { failure = error }
          examinedDocuments += count
        }
        for handle in objects { map.noteObject(at: handle) }
      }
    } catch { throw CommandFailure(error) }
    return failure
  }
}

extension CommandFailure {
  init(_ error: SelectorError) { self.init(.illegalArgument, "\(error)") }
}
