import Basics
import Platform
import Storage
import Wire

/// Serves one worker's connections, one at a time: reads them, passes their requests to their sessions, sends
/// the replies, and ends the connections.
///
/// In the common case, a connection takes one read and one write per wakeup. What does not fit is kept in the
/// `Connection`, and the poll interest says what to wait for. A handler changes only the connection that it is given;
/// taking closed connections off the table is the event loop's job.
///
/// Owned by one worker's `EventLoop`.
struct ConnectionHandler: ~Copyable {
  private let server: ServerState
  private let poll: Poll
  private let mailbox: Mailbox
  private var executor: Executor
  private var buffers: BufferAccounting
  private var watchers: WatcherTable
  private var sweepTimer = SweepTimer()
  /// The connections whose replies are held until commits are durable.
  private var awaitingDurability: [ConnectionToken] = []
  /// The connections that are served again without an event: their next request is deferred, or their channels hold
  /// input.
  private var deferred: [ConnectionToken] = []
  /// When this wakeup began, in nanoseconds.
  private var wakeupStart: UInt64 = 0
  /// The duration at which a wakeup is put into the slow log, in nanoseconds.
  private var slowThreshold: UInt64
  /// While the server stops: when open reply streams are ended, in milliseconds.
  private var drainDeadline: UInt64?
  /// Whether all workers have stopped executing requests, so that a watch that is at its end has reported everything.
  private var watchesMayEnd = false

  /// The number of connections that are served again without an event in one wakeup.
  private static let maxDeferredPerWakeup = 4
  /// How often watches are checked for their end while the server stops, in milliseconds.
  private static let drainSweepInterval: UInt64 = 5
  /// How many times a connection is read when the server stops. A client may send faster than it is read.
  private static let maxDrainReads = 256

  init(_ server: ServerState, _ metrics: WorkerMetrics, _ mailbox: Mailbox, _ poll: consuming Poll) {
    self.server = server
    self.mailbox = mailbox
    self.poll = poll
    executor = Executor(server: server, metrics: metrics, mailbox: mailbox)
    buffers = BufferAccounting(server.buffers)
    watchers = WatcherTable(mailbox)
    slowThreshold = server.limits.slowThreshold.wholeMilliseconds * 1_000_000
  }

  private var now: UInt64 { @inline(__always) get { executor.now } }

  // MARK: Wakeups

  /// How long to wait for an event after this wakeup, in milliseconds; −1 for no limit.
  @inline(__always)
  var waitMilliseconds: Int32 { deferred.isEmpty ? sweepTimer.timeout(now) : 0 }

  @inline(__always)
  mutating func beginWakeup() {
    wakeupStart = monotonicNanoseconds()
    executor.beginWakeup(now: wakeupStart / 1_000_000)
  }

  @inline(__always)
  mutating func endWakeup() { executor.endWakeup(start: wakeupStart, slowThreshold: slowThreshold) }

  // MARK: Beginning and end

  /// Begins to serve a client that has connected.
  /// - Returns: nil if the system has no memory to poll it. The client sees its connection end, and tries again later.
  mutating func open(
    _ channel: consuming ByteChannel, token: ConnectionToken, from listener: Int, _ session: any Session
  ) -> Connection? {
    do throws(SystemError) {
      try poll.add(channel.socket.number, Connection.initialInterest(of: channel), token: token.number)
    } catch {
      server.connectionCount.remove()
      return nil
    }
    let peer = Socket.peer(of: channel.socket)
    let figures = server.registry.add(peer, now: now)
    sweepTimer.schedule(noLaterThan: now + executor.limits.helloTimeout.wholeMilliseconds)
    let sharer = Sharer(peer, connection: figures.number)
    let memory = InputMemory(server.buffers, sharer) { [mailbox] in mailbox.postRevokedShare() }
    var connection = Connection(
      channel, token: token, session, listener: listener, figures, sharer, input: memory, now: now)
    if !session.hasGreeting { connection.admit(server.accessControl.grants(for: connection)) }
    return connection
  }

