import Documents
import Platform
import Storage
import Synchronization
import Wire

/// A find that looks for its documents: `Protocol/wire.md` §6.7. It examines the entries of a snapshot in the order of
/// their keys, a few in each turn that its `FindRunner` gives it.
///
/// The worker that makes it owns it together with the runner. Safe because the runner alone uses everything that
/// changes until it posts the job to the worker, and the worker alone uses it after that; `isCanceled` is atomic.
final class FindJob: @unchecked Sendable {
  /// The connection that waits for the documents.
  let token: ConnectionToken
  /// What was found, or why nothing was. Set when the job is posted.
  private(set) var outcome: Result<FoundDocuments, FindFailure>?

  private let store: Store
  private let snapshot: Snapshot
  private let request: FindRequest
  /// The body of the request, which has its texts.
  private let body: [UInt8]
  private let limits: ServerLimits
  private let slot: FindSlot
  private let mailbox: Mailbox
  /// When the request was executed, in milliseconds of the clock that expiries are measured with.
  private let now: UInt64
  /// The same in nanoseconds.
  private let startTime = monotonicNanoseconds()
  private let isCanceled = Atomic(false)
  /// Whether the runner has the job. Used by the worker.
  private var isRunning = false

  /// nil before the first turn.
  private var finder: EntryFinder?
  private var projection: EntryProjection?
  private var nextRank = 0
  /// The time that its turns took, in nanoseconds.
  private var usedTime: UInt64 = 0
  /// The number of entries that are examined at a time, so that a turn ends in time whatever an entry takes.
  private var batchCount = 16

  /// How long a turn takes, in nanoseconds, unless a single document takes longer.
  private static let turnTime: UInt64 = 1_000_000

  /// - Parameters:
  ///   - body: The body of the request.
  ///   - snapshot: What the find shows. The caller ends it, after it has canceled the job or got its outcome.
  init(
    _ request: FindRequest, _ body: RawSpan, for token: ConnectionToken, of store: Store, in snapshot: Snapshot,
    now: UInt64, limits: ServerLimits, _ slot: FindSlot, _ mailbox: Mailbox
  ) {
    self.request = request
    self.body = body.toArray()
    self.token = token
    self.store = store
    self.snapshot = snapshot
    self.now = now
    self.limits = limits
    self.slot = slot
    self.mailbox = mailbox
  }

  /// Gives the job to the runner, unless it has it already.
  func start(on runner: FindRunner) {
    guard !isRunning else { return }
    isRunning = true
    runner.run(self)
  }

  /// Ends the job without an outcome. From any thread.
  func cancel() {
    isCanceled.store(true, ordering: .releasing)
    slot.release()
  }

  // MARK: Turns

  /// Examines entries for one turn. When the find has ended, posts it to the worker, unless it was canceled.
  /// - Returns: Whether the find needs more turns.
  func takeTurn(_ batch: inout DocumentBatch) -> Bool {
    let start = monotonicNanoseconds()
    do throws(FindFailure) {
      if finder == nil { try prepare() }
      var end = start
      while end - start < Self.turnTime {
        if isCanceled.load(ordering: .acquiring) { return false }
        if let found = try examineBatch(&batch) {
          post(.success(found))
          return false
        }
        let now = monotonicNanoseconds()
        adaptBatch(to: now - end)
        end = now
      }
      usedTime += end - start
      if Duration.nanoseconds(usedTime) > limits.findTime {
        throw stop("took longer than \(limits.findTime) (limits.find-time)")
      }
      return true
    } catch {
      post(.failure(error))
      return false
    }
  }

  private func post(_ outcome: Result<FoundDocuments, FindFailure>) {
    self.outcome = outcome
    finder = nil
    mailbox.post(endedFind: self)
  }

  /// Makes the next batch smaller or larger so that it takes a fraction of a turn.
  private func adaptBatch(to nanoseconds: UInt64) {
    if nanoseconds > Self.turnTime / 2 {
      batchCount = max(1, batchCount / 2)
    } else if nanoseconds < Self.turnTime / 8 {
      batchCount = min(DocumentBatch.maxCount, batchCount * 2)
    }
  }

