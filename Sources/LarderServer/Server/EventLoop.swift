import Platform

/// A worker's event loop: its connections, and how a wakeup serves them.
///
/// A wakeup is a batch. Input of up to `ReadBatch.capacity` connections is read first, then executed with each store
/// locked once, and then the replies are sent with one write per connection. The connection table and the handler are
/// separate values, so that a connection is changed in place while it is served.
///
/// Owned by a `Worker`, and used by one thread at a time: the one that has locked it.
struct EventLoop: ~Copyable {
  private var connections = ConnectionTable()
  private var handler: ConnectionHandler
  private var batch = ReadBatch()
  /// The replies to a connection that is served outside of the batch. Empty in between.
  private var spareReplies = ReplyBuffer()
  private let mailbox: Mailbox
  private var isDraining = false

  /// The number of connections with held replies up to which a commit thread sends these itself. It saves the worker a
  /// wakeup, which is most of what a single client waits for besides the disk; the replies of many clients would delay
  /// the next commit.
  private static let maxDirectReleases = 8

  /// - Parameter poll: polls the mailbox already.
  init(server: ServerState, metrics: WorkerMetrics, mailbox: Mailbox, poll: consuming Poll) {
    handler = ConnectionHandler(server, metrics, mailbox, poll)
    self.mailbox = mailbox
  }

  /// Whether the worker was asked to stop and has no connection left.
  var hasDrained: Bool { isDraining && connections.count == 0 }

  // MARK: A wakeup

  /// Serves everything that a wakeup has brought.
  /// - Returns: how long the worker may wait for more, in milliseconds, or −1 for no limit; nil if no connection is left.
  mutating func serve(_ events: borrowing Poll.Events, count: Int) -> Int32? {
    handler.beginWakeup()
    var (index, hasMail) = (0, false)
    while index < count {
      let end = min(count, index + ReadBatch.capacity)
      while index < end {
        let event = events[index]
        if event.token == Mailbox.token { hasMail = true } else { handle(event) }
        index += 1
      }
      processBatch(isLast: index == count)
    }
    if hasMail { readMailbox() }
    if handler.hasDeferred { executeDeferred() }
    handler.endWakeup()
    if handler.isSweepDue { sweep() }
    if spareReplies.bytes.capacity > ReadBatch.maxKeptReplyBytes { spareReplies.bytes.releaseStorage() }
    return connections.count > 0 ? handler.waitMilliseconds : nil
  }

  /// Sends held replies whose commits are durable, on the thread that has made them so, while the worker waits.
  /// - Returns: whether the worker need not wake up: nothing is left for it to do before it would anyway.
  mutating func sendFewHeldReplies() -> Bool {
    guard handler.awaitingDurabilityCount <= Self.maxDirectReleases else { return false }
    let deadline = handler.sweepDeadline
    handler.beginWakeup()
    releaseHeldReplies()
    handler.endWakeup()
    return connections.count > 0 && !handler.hasDeferred && handler.sweepDeadline >= deadline
  }

  private mutating func releaseHeldReplies() {
    for token in handler.takeAwaitingDurability() where connections.contains(token) {
      handler.releaseHeldReplies(of: &connections[token.slot], &spareReplies)
      didServe(token.slot)
    }
  }

  @inline(__always)
  private mutating func handle(_ event: Poll.Event) {
    let token = ConnectionToken(event.token)
    // The connection may have been closed in this wakeup, and its slot may be taken by another one.
    guard connections.contains(token) else { return }
    let previousCount = batch.count
    handler.handle(event, &connections[token.slot], into: &batch, spare: &spareReplies)
    // A connection in the batch is not done yet.
    if batch.count == previousCount { didServe(token.slot) }
  }

  /// Executes the requests in the batch, then sends the replies.
  /// - Parameter isLast: whether no other batch of the wakeup follows, so that all of its commits can be written at once.
  @inline(__always)
  private mutating func processBatch(isLast: Bool) {
    let count = batch.count
    var index = 0
    while index < count {
      let end = prefetch(from: index)
      while index < end {
        let token = batch[index].token
        if connections.contains(token) { handler.execute(index, of: &batch, &connections[token.slot]) }
        index += 1
      }
    }
    handler.unlockStore()
    if isLast { handler.wakeCommitWriters() }
    for index in 0..<count {
      let token = batch[index].token
      guard connections.contains(token) else { continue }
      handler.settle(&connections[token.slot], &batch[index].replies)
      didServe(token.slot)
    }
    batch.removeAll()
    handler.timeHasPassed()
  }

