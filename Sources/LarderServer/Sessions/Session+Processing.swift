// A get, from the socket to the reply:
//
// 1. `EventLoop`: epoll returns, and `handle` reads the connection with one `recv` …
// 2. `ReadBatch`: … into its place in the batch. When the batch is complete, `EventLoop.processBatch` goes through it.
// 3. `Prefetcher`: asks for the cache lines that the requests will need.
// 4. `Session+Processing`: `process` finds a request in place, `processOnStore` locks the store and runs all requests
//    on it that follow each other.
// 5. `HeldStore`: keeps the store locked for the next request and connection.
// 6. `NativeCodec` makes the request a `Command`. `Executor+Entries`: `get` finds the entry (`EntryMap+Reading`), and
//    returns it with the revision that it reveals …
// 7. `NativeCodec+Replies`: … which the codec appends to the connection's replies (`ReplyBuffer`) before the store is
//    unlocked; this is the only time the value is copied. A large value in memory is not copied, but attached.
// 8. After the last connection of the batch, the store is unlocked, and `EventLoop.settle` sends the replies of
//    each connection with one `send` (`Connection`). A reply that reveals a commit that is not durable yet is held, as
//    in the walkthrough of a durable put. A separated value is copied from the system's page cache after its store is
//    unlocked. If it is not there, the connection pauses, and a thread reads it (`ValueRead`).

import Platform
import Storage
import Wire

/// How the requests in the input of a connection are executed.
extension Session {
  var hasGreeting: Bool { C.hasGreeting }
  var isOrdered: Bool { C.isOrdered }
  var keepsReplies: Bool { C.keepsReplies }

  func scan(_ bytes: RawSpan, maxSize: Int) -> InputScan {
    switch C.scan(bytes, at: 0, maxSize: maxSize) {
    case .request(let request): .whole(size: request.size)
    case .partial(let size): .partial(size: size)
    case .invalid: .invalid
    }
  }

  func maxRequestSize(_ limits: borrowing ServerLimits, isStranger: Bool) -> Int {
    C.maxRequestSize(limits, isStranger: isStranger)
  }

  func append(_ failure: CommandFailure, to request: UInt32?, into bytes: inout ByteBuffer) {
    C.append(failure, to: request, into: &bytes)
  }

  func append(_ failure: CommandFailure, toBegunStream request: UInt32, into bytes: inout ByteBuffer) {
    C.append(failure, toBegunStream: request, into: &bytes)
  }

  func makeClientState(_ server: ServerState, _ mailbox: Mailbox, _ sharer: ConnectionSharer) -> AnyObject? {
    C.makeClientState(server, mailbox, sharer)
  }

  func hasLostMemory(_ connection: inout Connection) -> Bool { C.hasLostMemory(&connection) }

  func didChangeRights(of connection: inout Connection) { C.didChangeRights(of: &connection) }

  func appendPushes(of connection: inout Connection, into replies: inout ReplyBuffer) {
    C.appendPushes(of: &connection, into: &replies)
  }

  // MARK: Processing