  /// Releases everything that a closed connection holds outside of itself.
  mutating func finish(_ connection: inout Connection) {
    connection.endAllStreams()
    connection.waits.pausedWrite?.cancel()
    connection.input.removeAll()
    if connection.hasWatched { watchers.remove(connection.token) }
    server.registry.remove(connection.figures)
    buffers.remove(connection)
    poll.remove(connection.channel.socket.number)
    server.connectionCount.remove()
  }

  /// Whether this worker's clients leave too much unread.
  var hasTooMuchOutput: Bool { @inline(__always) get { buffers.hasTooMuchOutput } }

  // MARK: Reading

  /// Handles an event. Input is read into the batch, and executed later with that of other connections.
  @inline(__always)
  mutating func handle(
    _ event: Poll.Event, _ connection: inout Connection, into batch: inout ReadBatch, spare: inout ReplyBuffer
  ) {
    if event.hasEndedSending { connection.inputWillEnd() }
    let ready = readiness(of: connection, event)
    if ready.sends { flushOutbox(&connection, &spare) }
    if ready.receives, connection.reads {
      if connection.readsIntoBatch {
        readIntoBatch(&connection, &batch, &spare)
      } else {
        read(&connection, &batch, &spare)
      }
    } else if connection.isChannelBusy {
      advanceChannel(of: &connection, hasHungUp: event.hasHungUp, &spare)
    } else if event.hasHungUp {
      // Nobody is left to send to, and all input has been handled or can't be answered.
      connection.phase = .closed
    }
  }

  /// What can be tried after an event.
  @inline(__always)
  private func readiness(
    of connection: borrowing Connection, _ event: Poll.Event
  ) -> (receives: Bool, sends: Bool) {
    if connection.channel.isPlain { return (event.readable, event.writable) }
    return connection.channelEvents.readiness(for: event)
  }

  /// Continues the handshake or the shutdown of a connection's channel.
  @inline(never)
  private mutating func advanceChannel(
    of connection: inout Connection, hasHungUp: Bool, _ spare: inout ReplyBuffer
  ) {
    if connection.phase == .handshaking {
      connection.continueHandshake(now: now)
    } else {
      connection.endOutput(now: now)
    }
    if hasHungUp, connection.isChannelBusy { connection.phase = .closed }
    scheduleLingerTimeout(of: connection)
    settle(&connection, &spare)
  }

  /// Schedules the end of a connection that has begun to end its output.
  private mutating func scheduleLingerTimeout(of connection: borrowing Connection) {
    guard connection.phase == .endingOutput || connection.phase == .lingering else { return }
    sweepTimer.schedule(noLaterThan: now + ConnectionTimeout.lingerMilliseconds)
  }

  /// - Returns: whether anything was read.
  @inline(__always) @discardableResult
  private mutating func readIntoBatch(
    _ connection: inout Connection, _ batch: inout ReadBatch, _ spare: inout ReplyBuffer
  ) -> Bool {
    let transfer = unsafe connection.receive(into: batch.room, now: now)
    guard case .moved(let count) = transfer, count > 0 else {
      endInput(of: &connection, transfer, &spare)
      return false
    }
    executor.countReceived(count)
    batch.add(connection.token, byteCount: count)
    return true
  }

  /// Reads a connection and executes its requests at once.
  /// - Precondition: the batch has no other connection, unless this one isn't read into it.
  /// - Returns: whether anything was read.
  @discardableResult
  private mutating func read(
    _ connection: inout Connection, _ batch: inout ReadBatch, _ spare: inout ReplyBuffer
  ) -> Bool {
    if connection.phase == .lingering { return unsafe connection.discardInput(using: batch.room) }
    guard connection.readsIntoBatch else { return readIntoInput(&connection, &spare) }
    guard readIntoBatch(&connection, &batch, &spare) else { return false }
    let index = batch.count - 1
    execute(index, of: &batch, &connection)
    executor.unlockStore()
    settle(&connection, &batch[index].replies)
    batch.removeLast()
    return true
  }

