import Platform
import Storage
import Wire

/// Executes the requests of a worker's connections: frames in, replies out (`Protocol/wire.md` §6 and §9).
///
/// `process` decodes what one connection sent, executes each request, and appends the reply to the connection's
/// `ReplyBuffer`. Requests on entries run under the lock of their store, which stays locked until `unlockStore`, or
/// until a request needs another store. A handler returns a `RequestResult`; it leaves nothing behind for the next one.
///
/// Owned by one worker's `ConnectionHandler`, and made once per worker, so that a request costs no allocation and no
/// reference counting. The handlers are in extensions: `+Entries` (get, put, …), `+Apply`, `+Uploads`, `+Streams` (replies of
/// several frames), `+Documents` (finds and the like), `+Watches`, and `+Server` (everything else). They are
/// `mutating`, even if they change nothing, because the compiler copies a large struct that it lends to a function.
struct RequestProcessor: ~Copyable {
  let server: ServerState
  /// The limits in force. The worker has a copy of its own, because every request reads them.
  private(set) var limits: ServerLimits
  /// The time, in milliseconds of the clock that expiries are measured with. During a request it does not change.
  private(set) var now: UInt64 = 0
  /// The size of the requests executed and replies made since the clock was read, in bytes; see `countWork`.
  private var work = 0
  var prefetcher = Prefetcher()
  /// The documents whose fields a find returns, while they are copied.
  var documents = DocumentBatch()
  let maxValueSize: Int
  /// The size of a frame's body, in bytes, at which a reply stream begins a new frame.
  let maxStreamFrameBody: Int
  let mailbox: Mailbox
  private let metrics: WorkerMetrics
  private var counts = WakeupCounts()
  private var heldStore: HeldStore
  private let operationsOnEntries = OperationSet.onEntries()
  private let shortOperations = OperationSet { $0.isShort }
  private let reportingOperations = OperationSet { $0.reportsShownRevision }

  /// The work after which the clock is read again, in bytes. Short requests of that size take less than 0.5 ms.
  private static let maxWork = 16 << 10