  /// Compiles the query.
  private func prepare() throws(FindFailure) {
    do throws(SelectorError) {
      let query = try self.query()
      finder = try EntryFinder(query, isOrdered: !request.isCountOnly)
      if !query.fields.isEmpty { projection = EntryProjection(query.fields) }
    } catch { throw FindFailure(.illegalArgument, "\(error)") }
    guard let key = finder?.startKey, unsafe Key.isValid(key.span.bytes) else { return }
    do throws(StorageError) {
      nextRank = try store.access { map throws(StorageError) in
        unsafe try map.rank(after: key.span.bytes, in: snapshot)
      }
    } catch { throw FindFailure(error) }
  }

  private func query() throws(SelectorError) -> DocumentQuery {
    let body = body
    let bytes = body.span
    var query = try DocumentQuery(
      selector: bytes.extracting(request.selector), sort: bytes.extracting(request.sort),
      fields: bytes.extracting(request.fields), bookmark: bytes.extracting(request.bookmark))
    // Counting needs neither an order nor documents.
    if request.isCountOnly { return DocumentQuery(query.selector, limit: 0) }
    query.skip = Int(clamping: request.skip)
    query.limit = request.limit.map { Int($0) }
    return query
  }

  /// Examines the next entries.
  /// - Returns: What was found, if no more entries need to be examined.
  private func examineBatch(_ batch: inout DocumentBatch) throws(FindFailure) -> FoundDocuments? {
    // The finder is taken out, so that what it keeps has one owner and is changed in place.
    guard var finder = self.finder.take() else { preconditionFailure("the query is compiled") }
    let rest = snapshot.count - nextRank
    guard rest > 0, !finder.isFinished else { return try result(of: finder) }
    let allowedCount = limits.findDocuments - finder.examinedCount
    guard allowedCount > 0 else {
      throw stop("examined as many documents as a find may (limits.find-documents)", finder)
    }
    do throws(StorageError) {
      let ranks = nextRank..<nextRank + min(rest, allowedCount, batchCount)
      nextRank += try batch.copy(ranks: ranks, of: store, in: snapshot, now: now)
    } catch { throw FindFailure(error) }
    for index in 0..<batch.count where !finder.isFinished {
      let entry = batch[index]
      try batch.withContents(of: index, store, in: snapshot) { key, value in
        finder.examine(value, key: key, revision: entry.revision, handle: entry.handle)
      }
      if finder.keptByteCount > limits.findMemory {
        throw stop("needs more than \(limits.findMemory) bytes of memory (limits.find-memory)", finder)
      }
    }
    self.finder = finder
    return nil
  }

  private func result(of finder: consuming EntryFinder) throws(FindFailure) -> FoundDocuments {
    let (examinedCount, matchCount) = (finder.examinedCount, finder.matchCount)
    let page = finder.page()
    let result = FindResult(
      revision: snapshot.revision, examined: UInt64(examinedCount),
      found: UInt64(request.isCountOnly ? matchCount : page.handles.count),
      nanoseconds: monotonicNanoseconds() - startTime,
      bookmark: request.isCountOnly ? "" : page.bookmark ?? "")
    guard result.size <= limits.maxFrameBytes - Frame.minLength else {
      throw FindFailure(
        .queryStopped,
        "the bookmark of the next page would be larger than a frame (limits.frame-bytes); sort by smaller values; "
          + "the find examined \(examinedCount) of \(snapshot.count) entries")
    }
    return FoundDocuments(
      handles: request.isCountOnly ? [] : page.handles, projection: projection, result: result, slot: slot)
  }

  /// Makes the error for a find that has reached a limit.
  private func stop(_ reason: String, _ finder: EntryFinder? = nil) -> FindFailure {
    let examinedCount = (finder ?? self.finder)?.examinedCount ?? 0
    return FindFailure(
      .queryStopped, "the find \(reason); it examined \(examinedCount) of \(snapshot.count) entries")
  }
}

/// What a find has found, in the order of its query.
struct FoundDocuments: Sendable {
  /// The handles of the documents in the find's snapshot.
  let handles: [UInt32]
  /// The fields to return; nil for whole documents.
  let projection: EntryProjection?
  /// What is sent after the documents.
  let result: FindResult
  let slot: FindSlot
}

/// Why a find has no result: what its client is told.
struct FindFailure: Error {
  let code: ErrorCode
  let message: String

  init(_ code: ErrorCode, _ message: String) {
    self.code = code
    self.message = message
  }

  init(_ error: StorageError) { self.init(ErrorCode(error), "\(error)") }
}