  /// Tries to execute requests that were deferred, and reads input that channels hold.
  private mutating func executeDeferred() {
    for token in handler.takeDeferred() where connections.contains(token) {
      handler.executeDeferred(of: &connections[token.slot], &batch, &spareReplies)
      didServe(token.slot)
    }
  }

  /// Prefetches the memory for the next connections in the batch.
  /// - Returns: the end of the connections that can be executed now.
  @inline(__always)
  private mutating func prefetch(from first: Int) -> Int {
    var index = first
    // A single connection prefetches as its requests are executed.
    guard batch.count - first > 1 else { return first + 1 }
    repeat {
      let token = batch[index].token
      if connections.contains(token) { handler.prefetch(index, of: &batch, &connections[token.slot]) }
      index += 1
    } while index < batch.count && !handler.hasPrefetchedEnough
    handler.prefetchRecords()
    return index
  }

  // MARK: Connections

  /// Removes a connection if it is closed, and others if clients leave too much unread.
  @inline(__always)
  private mutating func didServe(_ slot: Int) {
    if connections[slot].phase == .closed { remove(slot) }
    while handler.hasTooMuchOutput, removeLongestStalled() {}
  }

  private mutating func remove(_ slot: Int) {
    handler.finish(&connections[slot])
    connections.remove(slot)
  }

  /// Closes the connection whose client has left replies unread for the longest time.
  /// - Returns: whether there was one.
  private mutating func removeLongestStalled() -> Bool {
    var longest: (slot: Int, since: UInt64)?
    for slot in 0..<connections.capacity where connections.isOccupied(slot) {
      guard let since = connections[slot].stalledSince, since < longest?.since ?? .max else { continue }
      longest = (slot, since)
    }
    guard let longest else { return false }
    remove(longest.slot)
    return true
  }

  private mutating func open(_ arrival: Mailbox.Arrival) {
    let token = connections.makeToken()
    guard
      let connection = handler.open(
        arrival.makeChannel(), token: token, from: arrival.listener, arrival.served.session)
    else { return }
    connections.add(connection)
  }

  private mutating func sweep() {
    handler.beginSweep()
    forEachConnection { handler, connection, _, spare in handler.sweep(&connection, &spare) }
    handler.wakeCommitWriters()
  }

  private mutating func forEachConnection(
    _ body: (inout ConnectionHandler, inout Connection, inout ReadBatch, inout ReplyBuffer) -> Void
  ) {
    for slot in 0..<connections.capacity where connections.isOccupied(slot) {
      body(&handler, &connections[slot], &batch, &spareReplies)
      didServe(slot)
    }
  }

  // MARK: Mail

  private mutating func readMailbox() {
    let mail = mailbox.read()
    if mail.hasNewLimits {
      handler.updateLimits()
      forEachConnection { handler, connection, _, spare in handler.updateAccess(of: &connection, &spare) }
    }
    for arrival in mail.arrivals { open(arrival) }
    releaseHeldReplies()
    for pause in mail.endedPauses where connections.contains(pause.connection) {
      handler.endPause(pause, of: &connections[pause.connection.slot], &spareReplies)
      didServe(pause.connection.slot)
    }
    for store in mail.changedStores {
      for token in handler.takeWatchers(of: store) where connections.contains(token) {
        handler.resumeWatches(of: store, &connections[token.slot], &spareReplies)
        didServe(token.slot)
      }
    }
    if mail.hasDroppedStores {
      forEachConnection { handler, connection, _, spare in
        handler.endStreamsOfDroppedStores(of: &connection, &spare)
      }
    }
    if mail.hasRevokedShares {
      forEachConnection { handler, connection, _, spare in handler.endRevokedShares(of: &connection, &spare) }
    }
    for job in mail.endedJobs where connections.contains(job.token) {
      handler.beginReply(to: job, &connections[job.token.slot], &spareReplies)
      didServe(job.token.slot)
    }
    if mail.mustDrain, !isDraining { drain() }
    for respond in mail.probes { respond() }
  }

  /// Answers everything that has arrived, gives open streams their time, and ends all connections.
  private mutating func drain() {
    isDraining = true
    forEachConnection { handler, connection, batch, spare in
      handler.readRemainingInput(of: &connection, &batch, &spare)
    }
    handler.beginDrain()
    forEachConnection { handler, connection, _, spare in handler.settle(&connection, &spare) }
  }
}