  init(server: ServerState, metrics: WorkerMetrics, mailbox: Mailbox) {
    self.server = server
    self.metrics = metrics
    self.mailbox = mailbox
    heldStore = HeldStore(server.expiryTimer)
    let limits = server.limits
    self.limits = limits
    maxValueSize = limits.maxValueBytes
    maxStreamFrameBody = min(ReplyStream.maxFrameBody, limits.maxFrameBytes - Frame.minLength)
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

  /// Counts what a request or a frame took. How long it took is not known, only that short requests take little time
  /// for their size.
  @inline(__always)
  private mutating func countWork(_ byteCount: Int, of operation: UInt8) {
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

  @inline(__always)
  private mutating func record(_ result: RequestResult, of operation: UInt8) {
    if result.isPending { return counts.countPending() }
    counts.count(operation)
    if result.outcome != .done { recordFailure(result.outcome, of: operation) }
  }

  @inline(never)
  private mutating func recordFailure(_ outcome: Outcome, of operation: UInt8) {
    counts.countFailure(operation, outcome, metrics)
  }

  /// Records the end of a request that took longer than its wakeup: how it ended, and how long it took.
  func record(_ outcome: Outcome, of request: PendingRequest) {
    let nanoseconds = monotonicNanoseconds() - request.startTime
    let operation = Int(request.operation)
    metrics.count(1, operation, outcome)
    metrics.record(nanoseconds: nanoseconds, count: 1, of: operation)
    guard nanoseconds >= limits.slowThreshold.wholeMilliseconds * 1_000_000 else { return }
    let entry = SlowLog.Entry(
      ended: monotonicMilliseconds(), nanoseconds: nanoseconds, requests: 1,
      receivedBytes: UInt64(request.byteCount), operations: SlowLog.Entry.bits(1 << UInt64(operation)),
      store: request.store)
    server.slowLog.withLock { $0.append(entry) }
  }

  /// Records the end of a request with a job.
  func record(_ outcome: Outcome, of job: DocumentJob) {
    record(
      outcome,
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

  /// Records the end of a job that its stream still waits for, if there is one.
  func recordEnd(of stream: ReplyStream, _ code: ErrorCode) {
    if let job = stream.runningJob { record(code.outcome, of: job) }
  }

  // MARK: Processing

  /// Unlocks the store that is still locked for the next request, if there is one. Call it before any system call.
  @inline(__always)
  mutating func unlockStore() { heldStore.unlock() }

  /// Wakes the commit threads that have something to write.
  @inline(__always)
  mutating func wakeCommitWriters() { heldStore.wakeCommitWriters() }

  /// The size of replies, in bytes, at which a connection has enough waiting to be sent, and none of its requests is
  /// executed any more.
  @inline(__always)
  func maxReplyBytes(for connection: borrowing Connection) -> Int {
    limits.maxOutputBytes - connection.waitingReplyBytes
  }

  /// Executes the requests in `bytes` until the bytes or the room for replies run out, or the connection must wait or
  /// ends.
  /// - Parameter prefetchEnd: the end of the requests whose memory `prefetch` has requested.
  /// - Returns: the number of bytes consumed. What follows is the beginning of a frame, or has to wait: until the client
  ///   reads its replies, or for the end of a pause or a change.
  mutating func process(
    _ bytes: RawSpan, of connection: inout Connection, prefetchEnd: Int = 0, into replies: inout ReplyBuffer
  ) -> Int {
    let maxReplyBytes = maxReplyBytes(for: connection)
    let previousCount = counts.requests
    connection.isDeferred = false
    defer { connection.figures.requests.increment(by: Int(counts.requests &- previousCount)) }
    var position = 0
    while connection.executes, !connection.isDeferred, !connection.mustWait, replies.count < maxReplyBytes {
      switch FrameScan(
        bytes, at: position, maxLength: connection.phase == .greeting ? Frame.maxSizeBeforeHello : limits.maxFrameBytes)
      {
      case .partial:
        return position
      case .invalid(let length):
        endConnection(&connection, .frameLength, "a frame can't have a length of \(length)", into: &replies)
      case .frame(let header):
        let result: RequestResult?
        if header.id == 0 {
          result = endConnection(&connection, .malformed, "a request's id must not be 0", into: &replies)
        } else if connection.phase == .greeting {
          // A store may still be locked for an earlier connection, and looking up who the client is can take a while.
          unlockStore()
          result = greet(header, bytes.extracting(header.body(at: position)), &connection, into: &replies)
        } else if header.flags == 0, let opened = connection.stores[header.detail],
          opened.permitted.contains(header.kind) || connection.endedWrite != nil
        {
          position = executeOnStore(
            header, bytes, at: position, prefetchEnd: prefetchEnd, of: &connection, opened,
            maxReplyBytes: maxReplyBytes, into: &replies)
          continue
        } else {
          unlockStore()
          updateClock()
          result = executeOnServer(header, bytes.extracting(header.body(at: position)), &connection, into: &replies)
          timeHasPassed()
        }
        // The connection pauses, and the request is executed afterward.
        guard let result else { return position }
        if result.isDeferred {
          connection.isDeferred = true
          break
        }
        record(result, of: header.kind)
        position += header.frameSize
      }
    }
    // What arrives at a connection that is ending is never executed, so it counts as consumed.
    return connection.executes ? position : bytes.byteCount
  }

  /// Appends a notice, the connection's last frame. Nothing is executed after it. Just closes the connection while it
  /// waits for a change of the stores, or has yet to report a change by a job: a notice would say that the change is not
  /// made.
  @discardableResult
  mutating func endConnection(
    _ connection: inout Connection, _ code: ErrorCode, _ message: String, into replies: inout ReplyBuffer
  ) -> RequestResult {
    var hasChanged = connection.streams.contains { !$0.tryCancel() }
    switch connection.endPause(now: now) {
    case .change?: hasChanged = true
    case .write(let job)?: if !job.cancel() { hasChanged = true }
    default: if connection.endedWrite != nil { hasChanged = true }
    }
    if hasChanged {
      connection.phase = .closed
    } else {
      replies.bytes.appendError(code, id: 0, message: message)
      connection.phase = .closing
    }
    return RequestResult(outcome: code.outcome)
  }

  /// Executes the request at `start` and those after it that name the same store, under that store's lock.
  /// - Returns: where the first frame begins that was not executed.
  private mutating func executeOnStore(
    _ first: FrameHeader, _ bytes: RawSpan, at start: Int, prefetchEnd: Int, of connection: inout Connection,
    _ opened: OpenStores.Opened, maxReplyBytes: Int, into replies: inout ReplyBuffer
  ) -> Int {
    let store = opened.store
    let maxFrameBytes = limits.maxFrameBytes
    var position = start
    var header = first
    var prefetchEnd = prefetchEnd
    heldStore.lock(store)
    while true {
      // A single request gains nothing from prefetching.
      if position >= prefetchEnd, position &+ header.frameSize < bytes.byteCount {
        prefetchEnd = unsafe prefetcher.addRequests(
          in: bytes, at: position, storeHandle: first.detail, maxFrameBytes: maxFrameBytes, &store.map)
        unsafe prefetcher.prefetchRecords(&store.map)
      }
      let body = unsafe bytes.extracting(unchecked: header.body(at: position))
      updateClock()
      let (mark, previousCount) = (replies.bytes.count, replies.count)
      var result: RequestResult
      if let executed = unsafe execute(header, body, &connection, store, &store.map, into: &replies) {
        result = executed
      } else if startWrite(&connection) || waitForSpace(in: store, &connection) {
        break
      } else {
        result = replies.fail(.diskTooSlow, header.id)
      }
      if result.isDeferred {
        connection.isDeferred = true
        break
      }
      countWork(header.frameSize &+ replies.count &- previousCount, of: header.kind)
      if replies.lacksValues {
        unlockStore()
        result = readValues(of: header, from: mark, result, &connection, store, into: &replies)
        timeHasPassed()
        if !connection.isPaused { heldStore.lock(store) }
      }
      record(result, of: header.kind)
      position &+= header.frameSize
      guard connection.executes, !connection.mustWait, replies.count < maxReplyBytes,
        case .frame(let next) = FrameScan(bytes, at: position, maxLength: maxFrameBytes),
        next.detail == first.detail, next.flags == 0, next.id != 0, opened.permitted.contains(next.kind)
      else { break }
      header = next
    }
    heldStore.didExecute(byteCount: position &- start)
    return position
  }

  /// Reads the values that the reply to a request lacks, or pauses the connection until they have been read.
  /// - Returns: the request's result.
  private mutating func readValues(
    of header: FrameHeader, from mark: Int, _ result: RequestResult, _ connection: inout Connection, _ store: Store,
    into replies: inout ReplyBuffer
  ) -> RequestResult {
    switch replies.readCachedValues(of: header.id, from: mark) {
    case .complete: return result
    case .failed(let failure):
      // A stream of several frames ends with its first one.
      connection.endStream(id: header.id)
      return failure
    case .onDisk(let frame):
      let request = PendingRequest(
        operation: header.kind, byteCount: header.frameSize, store: store.name.text, startTime: monotonicNanoseconds())
      let read = ValueRead(frame, of: header.id, store, showing: result.shownRevision, request: request)
      wait(for: read, .frame(read), &connection)
      return RequestResult(isPending: true)
    }
  }

  /// Executes one request on entries, and notes what must be durable before its reply is sent.
  /// - Returns: nil when nothing was done, because the connection pauses, or the store's commit writer has to make room
  ///   first.
  @inline(__always)
  private mutating func execute(
    _ header: FrameHeader, _ body: RawSpan, _ connection: inout Connection, _ store: Store, _ map: inout EntryMap,
    into replies: inout ReplyBuffer
  ) -> RequestResult? {
    let mark = replies.bytes.count
    var result: RequestResult?
    if map.isDropped {
      connection.endedWrite = nil
      result = replies.fail(.storeUnknown, header.id, "store \(store.name) was dropped")
    } else {
      do throws(StorageError) {
        let handled = try handle(header, body, &connection, store, &map, into: &replies)
        if handled.isDeferred { return handled }
        result = handled
      } catch {
        replies.truncate(to: mark)
        if error == .commitPending {
          waitForCommit(in: &map, &connection)
          return nil
        }
        result = error == .diskTooSlow ? nil : replies.fail(error, header.id)
      }
    }
    if let commitWriter = store.commitWriter {
      let shown = result?.shownRevision ?? 0
      replies.require(reportingOperations.contains(header.kind) ? shown : map.revision, commitWriter)
    }
    return result
  }

  /// Dispatches a request on entries to its handler.
  @inline(__always)
  private mutating func handle(
    _ header: FrameHeader, _ body: RawSpan, _ connection: inout Connection, _ store: Store, _ map: inout EntryMap,
    into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult {
    let id = header.id
    switch Operation(rawValue: header.kind) {
    case .get: return get(body, id, &map, into: &replies)
    case .getRange: return getRange(body, id, &map, into: &replies)
    case .put: return try put(body, id, &connection, &map, into: &replies)
    case .getMany: return getMany(body, id, &connection, store, &map, into: &replies)
    case .putMany: return try putMany(body, id, &connection, store, &map, into: &replies)
    case .delete: return try delete(body, id, &map, into: &replies)
    case .deleteMany: return try deleteMany(body, id, &connection, store, &map, into: &replies)
    case .deleteAll: return try map.expireBriefly(now: now) ? .deferred : deleteAll(body, id, &map, into: &replies)
    case .count:
      try map.checkCounting(now: now)
      return map.expireBriefly(now: now) ? .deferred : count(body, id, &map, into: &replies)
    case .page:
      try map.checkCounting(now: now)
      if map.expireBriefly(now: now) { return .deferred }
      return try scan(.page, body, id, &connection, store, &map, into: &replies)
    case .all:
      try map.checkCounting(now: now)
      if map.expireBriefly(now: now) { return .deferred }
      return try scan(.all, body, id, &connection, store, &map, into: &replies)
    case .watch: return try watch(body, id, &connection, store, &map, into: &replies)
    case .apply: return try apply(body, id, &connection, store, &map, into: &replies)
    case .uploadPut: return try putUpload(body, id, &connection, &map, into: &replies)
    default: return replies.fail(.unknownOperation, id)
    }
  }

  // MARK: Prefetching

  /// Prefetches the index for the requests that a connection sent, if the first one is on entries, and locks their
  /// store.
  /// - Parameter connection: It isn't changed, but a call that only borrows it copies it.
  /// - Returns: the end of the requests that were looked at.
  mutating func prefetch(_ bytes: RawSpan, of connection: inout Connection) -> Int {
    guard connection.phase == .open,
      case .frame(let first) = FrameScan(bytes, at: 0, maxLength: limits.maxFrameBytes),
      operationsOnEntries.contains(first.kind), let store = connection.stores[first.detail]?.store,
      heldStore.store == nil || heldStore.store === store
    else { return 0 }
    heldStore.lock(store)
    return unsafe prefetcher.addRequests(
      in: bytes, at: 0, storeHandle: first.detail, maxFrameBytes: limits.maxFrameBytes, &store.map)
  }

  /// Prefetches the records of all requests that `prefetch` has looked at.
  mutating func prefetchRecords() {
    if let store = heldStore.store { unsafe prefetcher.prefetchRecords(&store.map) }
  }
}

/// The result of a request whose reply has been appended.
struct RequestResult {
  /// `done`, or the outcome of the error that was sent.
  let outcome: Outcome
  /// The newest commit that the reply reveals, which must be durable before the reply is sent; 0 for none.
  let shownRevision: UInt64
  /// Whether the reply follows when a job has ended. The outcome is not known then.
  let isPending: Bool
  /// Whether nothing was done, and the request must be executed again later: it counts entries, and many that have
  /// expired are still to be removed.
  let isDeferred: Bool

  static let deferred = RequestResult(isDeferred: true)

  @inline(__always)
  init(outcome: Outcome = .done, shownRevision: UInt64 = 0, isPending: Bool = false, isDeferred: Bool = false) {
    self.outcome = outcome
    self.shownRevision = shownRevision
    self.isPending = isPending
    self.isDeferred = isDeferred
  }

  /// The same result of a reply that reveals a commit.
  @inline(__always)
  func showing(_ revision: UInt64) -> RequestResult {
    RequestResult(outcome: outcome, shownRevision: revision, isPending: isPending)
  }
}