  /// Reads more of a frame whose beginning has arrived, or what is probably a large frame.
  private mutating func readIntoInput(_ connection: inout Connection, _ spare: inout ReplyBuffer) -> Bool {
    if connection.hasInput, server.memory.isExhausted {
      refuseMoreInput(of: &connection, "the server has reached its memory limit", &spare)
      return false
    }
    let transfer: ChannelTransfer
    do throws(InputShortage) {
      transfer = try connection.receiveIntoInput(now: now)
    } catch {
      refuseMoreInput(of: &connection, error.reason, &spare)
      return false
    }
    guard case .moved(let count) = transfer, count > 0 else {
      endInput(of: &connection, transfer, &spare)
      return false
    }
    executor.countReceived(count)
    connection.limitWaitingInput()
    if !connection.waits.mustWait { executeInput(of: &connection, &spare) }
    settle(&connection, &spare)
    return true
  }

  /// Stops reading, without memory for more, from a connection whose input waits for a stream; ends any other.
  private mutating func refuseMoreInput(
    of connection: inout Connection, _ reason: String, _ replies: inout ReplyBuffer
  ) {
    if connection.waits.isAwaitingStream {
      connection.limitWaitingInput(hasMemory: false)
      connection.updateInterest(in: poll)
    } else {
      refuseInput(of: &connection, reason, &replies)
      settle(&connection, &replies)
    }
  }

  /// Ends a connection for whose input there is no memory.
  private mutating func refuseInput(
    of connection: inout Connection, _ reason: String, _ replies: inout ReplyBuffer
  ) {
    end(&connection, .tooManyRequests, "\(reason); try again later", &replies)
    connection.input.removeAll()
    connection.inputWasLeft()
  }

  /// Handles a read that brought nothing.
  private mutating func endInput(
    of connection: inout Connection, _ transfer: ChannelTransfer, _ spare: inout ReplyBuffer
  ) {
    switch transfer {
    case .moved:
      connection.phase = .inputEnded
      // What waits for a stream is still executed.
      if !connection.waits.isAwaitingStream { connection.input.removeAll() }
      settle(&connection, &spare)
    case .wouldBlock:
      // It may wait for other events than before.
      if !connection.channel.isPlain { connection.updateInterest(in: poll) }
    case .failed(let error) where error.isOutOfMemory:
      refuseInput(of: &connection, InputShortage.system.reason, &spare)
      settle(&connection, &spare)
    case .failed: connection.phase = .closed
    }
  }

  // MARK: Executing

  /// Prefetches the index for a connection's requests.
  @inline(__always)
  mutating func prefetch(_ index: Int, of batch: inout ReadBatch, _ connection: inout Connection) {
    let bytes = unsafe RawSpan(_unsafeBytes: batch.bytes(index))
    batch[index].prefetchEnd = connection.session.prefetch(bytes, of: &connection, on: &executor)
  }

  /// Whether no more requests can be looked at before `prefetchRecords`.
  @inline(__always)
  var hasPrefetchedEnough: Bool { executor.hasPrefetchedEnough }

  @inline(__always)
  mutating func prefetchRecords() { executor.prefetchRecords() }

  /// Executes what a connection sent. Its replies wait in the batch, and a store may stay locked.
  @inline(__always)
  mutating func execute(_ index: Int, of batch: inout ReadBatch, _ connection: inout Connection) {
    let bytes = unsafe RawSpan(_unsafeBytes: batch.bytes(index))
    let prefetchEnd = batch[index].prefetchEnd
    let consumed = connection.session.process(
      bytes, of: &connection, prefetchEnd: prefetchEnd, on: &executor, into: &batch[index].replies)
    if consumed < bytes.byteCount {
      keep(bytes.extracting(consumed..<bytes.byteCount), for: &connection, &batch[index].replies)
    }
  }

