import Documents
import Platform
import Storage
import Wire

/// Executes the commands of a worker's connections, whatever protocol they came in.
///
/// Commands on entries run under the lock of their store, which stays locked until `unlockStore`, or until a command
/// needs another store. A function returns what has happened, and leaves nothing behind for the next one. It knows neither
/// requests nor replies: a `Session` decodes the ones and encodes the others.
///
/// Owned by one worker's `EventLoop`, and made once per worker, so that a command costs no allocation and no
/// reference counting. The functions are in extensions: `+Entries` (get, put, …), `+Apply`, `+Streams` (several entries or
/// changes), `+Documents` (finds and the like), and `+Server` (everything else). They are `mutating`, even if they change
/// nothing, because the compiler copies a large struct that it lends to a function.
struct Executor: ~Copyable {
  let server: ServerState
  /// The limits in force. The worker has a copy of its own, because every request reads them.
  private(set) var limits: ServerLimits
  /// The time, in milliseconds of the clock that expiries are measured with. During a request it does not change.
  private(set) var now: UInt64 = 0
  /// The size of the requests executed and replies made since the clock was read, in bytes; see `countWork`.
  private var work = 0
  private var prefetcher = Prefetcher()
  /// The documents whose fields a find returns, while they are copied.
  var documents = DocumentBatch()
  /// The shape of the find that is executed, if it has one.
  private var shape = FindShape()
  /// Whether a plan for the shape may be kept, and none is.
  private var lacksPlan = false
  /// The keys of the documents that it finds.
  private var bounds = KeyBounds()
  private var checker = IJSON()
  let mailbox: Mailbox
  private let metrics: WorkerMetrics
  private var counts = WakeupCounts()
  private var heldStore: HeldStore
  private let shortOperations = OperationSet { $0.isShort }

  /// The work after which the clock is read again, in bytes. Short requests of that size take less than 0.5 ms.
  private static let maxWork = 16 << 10

  init(server: ServerState, metrics: WorkerMetrics, mailbox: Mailbox) {
    self.server = server
    self.metrics = metrics
    self.mailbox = mailbox
    heldStore = HeldStore(server.expiryTimer)
    limits = server.limits
  }

  /// Adopts the server's current limits.
  mutating func updateLimits() { limits = server.limits }

  // MARK: Wakeups

  @inline(__always)
  mutating func beginWakeup(now: UInt64) {
    self.now = now
    work = 0
  }

  /// Notes that time has passed, so that the clock is read before the next request.
  @inline(__always)
  mutating func timeHasPassed() { work = Self.maxWork }

  /// Counts what a request took. How long it took is not known, only that short requests take little time
  /// for their size.
  @inline(__always)
  mutating func countWork(_ byteCount: Int, of operation: UInt8) {
    work = shortOperations.contains(operation) ? work &+ byteCount : Self.maxWork
  }

  /// Reads the clock if much has been executed since, because an entry that has expired meanwhile is absent.
  @inline(__always)
  mutating func updateClock() {
    guard work >= Self.maxWork else { return }
    now = monotonicMilliseconds()
    work = 0
  }

  /// Moves what was counted to the worker's metrics, and to the slow log if the wakeup took at least as long as the
  /// threshold.
  /// - Parameter start: when the wakeup began, in nanoseconds.
  @inline(__always)
  mutating func endWakeup(start: UInt64, slowThreshold: UInt64) {
    wakeCommitWriters()
    guard counts.requests > 0 else { return counts.moveBytes(to: metrics) }
    let nanoseconds = monotonicNanoseconds() &- start
    metrics.add(1, to: .wakeups)
    if nanoseconds >= slowThreshold { logSlowWakeup(nanoseconds) }
    counts.move(to: metrics, nanoseconds: nanoseconds)
    heldStore.forgetLastStore()
  }

  private func logSlowWakeup(_ nanoseconds: UInt64) {
    metrics.add(1, to: .slowWakeups)
    let entry = counts.slowLogEntry(nanoseconds: nanoseconds, store: heldStore.lastStoreName)
    server.slowLog.withLock { $0.append(entry) }
  }

  @inline(__always)
  mutating func countReceived(_ byteCount: Int) { counts.addReceived(byteCount) }

  @inline(__always)
  mutating func countSent(_ byteCount: Int) { counts.addSent(byteCount) }

  /// The number of requests in this wakeup.
  @inline(__always)
  var requestCount: UInt64 { counts.requests }

  /// Records the end of a request.
  /// - Parameter failure: That of its reply; nil if there is none.
  @inline(__always)
  mutating func record(_ operation: UInt8, _ failure: ErrorCode? = nil) {
    counts.count(operation)
    if let failure { recordFailure(failure.outcome, of: operation) }
  }

