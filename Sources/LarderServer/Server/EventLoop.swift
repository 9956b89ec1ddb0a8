import Basics
import Platform
import Storage
import Wire

/// A worker's event loop: reads its connections, passes their requests to their sessions, sends the replies, and ends the
/// connections.
///
/// A wakeup is a batch. Input of up to `ReadBatch.capacity` connections is read first, then executed with each store
/// locked once, and then the replies are sent with one write per connection. In the common case, a connection takes one
/// read and one write per wakeup. What does not fit is kept in the `Connection`, and the poll interest says what to wait
/// for.
///
/// Owned by a `Worker`, and used by one thread at a time: the one that has locked it. The connections are a value apart
/// from it, so that one is changed in place while the loop serves it.
struct EventLoop: ~Copyable {
  private let server: ServerState
  private let poll: Poll
  private let mailbox: Mailbox
  private var executor: Executor
  private var buffers: BufferAccounting
  private var watchers: WatcherTable
  private var sweepTimer = SweepTimer()
  private var drain = Drain()
  /// The connections whose replies are held until commits are durable.
  private var awaitingDurability: [ConnectionToken] = []
  /// The connections that are served again without an event: their next request is deferred, or their channels hold
  /// input.
  private var deferred: [ConnectionToken] = []
  /// When this wakeup began, in nanoseconds.
  private var wakeupStart: UInt64 = 0
  /// The duration at which a wakeup is put into the slow log, in nanoseconds.
  private var slowThreshold: UInt64

  /// The number of connections that are served again without an event in one wakeup.
  private static let maxDeferredPerWakeup = 4
  /// How many times a connection is read when the server stops. A client may send faster than it is read.
  private static let maxDrainReads = 256
  /// The number of connections with held replies up to which a commit thread sends these itself. It saves the worker a
  /// wakeup, which is most of what a single client waits for besides the disk; the replies of many clients would delay
  /// the next commit.
  private static let maxDirectReleases = 8

  /// - Parameter poll: polls the mailbox already.
  init(server: ServerState, metrics: WorkerMetrics, mailbox: Mailbox, poll: consuming Poll) {
    self.server = server
    self.mailbox = mailbox
    self.poll = poll
    executor = Executor(server: server, metrics: metrics, mailbox: mailbox)
    buffers = BufferAccounting(server.buffers)
    watchers = WatcherTable(mailbox)
    slowThreshold = server.limits.slowThreshold.wholeMilliseconds * 1_000_000
  }

  var now: UInt64 { @inline(__always) get { executor.now } }

  // MARK: Wakeups

  /// Serves everything that a wakeup has brought.
  /// - Returns: how long the worker may wait for more, in milliseconds, or −1 for no limit; nil if no connection is left.
  mutating func serve(
    _ events: borrowing Poll.Events, count: Int, _ connections: inout WorkerConnections
  ) -> Int32? {
    beginWakeup()
    var (index, hasMail) = (0, false)
    while index < count {
      let end = min(count, index + ReadBatch.capacity)
      while index < end {
        let event = events[index]
        if event.token == Mailbox.token { hasMail = true } else { handle(event, &connections) }
        index += 1
      }
      processBatch(of: &connections, isLast: index == count)
    }
    if hasMail { readMailbox(&connections) }
    if !deferred.isEmpty { serveDeferred(&connections) }
    executor.endWakeup(start: wakeupStart, slowThreshold: slowThreshold)
    if sweepTimer.isDue(now) { sweep(&connections) }
    connections.releaseLargeBuffer()
    guard !connections.isEmpty else { return nil }
    return deferred.isEmpty ? sweepTimer.timeout(now) : 0
  }

  @inline(__always)
  private mutating func beginWakeup() {
    wakeupStart = monotonicNanoseconds()
    executor.beginWakeup(now: wakeupStart / 1_000_000)
  }