  @inline(__always)
  mutating func unlockStore() { executor.unlockStore() }

  /// Wakes the commit threads that have something to write.
  @inline(__always)
  mutating func wakeCommitWriters() { executor.wakeCommitWriters() }

  /// Notes that time has passed since the wakeup began.
  @inline(__always)
  mutating func timeHasPassed() { executor.timeHasPassed() }

  /// Keeps input that was not consumed.
  private mutating func keep(_ rest: RawSpan, for connection: inout Connection, _ replies: inout ReplyBuffer) {
    do throws(InputShortage) {
      try connection.input.append(rest, maxFrameSize: maxLargeFrameSize(of: connection))
    } catch { return refuseInput(of: &connection, error.reason, &replies) }
    connection.frameDidBegin(now: now)
    scheduleFrameTimeout()
  }

  /// Before the hello, no frame is large. Behind a change, frames are kept together, because some need not wait.
  private func maxLargeFrameSize(of connection: borrowing Connection) -> Int {
    connection.phase == .open && !connection.waits.isAwaitingStream
      ? connection.session.maxRequestSize(executor.limits, isGreeting: false) : 0
  }

  private mutating func scheduleFrameTimeout() {
    let limit = min(executor.limits.frameTimeout, executor.limits.frameTime)
    sweepTimer.schedule(noLaterThan: now + limit.wholeMilliseconds)
  }

  /// Executes the input that the connection keeps.
  private mutating func executeInput(of connection: inout Connection, _ replies: inout ReplyBuffer) {
    connection.resumeReading(now: now)
    // Executing requests doesn't change the input, and keeps its memory if a store shares it.
    let bytes = unsafe RawSpan(_unsafeBytes: connection.input.bytes)
    let consumed = connection.session.process(
      bytes, of: &connection, prefetchEnd: 0, on: &executor, into: &replies)
    executor.unlockStore()
    switch connection.input.remove(consumed, maxFrameSize: maxLargeFrameSize(of: connection)) {
    case .nothing: break
    case .sameFrame: scheduleFrameTimeout()
    case .newFrame:
      connection.frameDidBegin(now: now)
      scheduleFrameTimeout()
    case .refusedFrame(let shortage): refuseInput(of: &connection, shortage.reason, &replies)
    }
    connection.limitWaitingInput()
    if connection.phase == .inputEnded,
      connection.input.isIncomplete(
        maxFrameSize: connection.session.maxRequestSize(executor.limits, isGreeting: false))
    {
      // The rest of the frame never comes.
      connection.input.removeAll()
    }
  }

  // MARK: Sending

  /// Sends what can be sent, continues open streams and requests that had to wait for that, ends the connection if it
  /// has nothing left to do, and updates its poll interest. The replies are empty afterward.
  mutating func settle(_ connection: inout Connection, _ replies: inout ReplyBuffer) {
    while true {
      continueStreams(of: &connection, &replies)
      send(&replies, to: &connection)
      // If the output was full and has drained, the input may have whole frames.
      guard connection.outbox.isEmpty, connection.executes, !connection.waits.mustWait, connection.hasInput else {
        break
      }
      executeInput(of: &connection, &replies)
      // What follows in the input may cancel the stream that it waits for.
      if replies.isEmpty, !connection.waits.isAwaitingStream { break }
    }
    if connection.isQuiet, drainDeadline == nil { return }
    // If replies are in the way, sending them continues the requests.
    if connection.mustRetry || connection.holdsUnreadInput, !deferred.contains(connection.token) {
      deferred.append(connection.token)
    }
    if let deadline = connection.waits.pauseDeadline { sweepTimer.schedule(noLaterThan: deadline) }
    if let deadline = connection.uploads.deadline(executor.limits) { sweepTimer.schedule(noLaterThan: deadline) }
    connection.startJobs(on: server.jobs)
    endIfDone(&connection, &replies)
    connection.updateInterest(in: poll)
  }

