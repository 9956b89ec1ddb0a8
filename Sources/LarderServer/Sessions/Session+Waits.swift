import Platform
import Storage
import Wire

/// How the requests of a connection wait without keeping its worker waiting.
extension Session {
  // MARK: Requests on entries

  /// Does what a command on entries requires instead of an outcome.
  func follow(
    _ detour: Detour, of command: Command, to request: C.Request, _ body: RawSpan, of connection: inout Connection,
    on store: Store, _ map: inout EntryMap, executor: inout Executor, into replies: inout ReplyBuffer
  ) -> RequestEnd {
    switch detour {
    case .failure(let failure): return reply(failure, to: request, store, into: &replies)
    case .entries(let cursor, let revision):
      return beginEntries(
        cursor, revision, of: command, to: request, body, of: &connection, on: store, &map, executor: &executor,
        into: &replies)
    case .changes(let watch, let start, let revision):
      return beginChanges(
        watch, start, revision, to: request, of: &connection, on: store, executor: &executor, into: &replies)
    case .deferred: return .deferred
    case .needsSpace:
      if waitForSpace(in: store, of: &connection, on: &executor) { return .paused }
      return reply(CommandFailure(.diskTooSlow), to: request, store, into: &replies)
    case .needsCommit:
      let token = connection.begin(.commit)
      map.addCommitWaiter { [mailbox = executor.mailbox] in mailbox.post(endOf: token) }
      return .paused
    case .needsValue(let value):
      waitForCache(of: value, in: store, of: &connection, on: &executor)
      return .paused
    case .needsWriteJob:
      do throws(StorageError) {
        try startWrite(command.operation, request, body, of: &connection, on: store, executor: &executor)
        return .paused
      } catch { return reply(CommandFailure(error), to: request, store, into: &replies) }
    case .needsDocumentJob:
      return startApply(request, body, of: &connection, on: store, &map, executor: &executor, into: &replies)
    }
  }

  /// Pauses a connection until there may be space for the commit of its next request. The store is locked, and unlocked
  /// afterward.
  /// - Returns: False if the request has waited long enough.
  private func waitForSpace(in store: Store, of connection: inout Connection, on executor: inout Executor) -> Bool {
    guard let commitWriter = store.commitWriter, connection.waits.mayWaitForSpace else { return false }
    // With the store locked, no change of the space can get lost.
    let count = commitWriter.spaceChangeCount
    executor.unlockStore()
    let token = connection.begin(.space, deadline: executor.now + Pause.spaceMilliseconds)
    commitWriter.waitForSpace(since: count) { [mailbox = executor.mailbox] in mailbox.post(endOf: token) }
    return true
  }

  // MARK: Writes by jobs

  /// Leaves a write to a job, and pauses the connection until it has ended. The request stays in the connection's input,
  /// where its memory is counted, and is executed again then: `finishWrite` makes the reply.
  private func startWrite(
    _ operation: Operation, _ request: C.Request, _ body: RawSpan, of connection: inout Connection, on store: Store,
    executor: inout Executor
  ) throws(StorageError) {
    let pending = PendingRequest(
      operation: operation.rawValue, byteCount: request.size, store: store.name.text,
      startTime: monotonicNanoseconds())
    let token = connection.nextPauseToken
    let job = try WriteJob(
      operation, body, in: connection.input.valueMemory, of: store, pending, executor.limits
    ) { [mailbox = executor.mailbox] in mailbox.post(endOf: token) }
    connection.begin(.write(job))
    executor.unlockStore()
    executor.server.largeCommits.run(job)
  }

  /// Appends the reply to a request whose job has ended.
  func finishWrite(
    _ request: C.Request, _ body: RawSpan, of connection: inout Connection, on store: Store, _ map: inout EntryMap,
    executor: inout Executor, into replies: inout ReplyBuffer
  ) -> RequestEnd {
    guard let job = connection.waits.takeEndedWrite() else { preconditionFailure("a job has ended") }
    var end: RequestEnd
    do throws(Detour) {
      if map.isDropped { throw .failure(.removed(store, map.removalError)) }
      end = reply(try executor.execution(of: job), to: request, store, now: executor.now, into: &replies)
    } catch {
      end = unsafe follow(
        error, of: .apply(count: 0), to: request, RawSpan(_unsafeBytes: job.bytes), of: &connection, on: store, &map,
        executor: &executor, into: &replies)
    }
    guard case .replied(let failure) = end else { return end }
    executor.record(failure, of: job.request)
    return .pending
  }

  // MARK: Values on a disk

  /// Pauses a connection until values have been read.
  func wait(for read: ValueRead, _ pause: Pause, of connection: inout Connection, on executor: inout Executor) {
    let token = connection.begin(pause)
    read.store.diskReads.run { [mailbox = executor.mailbox] in
      read.run()
      mailbox.post(endOf: token)
    }
  }