  @inline(__always)
  private mutating func handle(_ event: Poll.Event, _ connections: inout WorkerConnections) {
    let token = ConnectionToken(event.token)
    // The connection may have been closed in this wakeup, and its slot may be taken by another one.
    guard connections.table.contains(token) else { return }
    let previousCount = connections.batch.count
    handle(event, &connections.table[token.slot], into: &connections.batch, spare: &connections.spareReplies)
    // A connection in the batch is not done yet.
    if connections.batch.count == previousCount { didServe(token.slot, of: &connections) }
  }

  /// Executes the requests in the batch, then sends the replies.
  /// - Parameter isLast: whether no other batch of the wakeup follows, so that all of its commits can be written at once.
  @inline(__always)
  private mutating func processBatch(of connections: inout WorkerConnections, isLast: Bool) {
    let count = connections.batch.count
    var index = 0
    while index < count {
      let end = prefetch(from: index, &connections)
      while index < end {
        let token = connections.batch[index].token
        if connections.table.contains(token) {
          execute(index, of: &connections.batch, &connections.table[token.slot])
        }
        index += 1
      }
    }
    executor.unlockStore()
    if isLast { executor.wakeCommitWriters() }
    var executionEnd: UInt64 = 0
    for index in 0..<count {
      let token = connections.batch[index].token
      guard connections.table.contains(token) else { continue }
      if executionEnd == 0, connections.batch[index].replies.requiresLease { executionEnd = monotonicMilliseconds() }
      settle(&connections.table[token.slot], &connections.batch[index].replies, executedBefore: executionEnd)
      didServe(token.slot, of: &connections)
    }
    connections.batch.removeAll()
    executor.timeHasPassed()
  }

  /// Prefetches the memory for the next connections in the batch.
  /// - Returns: the end of the connections that can be executed now.
  @inline(__always)
  private mutating func prefetch(from first: Int, _ connections: inout WorkerConnections) -> Int {
    var index = first
    // A single connection prefetches as its requests are executed.
    guard connections.batch.count - first > 1 else { return first + 1 }
    repeat {
      let token = connections.batch[index].token
      if connections.table.contains(token) {
        prefetch(index, of: &connections.batch, &connections.table[token.slot])
      }
      index += 1
    } while index < connections.batch.count && !executor.hasPrefetchedEnough
    executor.prefetchRecords()
    return index
  }

  /// Serves some of the connections whose next request is deferred, or whose channels hold input.
  private mutating func serveDeferred(_ connections: inout WorkerConnections) {
    let tokens = Array(deferred.prefix(Self.maxDeferredPerWakeup))
    deferred.removeFirst(tokens.count)
    for token in tokens where connections.table.contains(token) {
      if connections.table[token.slot].holdsUnreadInput {
        read(&connections.table[token.slot], &connections.batch, &connections.spareReplies)
      } else {
        settle(&connections.table[token.slot], &connections.spareReplies)
      }
      didServe(token.slot, of: &connections)
    }
  }

  // MARK: Held replies

  /// Sends held replies whose commits are durable, on the thread that has made them so, while the worker waits.
  /// - Returns: whether the worker need not wake up: nothing is left for it to do before it would anyway.
  mutating func sendFewHeldReplies(_ connections: inout WorkerConnections) -> Bool {
    guard awaitingDurability.count <= Self.maxDirectReleases else { return false }
    let deadline = sweepTimer.deadline
    beginWakeup()
    releaseHeldReplies(&connections)
    executor.endWakeup(start: wakeupStart, slowThreshold: slowThreshold)
    return !connections.isEmpty && deferred.isEmpty && sweepTimer.deadline >= deadline
  }

  /// Sends held replies as far as their commits are durable.
  mutating func releaseHeldReplies(_ connections: inout WorkerConnections) {
    var tokens: [ConnectionToken] = []
    swap(&tokens, &awaitingDurability)
    for token in tokens {
      serve(token, of: &connections) { loop, connection, spare in
        connection.endWaitForDurability(now: loop.now)
        loop.settle(&connection, &spare)
      }
    }
  }

  // MARK: Connections