  func process(
    _ bytes: RawSpan, of connection: inout Connection, prefetchEnd: Int, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> Int {
    let maxReplyBytes = connection.maxReplyBytes(executor.limits)
    let previousCount = executor.requestCount
    connection.waits.endDeferral()
    defer { connection.figures.requests.increment(by: Int(executor.requestCount &- previousCount)) }
    var position = 0
    while connection.executes, !connection.waits.isDeferred, !connection.waits.mustWait, replies.count < maxReplyBytes {
      let maxSize = C.maxRequestSize(executor.limits, isStranger: connection.isStranger)
      switch C.scan(bytes, at: position, maxSize: maxSize) {
      case .partial:
        executor.unlockStore()
        C.replyToBeginning(bytes.extracting(position...), of: &connection, on: &executor, into: &replies)
        return connection.executes ? position : bytes.byteCount
      case .invalid(let failure): end(&connection, failure.code, failure.message, on: &executor, into: &replies)
      case .request(let request):
        let opened = connection.stores[request.store]
        // An earlier request may have required the lease already.
        if let opened, opened.leaseIdentity != replies.leaseIdentity, let lease = opened.lease {
          guard lease.isHeld(at: executor.now) else {
            executor.unlockStore()
            let failure = opened.store.freshness == nil ? CommandFailure.leaseLost : .tooOld
            C.refuse(request, failure, of: &connection, into: &replies)
            executor.record(request.operation, CommandFailure.leaseLost.code)
            position += request.size
            continue
          }
          replies.require(lease)
        }
        if request.isRegular, let opened,
          permits(request, bytes, at: position, on: opened) || connection.waits.endedWrite != nil
        {
          position = processOnStore(
            request, bytes, at: position, prefetchEnd: prefetchEnd, of: &connection, opened,
            maxReplyBytes: maxReplyBytes, on: &executor, into: &replies)
          continue
        }
        executor.unlockStore()
        executor.updateClock()
        let body = bytes.extracting(request.body(at: position))
        let end = C.execute(request, body, of: &connection, on: &executor, into: &replies)
        executor.timeHasPassed()
        switch end {
        case .replied(let failure): executor.record(request.operation, failure)
        case .pending: executor.recordPending()
        case .deferred:
          connection.waits.deferRequest()
          continue
        case .paused: return position
        }
        position += request.size
        if C.isLast(request) { connection.endAfterReply() }
      }
    }
    // Others get their turn before more replies are made for a client that has enough of them.
    if C.keepsReplies, replies.count >= maxReplyBytes, position < bytes.byteCount, connection.executes,
      !connection.waits.mustWait
    {
      connection.waits.deferRequest()
    }
    // What arrives at a connection that is ending is never executed, so it counts as consumed.
    return connection.executes ? position : bytes.byteCount
  }

  func executeAhead(
    of connection: inout Connection, on executor: inout Executor, into replies: inout ReplyBuffer
  ) {
    C.executeAhead(of: &connection, on: &executor, into: &replies)
  }

  /// Executes the request at `start` and those after it that name the same store, under that store's lock.
  /// - Returns: Where the first request begins that was not executed.
  private func processOnStore(
    _ first: C.Request, _ bytes: RawSpan, at start: Int, prefetchEnd: Int, of connection: inout Connection,
    _ opened: OpenStores.Opened, maxReplyBytes: Int, on executor: inout Executor, into replies: inout ReplyBuffer
  ) -> Int {
    let store = opened.store
    let maxSize = C.maxRequestSize(executor.limits, isStranger: false)
    var position = start
    var request = first
    var prefetchEnd = prefetchEnd
    executor.lock(store)
    while true {
      // A single request gains nothing from prefetching.
      if position >= prefetchEnd, position &+ request.size < bytes.byteCount {
        prefetchEnd = unsafe prefetch(
          bytes, at: position, store: first.store, maxSize: maxSize, &store.map, on: &executor)
        unsafe executor.prefetchRecords(&store.map)
      }
      let body = unsafe bytes.extracting(unchecked: request.body(at: position))
      executor.updateClock()
      let (mark, previousCount) = (replies.bytes.count, replies.count)
      var end = unsafe execute(
        request, body, of: &connection, on: store, &store.map, executor: &executor, into: &replies)
      if case .replied(let failure) = end {
        executor.countWork(request.size &+ replies.count &- previousCount, of: request.operation)
        if replies.lacksValues {
          executor.unlockStore()
          end = readValues(
            of: request, from: mark, failure, of: &connection, store, on: &executor, into: &replies)
          executor.timeHasPassed()
          if !connection.waits.isPaused { executor.lock(store) }
        }
      }
      switch end {
      case .replied(let failure): executor.record(request.operation, failure)
      case .pending: executor.recordPending()
      case .deferred:
        connection.waits.deferRequest()
        return stop(at: position, from: start, on: &executor)
      case .paused: return stop(at: position, from: start, on: &executor)
      }
      position &+= request.size
      if C.isLast(request) { connection.endAfterReply() }
      guard connection.executes, !connection.waits.mustWait, replies.count < maxReplyBytes,
        case .request(let next) = C.scan(bytes, at: position, maxSize: maxSize),
        next.store == first.store, next.isRegular, permits(next, bytes, at: position, on: opened)
      else { return stop(at: position, from: start, on: &executor) }
      request = next
    }
  }

  /// Whether the connection may execute a request on the entries of an open store.
  @inline(__always)
  private func permits(_ request: C.Request, _ bytes: RawSpan, at start: Int, on opened: OpenStores.Opened) -> Bool {
    if opened.permitted.contains(request.operation) { return true }
    guard opened.permittedOnKeys.contains(request.operation) else { return false }
    let body = unsafe bytes.extracting(unchecked: request.body(at: start))
    if let key = C.soleKey(of: request, body), opened.prefixTest.isPassed(by: key, in: body) { return true }
    return permitsSlowly(request, body, on: opened)
  }

  @inline(never)
  private func permitsSlowly(_ request: C.Request, _ body: RawSpan, on opened: OpenStores.Opened) -> Bool {
    C.isPermitted(request, body, by: opened.rights)
  }

  @inline(__always)
  private func stop(at position: Int, from start: Int, on executor: inout Executor) -> Int {
    executor.didExecute(byteCount: position &- start)
    return position
  }

  /// Executes one request on entries, and appends its reply.
  @inline(__always)
  private func execute(
    _ request: C.Request, _ body: RawSpan, of connection: inout Connection, on store: Store, _ map: inout EntryMap,
    executor: inout Executor, into replies: inout ReplyBuffer
  ) -> RequestEnd {
    if connection.waits.endedWrite != nil {
      return finishWrite(request, body, of: &connection, on: store, &map, executor: &executor, into: &replies)
    }
    var command = Command.deleteAll
    let start = replies.count
    do throws(Detour) {
      if let execution = try C.executeOnEntries(
        request, body, of: &connection, on: store, &map, executor: &executor, into: &replies)
      {
        if store.gatesReplies(revealing: execution.shownRevision), let commitWriter = store.commitWriter {
          replies.require(execution.shownRevision, commitWriter, of: request.tag, from: start, reveals: true)
        }
        return .replied(failure: execution.failure)
      }
      if C.translatesCommands {
        return try executeTranslated(
          request, body, of: &connection, on: store, &map, executor: &executor, into: &replies)
      }
      do throws(CommandFailure) { command = try C.command(of: request, body) } catch { throw .failure(error) }
      if command.mayStream, let end = rejectStream(request.tag, of: &connection, on: &executor, into: &replies) {
        return end
      }
      // A request that can have a large value is in memory of its own.
      let memory = request.size < AttachedValue.minSize ? nil : connection.input.valueMemory
      let execution = try executor.execute(command, in: body, memory, &connection.uploads, on: store, &map)
      if case .deleteAll = command { executor.server.accessControl.didEmpty(store.name, connection) }
      return reply(execution, to: request, store, now: executor.now, into: &replies)
    } catch {
      return follow(
        error, of: command, to: request, body, of: &connection, on: store, &map, executor: &executor, into: &replies)
    }
  }

  /// Executes a request on entries whose command is decoded from other bytes.
  @inline(never)
  private func executeTranslated(
    _ request: C.Request, _ bytes: RawSpan, of connection: inout Connection, on store: Store, _ map: inout EntryMap,
    executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(Detour) -> RequestEnd {
    let (command, body): (Command, [UInt8])
    do throws(CommandFailure) { (command, body) = try C.translatedCommand(of: request, bytes, of: &connection) } catch {
      throw .failure(error)
    }
    if command.mayStream, let end = rejectStream(request.tag, of: &connection, on: &executor, into: &replies) {
      return end
    }
    do throws(Detour) {
      let execution = unsafe try executor.execute(
        command, in: body.span.bytes, nil, &connection.uploads, on: store, &map)
      return reply(execution, to: request, store, now: executor.now, into: &replies)
    } catch {
      return unsafe follow(
        error, of: command, to: request, body.span.bytes, of: &connection, on: store, &map, executor: &executor,
        into: &replies)
    }
  }

  /// Appends the reply with the outcome of a command on entries.
  @inline(__always)
  func reply(
    _ execution: Execution, to request: C.Request, _ store: Store, now: UInt64, into replies: inout ReplyBuffer
  ) -> RequestEnd {
    let start = replies.count
    C.append(execution.outcome, to: request.tag, now: now, into: &replies)
    if store.gatesReplies(revealing: execution.shownRevision), let commitWriter = store.commitWriter {
      // That an entry is absent reveals something, too.
      replies.require(execution.shownRevision, commitWriter, of: request.tag, from: start, reveals: true)
    }
    return .replied(failure: execution.outcome.errorCode)
  }

  /// Appends a failure as the reply to a request.
  func reply(
    _ failure: CommandFailure, to request: C.Request, _ store: Store, into replies: inout ReplyBuffer
  ) -> RequestEnd {
    let start = replies.count
    C.append(failure, to: request.tag, into: &replies.bytes)
    if failure.shownRevision > 0, let commitWriter = store.commitWriter {
      replies.require(
        failure.shownRevision, commitWriter, of: request.tag, from: start, reveals: failure.code.revealsEntries)
    }
    return .replied(failure: failure.code)
  }

  /// Reads the values that the reply to a request lacks, or pauses the connection until they have been read.
  /// - Parameters:
  ///   - mark: Where the reply begins in the bytes.
  ///   - failure: That of the reply.
  private func readValues(
    of request: C.Request, from mark: Int, _ failure: ErrorCode?, of connection: inout Connection, _ store: Store,
    on executor: inout Executor, into replies: inout ReplyBuffer
  ) -> RequestEnd {
    let shownRevision = replies.lastRequiredRevision
    let isFollowed = connection.hasStream(request.tag)
    switch replies.readCachedValues(from: mark) {
    case .complete: return .replied(failure: failure)
    case .failed(let failure):
      // A stream of several parts ends with its first one.
      connection.endStream(tag: request.tag)
      return reply(failure, to: request, store, into: &replies)
    case .onDisk(let reply):
      let pending = PendingRequest(
        operation: request.operation, byteCount: request.size, store: store.name.text,
        startTime: monotonicNanoseconds())
      let read = ValueRead(
        reply, of: request.tag, store, showing: shownRevision, isFollowed: isFollowed, request: pending)
      wait(for: read, .reply(read), of: &connection, on: &executor)
      return .pending
    }
  }

  // MARK: Prefetching

  func prefetch(_ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor) -> Int {
    let maxSize = C.maxRequestSize(executor.limits, isStranger: false)
    guard connection.phase == .open, case .request(let first) = C.scan(bytes, at: 0, maxSize: maxSize),
      let opened = connection.stores[first.store], permits(first, bytes, at: 0, on: opened),
      executor.lockedStore == nil || executor.lockedStore === opened.store
    else { return 0 }
    executor.lock(opened.store)
    return unsafe prefetch(
      bytes, at: 0, store: first.store, maxSize: maxSize, &opened.store.map, on: &executor)
  }

  /// Prefetches the index for the requests that begin at `start` and name the same store.
  /// - Returns: Where the first request begins that was not looked at.
  private func prefetch(
    _ bytes: RawSpan, at start: Int, store: UInt16, maxSize: Int, _ map: inout EntryMap, on executor: inout Executor
  ) -> Int {
    var position = start
    while !executor.hasPrefetchedEnough, case .request(let request) = C.scan(bytes, at: position, maxSize: maxSize),
      request.store == store
    {
      let body = unsafe bytes.extracting(unchecked: request.body(at: position))
      if let key = C.key(of: request, body) {
        unsafe executor.prefetchIndex(body.extracting(unchecked: key), &map)
      }
      position &+= request.size
    }
    return position
  }

  // MARK: The end

  func end(
    _ connection: inout Connection, _ code: ErrorCode, _ message: String, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) {
    var hasChanged = connection.streams.contains { !$0.tryCancel() }
    switch connection.endPause(now: executor.now) {
    case .change?: hasChanged = true
    case .write(let job)?: if !job.cancel() { hasChanged = true }
    default: if connection.waits.endedWrite != nil { hasChanged = true }
    }
    if hasChanged {
      connection.phase = .closed
    } else {
      C.append(CommandFailure(code, message), to: nil, into: &replies.bytes)
      connection.phase = .closing
    }
  }
}

extension ErrorCode {
  /// Whether a reply with it reveals the state of entries. That an entry is absent reveals something, too.
  var revealsEntries: Bool { self == .notFound || self == .conditionFailed }
}