  /// Appends the frames of open streams that can be sent.
  private mutating func continueStreams(of connection: inout Connection, _ replies: inout ReplyBuffer) {
    // Nothing may follow a notice.
    if !connection.executes { connection.endAllStreams() }
    guard !connection.streams.isEmpty, !connection.waits.isPaused else { return }
    let session = connection.session
    if connection.waits.isAwaitingStream { session.executeAhead(of: &connection, on: &executor, into: &replies) }
    session.continueStreams(of: &connection, notifying: &watchers, on: &executor, into: &replies)
    if connection.phase == .inputEnded { _ = endStreams(of: &connection, .lackOfCredit, &replies) }
    if let deadline = connection.creditDeadline(executor.limits) { sweepTimer.schedule(noLaterThan: deadline) }
  }

  private mutating func send(_ replies: inout ReplyBuffer, to connection: inout Connection) {
    if !connection.mustHold(replies) {
      replies.removeGates()
    } else if connection.holdUntilDurable(
      &replies, maxHeldBytes: executor.limits.maxOutputBytes, notifying: mailbox)
    {
      awaitingDurability.append(connection.token)
    }
    guard !replies.isEmpty else { return }
    let (sent, queued) = connection.send(&replies, now: now)
    executor.countSent(sent)
    guard queued > 0 else { return }
    buffers.outboxDidChange(&connection, by: queued)
    sweepTimer.schedule(noLaterThan: now + executor.limits.writeTimeout.wholeMilliseconds)
  }

  /// Sends the outbox, now that the socket accepts more, and then continues what had to wait for that.
  private mutating func flushOutbox(_ connection: inout Connection, _ spare: inout ReplyBuffer) {
    if !connection.outbox.isEmpty {
      let sent = connection.flushOutbox(now: now)
      executor.countSent(sent)
      buffers.outboxDidChange(&connection, by: -sent)
      guard connection.outbox.isEmpty else { return connection.updateInterest(in: poll) }
    }
    settle(&connection, &spare)
  }

  /// Closes a connection that has nothing left to do, or takes it a step closer to that.
  private mutating func endIfDone(_ connection: inout Connection, _ replies: inout ReplyBuffer) {
    guard !connection.hasWaitingReplies, !connection.mustRetry, !connection.waits.isPaused else { return }
    if drainDeadline != nil, connection.executes, hasNothingToReport(connection) {
      end(&connection, .shuttingDown, "the server is shutting down", &replies)
      send(&replies, to: &connection)
      guard !connection.hasWaitingReplies else { return }
    }
    switch connection.phase {
    case .handshaking where drainDeadline != nil: connection.phase = .closed
    case .inputEnded where connection.streams.isEmpty && connection.channel.isPlain: connection.phase = .closed
    case .inputEnded where connection.streams.isEmpty, .closing:
      connection.endOutput(now: now)
      scheduleLingerTimeout(of: connection)
    default: break
    }
  }

  /// Ends a connection with a notice.
  private mutating func end(
    _ connection: inout Connection, _ code: ErrorCode, _ message: String, _ replies: inout ReplyBuffer
  ) {
    connection.session.end(&connection, code, message, on: &executor, into: &replies)
  }

  /// Ends the streams of a connection to which a cause applies.
  /// - Returns: whether there were any.
  private mutating func endStreams(
    of connection: inout Connection, _ cause: StreamEndCause, _ replies: inout ReplyBuffer
  ) -> Bool {
    connection.session.endStreams(of: &connection, cause, on: &executor, into: &replies)
  }

  // MARK: Deferred requests and held input

  /// Whether connections are to be served again without an event.
  @inline(__always)
  var hasDeferred: Bool { !deferred.isEmpty }

  /// Removes and returns some of the connections to serve again without an event.
  mutating func takeDeferred() -> [ConnectionToken] {
    defer { deferred.removeFirst(min(deferred.count, Self.maxDeferredPerWakeup)) }
    return Array(deferred.prefix(Self.maxDeferredPerWakeup))
  }