  /// Begins to serve a client that has connected, unless the system has no memory to poll it. The client then sees its
  /// connection end, and tries again later.
  mutating func open(_ arrival: Mailbox.Arrival, _ connections: inout WorkerConnections) {
    let token = connections.table.makeToken()
    guard
      let connection = open(arrival.takeChannel(), token: token, from: arrival.listener, arrival.session)
    else { return }
    // Requests may have arrived with the end of the handshake.
    if connection.holdsUnreadInput { deferred.append(token) }
    connections.table.add(connection)
    guard !arrival.session.hasGreeting else { return }
    serve(token, of: &connections) { loop, connection, spare in loop.admit(&connection, &spare) }
  }

  /// Begins to serve a client that need not introduce itself.
  private mutating func admit(_ connection: inout Connection, _ spare: inout ReplyBuffer) {
    connection.admit(server.accessControl.grants(for: connection))
    guard connection.countPrincipal(on: server, executor.limits) else {
      // Clients expect it before they have sent anything.
      connection.session.end(
        &connection, .tooManyConnections, "max number of clients reached", on: &executor, into: &spare)
      return settle(&connection, &spare)
    }
    if !connection.grants.isNothing { server.accessControl.didAdmit(connection) }
  }

  /// - Returns: nil if the system has no memory to poll it.
  private mutating func open(
    _ channel: consuming ByteChannel, token: ConnectionToken, from listener: Int, _ session: any Session
  ) -> Connection? {
    do throws(SystemError) {
      try poll.add(channel.socket.number, Connection.initialInterest(of: channel), token: token.number)
    } catch {
      server.connectionCount.remove(from: Socket.peer(of: channel.socket).origin)
      return nil
    }
    let peer = Socket.peer(of: channel.socket)
    let figures = server.registry.add(peer, now: now)
    sweepTimer.schedule(noLaterThan: now + executor.limits.helloTimeout.wholeMilliseconds)
    let sharer = ConnectionSharer(Sharer(strangerAt: peer, connection: figures.number))
    let memory = InputMemory(server.buffers, sharer) { [mailbox] in mailbox.postRevokedShare() }
    return Connection(
      channel, token: token, session, listener: listener, figures, sharer, input: memory,
      clientState: session.makeClientState(server, mailbox, sharer), now: now)
  }

  /// Releases everything that a closed connection holds outside of itself.
  private mutating func finish(_ connection: inout Connection) {
    connection.endAllStreams()
    connection.waits.pausedWrite?.cancel()
    connection.input.removeAll()
    if connection.hasWatched { watchers.remove(connection.token) }
    server.registry.remove(connection.figures)
    buffers.remove(connection)
    poll.remove(connection.channel.socket.number)
    server.connectionCount.remove(from: connection.figures.peer.origin)
  }

  /// Calls `body` with every connection, which may end it.
  mutating func forEach(
    of connections: inout WorkerConnections,
    _ body: (inout EventLoop, inout Connection, inout ReadBatch, inout ReplyBuffer) -> Void
  ) {
    for slot in 0..<connections.table.capacity where connections.table.isOccupied(slot) {
      body(&self, &connections.table[slot], &connections.batch, &connections.spareReplies)
      didServe(slot, of: &connections)
    }
  }

  /// Calls `body` with the connection that a token names, which may end it, unless it has ended.
  mutating func serve(
    _ token: ConnectionToken, of connections: inout WorkerConnections,
    _ body: (inout EventLoop, inout Connection, inout ReplyBuffer) -> Void
  ) {
    guard connections.table.contains(token) else { return }
    body(&self, &connections.table[token.slot], &connections.spareReplies)
    didServe(token.slot, of: &connections)
  }

  /// Removes a connection if it is closed, and others if clients leave too much unread.
  @inline(__always)
  mutating func didServe(_ slot: Int, of connections: inout WorkerConnections) {
    if connections.table[slot].phase == .closed { remove(slot, of: &connections) }
    while buffers.hasTooMuchOutput, let stalled = connections.longestStalled { remove(stalled, of: &connections) }
  }

  private mutating func remove(_ slot: Int, of connections: inout WorkerConnections) {
    finish(&connections.table[slot])
    connections.table.remove(slot)
  }

  // MARK: Reading