  /// Pauses a connection until a value has been read, so that its next request finds it in the system's page cache.
  private func waitForCache(
    of value: SeparatedValue, in store: Store, of connection: inout Connection, on executor: inout Executor
  ) {
    let token = connection.begin(.cache)
    store.diskReads.run { [mailbox = executor.mailbox] in
      value.readAhead()
      mailbox.post(endOf: token)
    }
  }

  // MARK: Changes of stores

  /// Changes the stores on a thread of its own, and pauses the connection until that is done.
  func change(
    _ operation: StoreChange.Action, _ request: C.Request, of connection: inout Connection, store: String = "",
    on executor: inout Executor
  ) -> RequestEnd {
    let pending = PendingRequest(
      operation: request.operation, byteCount: request.size, store: store, startTime: monotonicNanoseconds())
    let change = StoreChange(operation, tag: request.tag, pending)
    let accessControl = executor.server.accessControl
    let client = accessControl.isAudited ? accessControl.auditClient(of: connection) : nil
    let token = connection.begin(.change(change))
    executor.server.storeChanges.async { [mailbox = executor.mailbox, server = executor.server] in
      change.run(server.stores, sharing: server.sharedStores)
      if let client, let event = change.auditEvent(client) { server.accessControl.record(event) }
      if change.isRemoval { server.storeWasDropped() }
      mailbox.post(endOf: token)
    }
    return .pending
  }

  // MARK: Refusals

  /// Refuses a request, or pauses the connection until the message can name the client's user.
  /// - Parameter action: What the client asked for, as it reads after "may not".
  func refuse(
    _ action: String, _ request: C.Request, of connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> RequestEnd {
    let token = connection.nextPauseToken
    let message = executor.server.accessControl.refuse(action, to: connection) { [mailbox = executor.mailbox] in
      mailbox.post(endOf: token)
    }
    guard let message else {
      connection.begin(.userName, deadline: executor.now + Pause.userNameMilliseconds)
      return .paused
    }
    C.refuse(request, CommandFailure(.notPermitted, message), of: &connection, into: &replies)
    return .replied(failure: .notPermitted)
  }

  // MARK: The end of a pause

  func endPause(
    of connection: inout Connection, isOverdue: Bool, on executor: inout Executor, into replies: inout ReplyBuffer
  ) {
    switch connection.endPause(now: executor.now) {
    case .space?:
      if isOverdue { connection.waits.stopWaitingForSpace() }
    case .userName?:
      if isOverdue { executor.server.accessControl.giveUpOnName(of: connection) }
    case .reply(let read)?: finish(read, of: &connection, on: &executor, into: &replies)
    case .document(let read, let handle)?:
      guard let index = connection.streams.firstIndex(where: { $0.tag == read.tag }) else { return }
      if read.failure == nil {
        connection.streams[index].readDocument = (handle, read)
      } else {
        finish(read, of: &connection, on: &executor, into: &replies)
      }
    case .change(let change)?:
      append(change.outcome, to: change.tag, into: &replies)
      executor.record(change.outcome.errorCode, of: change.request)
    case .write(let job)?: connection.waits.writeDidEnd(job)
    case .cache?, .commit?: break
    case nil: break
    }
  }

  /// Appends a reply whose values have been read, or an error in its place.
  private func finish(
    _ read: ValueRead, of connection: inout Connection, on executor: inout Executor, into replies: inout ReplyBuffer
  ) {
    if let failure = read.failure {
      if read.isContinuation {
        C.append(failure, toBegunStream: read.tag, into: &replies.bytes)
      } else {
        C.append(failure, to: read.tag, into: &replies.bytes)
      }
      connection.endStream(tag: read.tag)
    } else if !read.isFollowed || connection.hasStream(read.tag) {
      // A stream that has ended meanwhile has had its last reply.
      let start = replies.count
      replies.append(&read.bytes)
      if let commitWriter = read.store.commitWriter {
        if read.request != nil {
          replies.require(read.shownRevision, commitWriter, of: read.tag, from: start, reveals: true)
        } else {
          replies.requireForPart(read.shownRevision, commitWriter, of: read.tag, from: start)
        }
      }
    }
    if let request = read.request { executor.record(read.failure?.code, of: request) }
  }

  /// Appends the reply to a request that took longer than its wakeup.
  func append(_ outcome: LateOutcome, to tag: UInt32, into replies: inout ReplyBuffer) {
    if case .failure(let failure) = outcome {
      C.append(failure, to: tag, into: &replies.bytes)
    } else {
      C.append(outcome, to: tag, into: &replies)
    }
  }
}