  /// Executes the deferred request of a connection, and those after it, unless it must wait longer; or reads what its
  /// channel holds. The batch must be empty.
  mutating func executeDeferred(
    of connection: inout Connection, _ batch: inout ReadBatch, _ spare: inout ReplyBuffer
  ) {
    if connection.holdsUnreadInput {
      read(&connection, &batch, &spare)
    } else {
      settle(&connection, &spare)
    }
  }

  // MARK: Durability

  var awaitingDurabilityCount: Int { awaitingDurability.count }

  /// Removes and returns the connections whose replies are held, because commits have become durable.
  mutating func takeAwaitingDurability() -> [ConnectionToken] {
    var tokens: [ConnectionToken] = []
    swap(&tokens, &awaitingDurability)
    return tokens
  }

  /// Sends the held replies of a connection as far as their commits are durable.
  mutating func releaseHeldReplies(of connection: inout Connection, _ spare: inout ReplyBuffer) {
    connection.endWaitForDurability(now: now)
    settle(&connection, &spare)
  }

  // MARK: Pauses

  /// Ends a pause of a connection, unless it has ended already, and executes the requests that have waited.
  mutating func endPause(_ token: PauseToken, of connection: inout Connection, _ spare: inout ReplyBuffer) {
    if connection.waits.isPaused(as: token) { endPause(of: &connection, isOverdue: false, &spare) }
  }

  private mutating func endPause(of connection: inout Connection, isOverdue: Bool, _ spare: inout ReplyBuffer) {
    connection.session.endPause(of: &connection, isOverdue: isOverdue, on: &executor, into: &spare)
    settle(&connection, &spare)
    if !connection.waits.isPaused { connection.waits.spaceWasFound() }
  }

  // MARK: Jobs

  /// Begins the reply to a job that has ended, unless the client has canceled it.
  mutating func beginReply(to job: DocumentJob, _ connection: inout Connection, _ spare: inout ReplyBuffer) {
    connection.session.beginReply(to: job, of: &connection, on: &executor, into: &spare)
    settle(&connection, &spare)
  }

  // MARK: Watches

  /// Removes and returns the connections that wait for changes of a store, because there are some.
  mutating func takeWatchers(of store: ObjectIdentifier) -> [ConnectionToken] { watchers.removeWatchers(of: store) }

  /// Continues the watches of a connection.
  /// - Parameter store: the store that has changed; nil for all.
  mutating func resumeWatches(
    of store: ObjectIdentifier?, _ connection: inout Connection, _ spare: inout ReplyBuffer
  ) {
    connection.resumeWatches(of: store)
    settle(&connection, &spare)
  }

  /// Whether the server can stop without waiting for a connection's streams: there are none, or they are watches that
  /// have reported every change there will be.
  private func hasNothingToReport(_ connection: borrowing Connection) -> Bool {
    watchesMayEnd ? connection.streams.allSatisfy { $0.isAtEnd } : connection.streams.isEmpty
  }

  // MARK: Dropped stores

  /// Ends the streams of a connection whose stores were dropped.
  mutating func endStreamsOfDroppedStores(of connection: inout Connection, _ spare: inout ReplyBuffer) {
    if endStreams(of: &connection, .droppedStore, &spare) { settle(&connection, &spare) }
  }

  // MARK: Revoked shares

  /// Ends what a connection has to give up to other clients.
  mutating func endRevokedShares(of connection: inout Connection, _ spare: inout ReplyBuffer) {
    connection.uploads.discardRevoked()
    if connection.input.isRevoked, connection.executes {
      refuseInput(of: &connection, "other clients need the memory of this client's incomplete request", &spare)
      return settle(&connection, &spare)
    }
    if endStreams(of: &connection, .lostMemory, &spare) { settle(&connection, &spare) }
  }

  // MARK: Timeouts

  @inline(__always)
  var isSweepDue: Bool { sweepTimer.isDue(now) }

