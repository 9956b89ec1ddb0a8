import Platform
import Storage
import Wire

/// How the requests of a connection wait without keeping its worker waiting.
extension RequestProcessor {
  // MARK: Beginning

  /// Pauses a connection until there may be space for the commit of its next request. The store is locked, and unlocked
  /// afterward.
  /// - Returns: false if the request has waited long enough.
  mutating func waitForSpace(in store: Store, _ connection: inout Connection) -> Bool {
    guard let commitWriter = store.commitWriter, connection.spaceWaitCount < Pause.maxSpaceWaits else { return false }
    // With the store locked, no change of the space can get lost.
    let count = commitWriter.spaceChangeCount
    unlockStore()
    connection.spaceWaitCount += 1
    let token = connection.begin(.space, deadline: now + Pause.spaceMilliseconds)
    commitWriter.waitForSpace(since: count) { [mailbox] in mailbox.post(endOf: token) }
    return true
  }

  /// Pauses a connection until a large commit has ended, unless it is paused because its next request makes one.
  mutating func waitForCommit(in map: inout EntryMap, _ connection: inout Connection) {
    if connection.isPaused { return }
    let token = connection.begin(.commit)
    map.addCommitWaiter { [mailbox] in mailbox.post(endOf: token) }
  }

  /// Starts the large write for which a connection has paused. The store is locked, and unlocked afterward.
  /// - Returns: Whether the connection has paused.
  mutating func startWrite(_ connection: inout Connection) -> Bool {
    guard connection.isPaused else { return false }
    unlockStore()
    if let job = connection.pausedWrite { server.largeCommits.run(job) }
    return true
  }

  /// Pauses a connection until values have been read.
  func wait(for read: ValueRead, _ pause: Pause, _ connection: inout Connection) {
    let token = connection.begin(pause)
    read.store.diskReads.run { [mailbox] in
      read.run()
      mailbox.post(endOf: token)
    }
  }

  /// Changes the stores on a thread of its own, and pauses the connection until that is done.
  mutating func change(
    _ operation: StoreChange.Operation, _ header: FrameHeader, _ connection: inout Connection, store: String = ""
  ) -> RequestResult {
    let request = PendingRequest(
      operation: header.kind, byteCount: header.frameSize, store: store, startTime: monotonicNanoseconds())
    let change = StoreChange(operation, id: header.id, request)
    let token = connection.begin(.change(change))
    server.storeChanges.async { [mailbox, server] in
      change.run(server.stores)
      if change.isDrop { server.storeWasDropped() }
      mailbox.post(endOf: token)
    }
    return RequestResult(isPending: true)
  }

  /// Refuses a request, or pauses the connection until the message can name the client's user.
  /// - Parameter action: what the client asked for, as it reads after "may not".
  /// - Returns: nil if the request has to wait.
  mutating func refuse(
    _ action: String, _ id: UInt32, _ connection: inout Connection, into replies: inout ReplyBuffer
  ) -> RequestResult? {
    let token = connection.nextPauseToken
    let message = server.accessControl.refuse(action, to: connection) { [mailbox] in mailbox.post(endOf: token) }
    if let message { return replies.fail(.notPermitted, id, message) }
    _ = connection.begin(.userName, deadline: now + Pause.userNameMilliseconds)
    return nil
  }

  // MARK: The end

  /// Ends a pause: appends the reply that has waited, or lets the next request be executed again.
  /// - Parameter isOverdue: Whether the wait takes too long.
  mutating func endPause(of connection: inout Connection, isOverdue: Bool, into replies: inout ReplyBuffer) {
    switch connection.endPause(now: now) {
    case .space?:
      if isOverdue { connection.spaceWaitCount = Pause.maxSpaceWaits }
    case .userName?:
      if isOverdue { server.accessControl.giveUpOnName(of: connection) }
    case .frame(let read)?: finish(read, of: &connection, into: &replies)
    case .document(let read, let handle)?:
      guard let index = connection.streams.firstIndex(where: { $0.id == read.id }) else { return }
      if read.failure == nil {
        connection.streams[index].readDocument = (handle, read)
      } else {
        finish(read, of: &connection, into: &replies)
      }
    case .change(let change)?: finish(change, into: &replies)
    case .write(let job)?: connection.endedWrite = job
    case .commit?: break
    case nil: break
    }
  }

  /// Appends a frame whose values have been read, or an error in its place.
  private mutating func finish(
    _ read: ValueRead, of connection: inout Connection, into replies: inout ReplyBuffer
  ) {
    var outcome = Outcome.done
    if let failure = read.failure {
      outcome = replies.fail(.valueDamaged, read.id, failure).outcome
      connection.endStream(id: read.id)
    } else if !read.isFollowed || connection.streams.contains(where: { $0.id == read.id }) {
      // A stream that has ended meanwhile has had its last frame.
      replies.append(&read.bytes)
      if let commitWriter = read.store.commitWriter { replies.require(read.shownRevision, commitWriter) }
    }
    if let request = read.request { record(outcome, of: request) }
  }

  private mutating func finish(_ change: StoreChange, into replies: inout ReplyBuffer) {
    var outcome = Outcome.done
    switch change.result {
    case .success(.done): replies.bytes.endFrame(replies.bytes.beginReply(id: change.id))
    case .success(.ensured(let index)):
      let start = replies.bytes.beginReply(id: change.id)
      replies.bytes.append(index)
      replies.bytes.endFrame(start)
    case .failure(let error): outcome = replies.fail(error, change.id).outcome
    }
    record(outcome, of: change.request)
  }
}