  /// Records a request whose outcome is recorded when it is known.
  @inline(__always)
  mutating func recordPending() { counts.countPending() }

  @inline(never)
  private mutating func recordFailure(_ outcome: Outcome, of operation: UInt8) {
    counts.countFailure(operation, outcome, metrics)
  }

  /// Records the end of a request that took longer than its wakeup: how it ended, and how long it took.
  /// - Parameter failure: That of its reply; nil if there is none.
  func record(_ failure: ErrorCode?, of request: PendingRequest) {
    let nanoseconds = monotonicNanoseconds() - request.startTime
    let operation = Int(request.operation)
    metrics.count(1, operation, failure?.outcome ?? .done)
    metrics.record(nanoseconds: nanoseconds, count: 1, of: operation)
    guard nanoseconds >= limits.slowThreshold.wholeMilliseconds * 1_000_000 else { return }
    let entry = SlowLog.Entry(
      ended: monotonicMilliseconds(), nanoseconds: nanoseconds, requests: 1,
      receivedBytes: UInt64(request.byteCount), operations: SlowLog.Entry.bits(1 << UInt64(operation)),
      store: request.store)
    server.slowLog.withLock { $0.append(entry) }
  }

  /// Records the end of a request with a job.
  func record(_ failure: ErrorCode?, of job: DocumentJob) {
    record(
      failure,
      of: PendingRequest(
        operation: job.operation.rawValue, byteCount: job.requestByteCount, store: job.store.name.text,
        startTime: job.startTime))
    recordWork(of: job)
  }

  /// Records what a job has looked at, if it has a result.
  func recordWork(of job: DocumentJob) {
    guard case .success(let result) = job.outcome, let examined = result.examined else { return }
    metrics.add(examined.documents, to: .examinedDocuments)
    metrics.add(examined.keys, to: .examinedKeys)
    metrics.add(1, to: job.isScan ? .scans : .indexedJobs)
  }

  func recordIndexedFind(_ result: FindResult) {
    metrics.add(result.examinedDocuments, to: .examinedDocuments)
    metrics.add(result.examinedKeys, to: .examinedKeys)
    metrics.add(1, to: .indexedJobs)
  }

  // MARK: Kept plans

  /// Reads the shape of a find.
  /// - Returns: Whether a plan may be kept for it.
  mutating func readShape(of find: FindRequest, _ body: RawSpan) -> Bool {
    lacksPlan =
      find.bookmark.isEmpty && find.index.isEmpty && !find.isExplained && find.limit != 0
      && shape.read(
        selector: Span(_bytes: body.extracting(find.selector)), sort: Span(_bytes: body.extracting(find.sort)),
        fields: Span(_bytes: body.extracting(find.fields)),
        isCounting: find.isCountOnly)
    return lacksPlan
  }

  /// Returns the plan that is kept for the find whose shape was read last, and the documents that it leads to.
  mutating func keptPlan(
    for find: FindRequest, _ body: RawSpan, of map: inout EntryMap
  ) -> (plan: KeptPlan, documents: IndexedDocuments)? {
    let kept = map.keptPlan(for: shape, Span(_bytes: body.extracting(find.selector)), &bounds)
    if kept != nil { lacksPlan = false }
    return kept
  }

  /// Returns where the id is in the body of the find whose shape was read last, if that is all that it is about.
  mutating func id(of find: FindRequest) -> Range<Int>? {
    shape.id.map { $0.lowerBound + find.selector.lowerBound..<$0.upperBound + find.selector.lowerBound }
  }

  /// Returns whether an entry turns out to be an I-JSON object.
  mutating func isObject(_ entry: StoredEntry) -> Bool {
    var budget = WorkBudget()
    return entry.withValue { checker.isObject($0, &budget) }
  }

  /// Keeps the plan of a job for finds like the one whose shape was read last, if that is possible.
  mutating func keepPlan(of job: DocumentJob, _ find: FindRequest, _ body: RawSpan) {
    guard lacksPlan, let (plan, index, query) = job.indexPlan,
      let kept = KeptPlan(
        plan, of: query, shape, Span(_bytes: body.extracting(find.selector)), by: index, isCounting: find.isCountOnly)
    else { return }
    let shape = shape
    job.store.access { $0.keep(kept, for: shape, by: index.index) }
  }

  // MARK: Stores

  /// The store that is locked; nil if there is none.
  @inline(__always)
  var lockedStore: Store? { heldStore.store }

  /// Locks a store, unless it is locked already. Unlocks any other one first.
  @inline(__always)
  mutating func lock(_ store: Store) { heldStore.lock(store) }