  /// Handles an event. Input is read into the batch, and executed later with that of other connections.
  @inline(__always)
  private mutating func handle(
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
    } else if connection.phase == .endingOutput {
      continueShutdown(of: &connection, hasHungUp: event.hasHungUp, &spare)
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

  /// Continues the shutdown of a connection's channel.
  @inline(never)
  private mutating func continueShutdown(
    of connection: inout Connection, hasHungUp: Bool, _ spare: inout ReplyBuffer
  ) {
    connection.endOutput(now: now)
    if hasHungUp, connection.phase == .endingOutput { connection.phase = .closed }
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
    if connection.phase == .lingering {
      let hasRead = unsafe connection.discardInput(using: batch.room, now: now)
      connection.updateInterest(in: poll)
      return hasRead
    }
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
    if !connection.waits.mustWait {
      if connection.input.mayBeComplete {
        executeInput(of: &connection, &spare)
      } else {
        scheduleFrameTimeout()
      }
    }
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
      // What waits for a stream is still executed.
      if !connection.waits.isAwaitingStream || !connection.executes { connection.input.removeAll() }
      connection.phase = .inputEnded
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
  private mutating func prefetch(_ index: Int, of batch: inout ReadBatch, _ connection: inout Connection) {
    let bytes = unsafe RawSpan(_unsafeBytes: batch.bytes(index))
    batch[index].prefetchEnd = connection.session.prefetch(bytes, of: &connection, on: &executor)
  }

  /// Executes what a connection sent. Its replies wait in the batch, and a store may stay locked.
  @inline(__always)
  private mutating func execute(_ index: Int, of batch: inout ReadBatch, _ connection: inout Connection) {
    let bytes = unsafe RawSpan(_unsafeBytes: batch.bytes(index))
    let prefetchEnd = batch[index].prefetchEnd
    let consumed = connection.session.process(
      bytes, of: &connection, prefetchEnd: prefetchEnd, on: &executor, into: &batch[index].replies)
    if consumed < bytes.byteCount {
      keep(bytes.extracting(consumed..<bytes.byteCount), for: &connection, &batch[index].replies)
    }
  }

  /// Keeps input that was not consumed.
  private mutating func keep(_ rest: RawSpan, for connection: inout Connection, _ replies: inout ReplyBuffer) {
    do throws(InputShortage) {
      try connection.input.append(rest, maxFrameSize: maxLargeFrameSize(of: connection))
    } catch { return refuseInput(of: &connection, error.reason, &replies) }
    connection.frameDidBegin(now: now)
    scheduleFrameTimeout()
  }

  /// Before a client has proved who it is, no frame is large. Behind a change, frames are kept together, because some need not wait.
  private func maxLargeFrameSize(of connection: borrowing Connection) -> Int {
    connection.phase == .open && !connection.waits.isAwaitingStream
      ? connection.session.maxRequestSize(executor.limits, isStranger: connection.isStranger) : 0
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
        maxFrameSize: connection.session.maxRequestSize(executor.limits, isStranger: connection.isStranger))
    {
      // The rest of the frame never comes.
      connection.input.removeAll()
    }
  }

  // MARK: Sending

  /// Sends what can be sent, continues open streams and requests that had to wait for that, ends the connection if it
  /// has nothing left to do, and updates its poll interest. The replies are empty afterward.
  /// - Parameter executionEnd: A time after the requests of the replies were executed, in milliseconds; 0 for now.
  mutating func settle(
    _ connection: inout Connection, _ replies: inout ReplyBuffer, executedBefore executionEnd: UInt64 = 0
  ) {
    var executionEnd = connection.streams.isEmpty ? executionEnd : 0
    var hasExecuted = false
    while true {
      continueStreams(of: &connection, &replies)
      send(&replies, to: &connection, executedBefore: executionEnd)
      executionEnd = 0
      // If the output was full and has drained, the input may have whole frames.
      guard connection.acceptsReplies, connection.executes, !connection.waits.mustWait, connection.hasInput else {
        break
      }
      // Others get their turn before more replies are made that the client doesn't read.
      if hasExecuted, connection.waits.isDeferred, !connection.outbox.isEmpty { break }
      executeInput(of: &connection, &replies)
      hasExecuted = true
      // What follows in the input may cancel the stream that it waits for.
      if replies.isEmpty, !connection.waits.isAwaitingStream { break }
    }
    if connection.isQuiet, !drain.isRunning { return }
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

  /// Appends the pushes and the frames of open streams that can be sent.
  private mutating func continueStreams(of connection: inout Connection, _ replies: inout ReplyBuffer) {
    // Nothing may follow a notice.
    if !connection.isServed { connection.endAllStreams() }
    if connection.hasPushes, connection.executes { connection.session.appendPushes(of: &connection, into: &replies) }
    guard !connection.streams.isEmpty, !connection.waits.isPaused else { return }
    let session = connection.session
    if connection.waits.isAwaitingStream { session.executeAhead(of: &connection, on: &executor, into: &replies) }
    for stream in connection.streams { if let lease = stream.store.lease { replies.require(lease) } }
    session.continueStreams(of: &connection, notifying: &watchers, on: &executor, into: &replies)
    if connection.phase == .inputEnded { _ = endStreams(of: &connection, .lackOfCredit, &replies) }
    if let deadline = connection.creditDeadline(executor.limits) { sweepTimer.schedule(noLaterThan: deadline) }
  }

  private mutating func send(
    _ replies: inout ReplyBuffer, to connection: inout Connection, executedBefore executionEnd: UInt64 = 0
  ) {
    let areHeld = replies.checkLeases(at: executionEnd == 0 ? monotonicMilliseconds() : executionEnd)
    guard areHeld || replies.isEmpty else { return abandon(&replies, to: &connection) }
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
    connection.limitKeptReplies(areMany: buffers.hasMuchOutput)
    sweepTimer.schedule(noLaterThan: now + executor.limits.writeTimeout.wholeMilliseconds)
  }

  /// Ends a connection without its replies, because another server may have changed since what they show.
  private mutating func abandon(_ replies: inout ReplyBuffer, to connection: inout Connection) {
    replies.reset(maxKeptBytes: .max)
    connection.phase = .closed
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
    if drain.isRunning, connection.isServed, drain.permitsEnd(of: connection) {
      end(&connection, .shuttingDown, "the server is shutting down", &replies)
      send(&replies, to: &connection)
      guard !connection.hasWaitingReplies else { return }
    }
    switch connection.phase {
    case .inputEnded where connection.streams.isEmpty && connection.channel.isPlain: connection.phase = .closed
    case .inputEnded where connection.streams.isEmpty, .lastRequest where connection.streams.isEmpty, .closing:
      connection.endOutput(now: now)
      scheduleLingerTimeout(of: connection)
    default: break
    }
  }

  /// Ends a connection with a notice; in silence if its client would take that for the reply to its next request.
  mutating func end(
    _ connection: inout Connection, _ code: ErrorCode, _ message: String, _ replies: inout ReplyBuffer
  ) {
    if connection.session.isOrdered, !connection.awaitsReply { return connection.endInSilence() }
    connection.session.end(&connection, code, message, on: &executor, into: &replies)
  }

  /// Ends the streams of a connection to which a cause applies.
  /// - Returns: whether there were any.
  mutating func endStreams(
    of connection: inout Connection, _ cause: StreamEndCause, _ replies: inout ReplyBuffer
  ) -> Bool {
    connection.session.endStreams(of: &connection, cause, on: &executor, into: &replies)
  }

  // MARK: What the mailbox and the sweep bring about

  /// Removes and returns what other threads have posted.
  func mailboxContents() -> Mailbox.Contents { mailbox.read() }

  /// The limits in force.
  var limits: ServerLimits { executor.limits }

  /// Schedules a sweep, unless an earlier one is scheduled.
  mutating func scheduleSweep(noLaterThan time: UInt64) { sweepTimer.schedule(noLaterThan: time) }

  /// Begins a sweep, during which the next one is scheduled.
  /// - Returns: What the sweep does because the server stops.
  mutating func beginSweep() -> Drain {
    sweepTimer.reset()
    if server.areAllWorkersDraining { drain.everyWorkerDrains() }
    if let deadline = drain.deadline, now < deadline { sweepTimer.schedule(noLaterThan: deadline) }
    return drain
  }

  /// Wakes the commit threads that have something to write.
  mutating func wakeCommitWriters() { executor.wakeCommitWriters() }

  /// Ends a pause of a connection, and executes the requests that have waited.
  /// - Parameter isOverdue: Whether what it waits for has taken too long.
  mutating func endPause(of connection: inout Connection, isOverdue: Bool, _ spare: inout ReplyBuffer) {
    connection.session.endPause(of: &connection, isOverdue: isOverdue, on: &executor, into: &spare)
    settle(&connection, &spare)
    if !connection.waits.isPaused { connection.waits.spaceWasFound() }
  }

  /// Begins the reply to a job that has ended, unless the client has canceled it.
  mutating func beginReply(to job: DocumentJob, _ connection: inout Connection, _ spare: inout ReplyBuffer) {
    connection.session.beginReply(to: job, of: &connection, on: &executor, into: &spare)
    settle(&connection, &spare)
  }

  /// Removes and returns the connections that wait for changes of a store, because there are some.
  mutating func takeWatchers(of store: ObjectIdentifier) -> [ConnectionToken] { watchers.removeWatchers(of: store) }

  /// Adopts the server's current limits, and checks all timeouts against them.
  mutating func updateLimits() {
    executor.updateLimits()
    slowThreshold = executor.limits.slowThreshold.wholeMilliseconds * 1_000_000
    sweepTimer.schedule(noLaterThan: now)
  }

  /// Applies the current access rules, also to what a connection has open.
  mutating func updateAccess(of connection: inout Connection, _ spare: inout ReplyBuffer) {
    guard connection.isServed, connection.phase != .greeting else { return }
    let former = connection.grants
    connection.grants = server.accessControl.grants(for: connection)
    guard connection.grants != former else { return }
    connection.stores.permit(connection.grants)
    connection.session.didChangeRights(of: &connection)
    if connection.grants.isNothing {
      let message = server.accessControl.refuse(AccessControl.useServer, to: connection)
      end(&connection, .notPermitted, message, &spare)
      return settle(&connection, &spare)
    }
    if endStreams(of: &connection, .lostRight(former: former), &spare) { settle(&connection, &spare) }
  }

  /// Ends what a connection has to give up to other clients.
  mutating func endRevokedShares(of connection: inout Connection, _ spare: inout ReplyBuffer) {
    connection.uploads.discardRevoked()
    if connection.input.isRevoked, connection.executes {
      refuseInput(of: &connection, "other clients need the memory of this client's incomplete request", &spare)
      return settle(&connection, &spare)
    }
    if connection.executes, connection.session.hasLostMemory(&connection) {
      end(&connection, .tooManyRequests, "other clients need the memory of what this client has queued", &spare)
      return settle(&connection, &spare)
    }
    if endStreams(of: &connection, .lostMemory, &spare) { settle(&connection, &spare) }
  }

  // MARK: The end

  /// Answers everything that has arrived, gives open streams their time, and ends all connections.
  mutating func beginDrain(_ connections: inout WorkerConnections) {
    guard !drain.isRunning else { return }
    forEach(of: &connections) { loop, connection, batch, spare in
      loop.readRemainingInput(of: &connection, &batch, &spare)
    }
    drain.begin(until: now + executor.limits.shutdownTimeout.wholeMilliseconds)
    server.workerBeganDraining()
    // Watches must learn that all workers have come this far.
    sweepTimer.schedule(noLaterThan: now)
    forEach(of: &connections) { loop, connection, _, spare in loop.settle(&connection, &spare) }
  }

  /// Whether the worker was asked to stop, so that it is done when it has no connection left.
  var isDraining: Bool { drain.isRunning }

  /// Reads and executes what has arrived at a connection, before the server stops.
  private mutating func readRemainingInput(
    of connection: inout Connection, _ batch: inout ReadBatch, _ spare: inout ReplyBuffer
  ) {
    for _ in 0..<Self.maxDrainReads where connection.executes && connection.reads {
      guard read(&connection, &batch, &spare) else { return }
    }
  }
}