  /// When the next sweep is due, in milliseconds.
  var sweepDeadline: UInt64 { sweepTimer.deadline }

  /// Begins a sweep. It schedules the next one as it goes.
  mutating func beginSweep() {
    sweepTimer.reset()
    watchesMayEnd = server.areAllWorkersDraining
    if let drainDeadline, now < drainDeadline { sweepTimer.schedule(noLaterThan: drainDeadline) }
  }

  /// Ends whatever has timed out at a connection, and schedules the next sweep for what has not.
  mutating func sweep(_ connection: inout Connection, _ spare: inout ReplyBuffer) {
    if let drainDeadline, now >= drainDeadline {
      if connection.executes {
        end(&connection, .shuttingDown, "the server is shutting down", &spare)
        settle(&connection, &spare)
      }
      connection.phase = .closed
      return
    }
    if drainDeadline != nil, connection.hasWatched {
      resumeWatches(of: nil, &connection, &spare)
      sweepTimer.schedule(noLaterThan: now + Self.drainSweepInterval)
    }
    if let deadline = connection.waits.pauseDeadline {
      if deadline <= now {
        endPause(of: &connection, isOverdue: true, &spare)
      } else {
        sweepTimer.schedule(noLaterThan: deadline)
      }
    }
    connection.uploads.discardOverdue(executor.limits, now: now)
    if let deadline = connection.uploads.deadline(executor.limits) { sweepTimer.schedule(noLaterThan: deadline) }
    if connection.acceptsCredit {
      if endStreams(of: &connection, .lackOfCredit, &spare) { settle(&connection, &spare) }
      if let deadline = connection.creditDeadline(executor.limits) { sweepTimer.schedule(noLaterThan: deadline) }
    }
    guard let timeout = connection.timeout(executor.limits) else { return }
    guard timeout.deadline <= now else { return sweepTimer.schedule(noLaterThan: timeout.deadline) }
    guard let message = timeout.message(executor.limits) else {
      connection.phase = .closed
      return
    }
    end(&connection, .timedOut, message, &spare)
    settle(&connection, &spare)
  }

  // MARK: Changes of the server

  /// Adopts the server's current limits, and checks all timeouts against them.
  mutating func updateLimits() {
    executor.updateLimits()
    slowThreshold = executor.limits.slowThreshold.wholeMilliseconds * 1_000_000
    sweepTimer.schedule(noLaterThan: now)
  }

  /// Applies the current access rules, also to what a connection has open.
  mutating func updateAccess(of connection: inout Connection, _ spare: inout ReplyBuffer) {
    guard connection.phase == .open || connection.phase == .inputEnded else { return }
    connection.grants = server.accessControl.grants(for: connection)
    connection.stores.permit(connection.grants)
    if connection.grants.isNothing {
      let message = server.accessControl.refuse(AccessControl.useServer, to: connection)
      end(&connection, .notPermitted, message, &spare)
      return settle(&connection, &spare)
    }
    if endStreams(of: &connection, .lostRight, &spare) { settle(&connection, &spare) }
  }

  /// Reads and executes what has arrived at a connection, before the server stops.
  mutating func readRemainingInput(
    of connection: inout Connection, _ batch: inout ReadBatch, _ spare: inout ReplyBuffer
  ) {
    for _ in 0..<Self.maxDrainReads where connection.executes && connection.reads {
      guard read(&connection, &batch, &spare) else { return }
    }
  }

  /// Begins to end connections as soon as they have nothing left to send. The input of all of them must have been read.
  mutating func beginDrain() {
    drainDeadline = now + executor.limits.shutdownTimeout.wholeMilliseconds
    server.workerBeganDraining()
    // Watches must learn that all workers have come this far.
    sweepTimer.schedule(noLaterThan: now)
  }
}

extension InputShortage {
  /// What the client is told.
  fileprivate var reason: String {
    switch self {
    case .limit: "the server has too many incomplete requests, and this client has the most"
    case .system: "the server can't allocate more memory"
    }
  }
}