  /// Unlocks the store that is still locked for the next request, if there is one. Call it before any system call.
  @inline(__always)
  mutating func unlockStore() { heldStore.unlock() }

  /// Counts executed requests on the locked store. Unlocks it after too many of them, because other workers may be
  /// waiting for it.
  @inline(__always)
  mutating func didExecute(byteCount: Int) { heldStore.didExecute(byteCount: byteCount) }

  /// Wakes the commit threads that have something to write.
  @inline(__always)
  mutating func wakeCommitWriters() { heldStore.wakeCommitWriters() }

  // MARK: Commands on entries

  /// Executes a command under its store's lock.
  /// - Parameters:
  ///   - bytes: What the ranges in the command are about.
  ///   - memory: The memory that the whole request is in, if a store can keep a value there.
  ///   - uploads: Those of the client.
  @inline(__always)
  mutating func execute(
    _ command: Command, in bytes: RawSpan, _ memory: ValueMemory?, _ uploads: inout Uploads, on store: Store,
    _ map: inout EntryMap
  ) throws(Detour) -> Execution {
    if map.isDropped { throw .failure(.removed(store, map.removalError)) }
    switch command {
    case .get(let key): return try get(bytes.extracting(key), &map)
    case .put(let write): return try put(write, in: bytes, memory, &map)
    default: return try executeRare(command, in: bytes, &uploads, on: store, &map)
    }
  }

  private mutating func executeRare(
    _ command: Command, in bytes: RawSpan, _ uploads: inout Uploads, on store: Store, _ map: inout EntryMap
  ) throws(Detour) -> Execution {
    switch command {
    case .get, .put: preconditionFailure("the command is not rare")
    case .getRange(let request): return try getRange(request, in: bytes, &map)
    case .getMany(let keys): throw getMany(keys, in: bytes)
    case .putMany(let count): return try putMany(count, in: bytes, &map)
    case .delete(let key, let condition): return try delete(bytes.extracting(key), condition, &map)
    case .deleteMany(let keys): return try deleteMany(keys, in: bytes, &map)
    case .deleteAll:
      if map.expireBriefly(now: now) { throw .deferred }
      return try deleteAll(&map)
    case .count(let prefix):
      try prepareToCount(&map)
      return try count(bytes.extracting(prefix), &map)
    case .scan(let request, _):
      try prepareToCount(&map)
      throw scan(request, in: bytes, &map)
    case .watch(let request): throw watch(request, in: bytes, store, &map)
    case .apply(let count): return try apply(count, in: bytes, &map)
    case .putUpload(let request): return try put(request, in: bytes, &uploads, &map)
    }
  }

  /// Checks that entries can be counted by their ranks.
  private mutating func prepareToCount(_ map: inout EntryMap) throws(Detour) {
    do throws(StorageError) { try map.checkCounting(now: now) } catch {
      throw Detour(error, revealing: map.revisions.last)
    }
    if map.expireBriefly(now: now) { throw .deferred }
  }

  // MARK: Prefetching

  /// Whether no more keys can be added before `prefetchRecords`.
  @inline(__always)
  var hasPrefetchedEnough: Bool { prefetcher.isFull }

  /// Prefetches the index for a key.
  @inline(__always)
  mutating func prefetchIndex(_ key: RawSpan, _ map: inout EntryMap) { prefetcher.add(key, &map) }

  /// Prefetches the records of all keys whose index was prefetched.
  @inline(__always)
  mutating func prefetchRecords(_ map: inout EntryMap) { prefetcher.prefetchRecords(&map) }

  /// Prefetches the records of all keys whose index was prefetched, in the locked store.
  @inline(__always)
  mutating func prefetchRecords() {
    if let store = lockedStore { unsafe prefetcher.prefetchRecords(&store.map) }
  }

  /// Prefetches everything that the next keys of a list need.
  /// - Returns: the number of those keys.
  mutating func prefetch(_ keys: KeyList, of bytes: RawSpan, _ map: inout EntryMap) -> Int {
    prefetcher.prefetch(keys, of: bytes, &map)
  }

  /// Prefetches everything that the next records of a write need.
  /// - Returns: the number of those records.
  mutating func prefetchWrites(in bytes: RawSpan, at start: Int, _ map: inout EntryMap) -> Int {
    prefetcher.prefetchWrites(in: bytes, at: start, &map)
  }

  /// Prefetches everything that the next operations of an apply request need.
  /// - Returns: the number of those operations.
  mutating func prefetchOperations(in bytes: RawSpan, at start: Int, _ map: inout EntryMap) -> Int {
    prefetcher.prefetchOperations(in: bytes, at: start, &map)
  }
}
