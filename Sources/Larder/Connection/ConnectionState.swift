import Basics
import Platform
import Wire

/// The state of one connection: a value that consumes events and returns actions.
///
/// Its methods do no I/O, read no clock and resume no call. They return what the thread that reports the event must do
/// after it has released the lock of the connection's state, which protects this value.
///
/// Invariants: a caller is in one place only, the table of pending requests or a queue, until an action resumes it.
/// Requests in flight and reservations together never exceed the server's limit. A store has a handle of this
/// connection or none.
struct ConnectionState<Caller: Sendable>: ~Copyable, Sendable {
  private let address: Address
  private let configuration: LarderClient.Configuration

  /// The channel, its life cycle, and what waits to be written to it. The event loop connects it and closes it.
  var channelState: ChannelState<Caller>
  private var pending: PendingTable<Caller>
  private var gathering = CallGathering()
  /// The calls that wait for a connection, or for a place among the requests in flight.
  private var waiters = WaiterQueue<Caller>()
  /// The number of places among the requests in flight that are reserved for calls.
  private var reservations = 0
  private var stores = StoreHandles<Caller>()
  private var limits = NegotiatedLimits()
  /// The name in the server's latest hello, or nil before the first one.
  private(set) var serverName: String?

  private var lastReceived: UInt64 = 0
  /// When the event loop must check the deadlines, in milliseconds.
  private var nextDeadlineCheck = UInt64.max
  private var isDraining = false
  /// The callers of `shutdown`, which wait for the last reply.
  private var drainWaiters: [Caller] = []

  init(address: Address, configuration: LarderClient.Configuration) {
    self.address = address
    self.configuration = configuration
    channelState = ChannelState(configuration)
    pending = PendingTable(credit: configuration.credit)
  }

  // MARK: Actions

  typealias Actions = ConnectionActions<Caller>

  /// Makes the event loop check the deadlines by `time`.
  private mutating func checkDeadlines(by time: UInt64, _ actions: inout Actions) {
    guard time < nextDeadlineCheck else { return }
    nextDeadlineCheck = time
    actions.eventLoop = .wakeBy(time)
  }

  // MARK: Calls

  private enum Submission {
    case sent
    /// The caller waits. The event loop may have to start.
    case waiting(mustStart: Bool)
    case reply(CallResult)
  }

  /// Sends a request, or lets its caller wait, or replies at once.
  /// - Parameters:
  ///   - isCancelled: Whether the caller's task is cancelled. Read it while holding the lock: an earlier cancellation
  ///     has not found the call.
  ///   - defersFlush: Whether another call is about to write the output of all.
  @inline(__always)
  mutating func submit<Q: ServerRequest>(
    _ request: Q, _ measure: RequestMeasure, _ target: RequestTarget, _ attempt: Attempt<Caller>, isCancelled: Bool,
    defersFlush: Bool
  ) -> (actions: Actions, inFlight: Int) {
    var actions = Actions()
    let previousCheck = nextDeadlineCheck
    let submission = send(request, measure, target, attempt, isCancelled: isCancelled)
    switch submission {
    case .sent:
      gathering.requestSubmitted()
      nextDeadlineCheck = min(nextDeadlineCheck, attempt.deadline.instant)
      if channelState.decideReader(&actions) {
        nextDeadlineCheck = min(nextDeadlineCheck, attempt.deadline.now + TaskReading.idleMilliseconds)
      }
    case .waiting(let mustStart):
      nextDeadlineCheck = min(nextDeadlineCheck, attempt.deadline.instant)
      if mustStart { actions.eventLoop = .start }
      if attempt.reservation != nil { admitWaiters(&actions.resumptions) }
    case .reply(let reply):
      if attempt.reservation != nil { admitWaiters(&actions.resumptions) }
      actions.resume(attempt.caller, reply)
      finishDraining(&actions)
    }
    if nextDeadlineCheck < previousCheck, actions.eventLoop == .none {
      actions.eventLoop = .wakeBy(nextDeadlineCheck)
    }
    // The first request is sent at once, so that the server wakes up meanwhile, unless several are about to follow.
    // The others are sent together.
    let isFirst = pending.waitingCalls <= 1 && !gathering.holdsFirstRequest(inFlight: pending.waitingCalls)
    let leavesFlush = channelState.hasReadingTask && !isFirst
    if !defersFlush, !leavesFlush { channelState.flushIfNeeded(&actions) }
    return (actions, pending.inFlight)
  }

  @inline(__always)
  private mutating func send<Q: ServerRequest>(
    _ request: Q, _ measure: RequestMeasure, _ target: RequestTarget, _ attempt: Attempt<Caller>, isCancelled: Bool
  ) -> Submission {
    let hasReservation = attempt.reservation.map { $0.incarnation == channelState.incarnation } ?? false
    if hasReservation { reservations -= 1 }
    if channelState.lifecycle.isClosed || (isDraining && !attempt.isContinuation) {
      return .reply(.failed(.clientClosed, .final))
    }
    if isCancelled { return .reply(.failed(.callCancelled(.notExecuted), .final)) }
    if attempt.deadline.instant <= attempt.deadline.now { return .reply(.failed(timeoutBeforeSending, .final)) }

    // A request that opens a store precedes the waiters, which may wait for it.
    guard channelState.isUsable, hasReservation || ((waiters.isEmpty || target.isOpening) && hasCapacity)
    else {
      waiters.append(attempt.caller, token: attempt.token, deadline: attempt.deadline.instant)
      return .waiting(mustStart: channelState.requestConnection())
    }
    guard limits.allow(measure) else {
      return .reply(.failed(limits.refusal(of: measure, isDivisible: Q.isDivisible), .final))
    }
    guard limits.include(Q.requiredFeatures | measure.features) else {
      return .reply(.failed(.noSuchOperation(at: address), .final))
    }
    var handle: UInt16 = 0
    switch target {
    case .server: break
    case .store(let store):
      switch stores.lookUp(store, token: attempt.token) {
      case .use(let open): handle = open
      case .open:
        guard beginOpening(store, attempt) else { return .waiting(mustStart: false) }
        return .reply(.mustOpenStore)
      case .wait:
        stores.waitForOpening(
          of: store, attempt.caller, token: attempt.token, deadline: attempt.deadline.instant)
        return .waiting(mustStart: false)
      }
    case .opening(let store):
      // If the call was told to open the store on a connection that has been lost since, this one doesn't count the
      // store yet.
      if stores.isClosed(store) {
        guard beginOpening(store, attempt) else { return .waiting(mustStart: false) }
        guard hasCapacity else {
          // Closing another store has taken the place.
          waiters.append(attempt.caller, token: attempt.token, deadline: attempt.deadline.instant)
          return .waiting(mustStart: false)
        }
      }
    }
    let (id, slot) = pending.insert(
      attempt.caller, token: attempt.token, form: Q.form, store: target.storeNumber,
      deadline: attempt.deadline.instant, now: attempt.deadline.now)
    pending.setRequestEnd(channelState.output.append(request, store: handle, id: id), of: slot)
    return .sent
  }

  /// Records that a call opens a store, if there is a handle for it, or another store can be closed. Otherwise lets the
  /// caller wait.
  /// - Returns: Whether the call may open the store.
  private mutating func beginOpening(_ store: UInt32, _ attempt: Attempt<Caller>) -> Bool {
    let now = attempt.deadline.now
    let busy = pending.busyStores
    while !stores.hasHandle(for: store, busy: busy, limit: limits.openStores) {
      guard hasCapacity, let handle = stores.closeLeastRecentlyUsed(busy: busy, now: now) else {
        stores.waitForHandle(attempt.caller, token: attempt.token, deadline: attempt.deadline.instant)
        nextDeadlineCheck = min(nextDeadlineCheck, now + StoreHandles<Caller>.protectionMilliseconds)
        return false
      }
      channelState.output.append(.storeClose, store: handle, id: pending.insertUnattended(now: now))
    }
    stores.beginOpening(store, token: attempt.token)
    return true
  }

  /// Whether another request may be in flight.
  private var hasCapacity: Bool {
    pending.inFlight + reservations < limits.requestsInFlight && !channelState.output.isFull && pending.hasRoom
  }

  /// Resumes the waiters that there are places for, each with a reservation.
  @inline(__always)
  private mutating func admitWaiters(_ resumptions: inout [Actions.Resumption]) {
    guard !waiters.isEmpty, channelState.lifecycle.isReady else { return }
    while hasCapacity, let caller = waiters.popFirst() {
      reservations += 1
      let reservation = Reservation(incarnation: channelState.incarnation)
      resumptions.append(.init(caller: caller, reply: .retry(reservation)))
    }
  }

  /// The error of a call whose deadline passed before its request was sent.
  private var timeoutBeforeSending: LarderError {
    let lifecycle = channelState.lifecycle
    if let error = lifecycle.lastError { return error }
    if lifecycle.isHandshaking { return .noHandshake(with: address) }
    if lifecycle.isGreeting { return .noHello(from: address) }
    return lifecycle.isReady ? .notSent(to: address) : .noConnection(to: address)
  }

  /// Ends the attempt of a call whose task was cancelled. A reply that still arrives is dropped.
  mutating func cancel(_ token: UInt64) -> Actions {
    var actions = Actions()
    if let caller = waiters.remove(token: token) ?? stores.removeWaiter(token: token) {
      actions.resume(caller, .failed(.callCancelled(.notExecuted), .final))
    } else if let slot = pending.waitingSlot(token: token), let caller = abandon(slot, &actions) {
      // A stream that has begun belongs to its reader, which has a cancellation handler of its own.
      actions.resume(caller, .failed(.callCancelled(.unknown), .final))
    }
    finishDraining(&actions)
    return actions
  }

  /// Abandons a call, and cancels its stream at the server.
  /// - Returns: The caller if it was waiting.
  private mutating func abandon(_ slot: Int, _ actions: inout Actions) -> Caller? {
    let (caller, cancelID) = pending.abandon(slot)
    if let cancelID {
      channelState.output.append(.cancel, id: cancelID)
      channelState.flushIfNeeded(&actions)
    }
    return caller
  }

  /// Records that a call could not open a store, and lets the calls that wait for it fail or try themselves.
  mutating func openFailed(_ store: UInt32, _ error: LarderError) -> Actions {
    stores.openFailed(store)
    var actions = Actions()
    // The server would refuse the others, too. If the call gave up, another one opens the store.
    actions.resume(
      stores.popWaiters(for: store), error.outcome == .rejected ? .failed(error, .final) : .retry(nil))
    wakeHandleWaiters(now: lastReceived, &actions)
    finishDraining(&actions)
    return actions
  }

  // MARK: Reply streams

  /// Takes the next frame of a stream for `caller`, or lets it wait.
  /// - Parameters:
  ///   - deadline: The reader's deadline in milliseconds; `.max` for none.
  ///   - now: The time in milliseconds. It is used only if there is no deadline.
  mutating func nextFrame(
    of stream: ReplyStreamID, for caller: Caller, deadline: UInt64, now: UInt64, isCancelled: Bool
  ) -> Actions {
    var actions = Actions()
    if isCancelled {
      actions.resume(caller, .failed(.callCancelled(.unknown).ofRead(true), .final))
      return actions
    }
    let (next, credit) = pending.nextFrame(of: stream, for: caller, deadline: deadline)
    if let credit { channelState.output.append(creditBytes: credit.bytes, id: credit.id) }
    switch next {
    case .reply(let reply): actions.resume(caller, reply)
    // A reader without a deadline must notice, too, if the server is gone.
    case .wait: checkDeadlines(by: deadline == .max ? now + probeMilliseconds : deadline, &actions)
    }
    channelState.flushIfNeeded(&actions)
    return actions
  }

  /// Whether the reader of a stream waits for its next frame.
  func isReaderWaiting(for stream: ReplyStreamID) -> Bool { pending.isReaderWaiting(for: stream) }

  /// Abandons a stream whose reader is gone.
  mutating func abandon(_ stream: ReplyStreamID) -> Actions {
    var actions = Actions()
    if let slot = pending.slot(of: stream), let caller = abandon(slot, &actions) {
      actions.resume(caller, .failed(.callCancelled(.unknown).ofRead(true), .final))
    }
    return actions
  }

  // MARK: Writing

  /// What the writer does next.
  struct WriteStep: Sendable {
    /// The channel to write the batch to, or nil if there is nothing to write.
    var channel: SharedChannel?
    var resumptions: [Actions.Resumption] = []
  }

  /// Moves the output to the empty `batch`, or ends the writing. Calls that waited for room in the output can go on.
  /// - Parameter incarnation: The `flushIncarnation` of the actions that made the thread the writer.
  mutating func nextBatch(_ batch: inout ByteBuffer, incarnation: UInt64) -> WriteStep {
    var step = WriteStep(channel: channelState.nextBatch(&batch, incarnation: incarnation))
    if step.channel != nil { admitWaiters(&step.resumptions) }
    return step
  }

  // MARK: Reading

  /// Processes the whole frames at the beginning of `bytes`.
  /// - Parameter completions: Receives the callers to resume with a frame each, before the actions are performed.
  mutating func received(
    _ bytes: RawSpan, maxFrameLength: Int, now: UInt64, into completions: inout [Completion<Caller>]
  ) -> (scan: ReplyScan, actions: Actions) {
    lastReceived = now
    channelState.received()
    let scan = pending.scan(bytes, maxFrameLength: maxFrameLength, into: &completions)
    gathering.received(replies: completions.count)
    var actions = Actions()
    if !scan.storeEvents.isEmpty || stores.hasStaleHandles { processStoreEvents(scan.storeEvents, &actions) }
    if stores.hasHandleWaiters { wakeHandleWaiters(now: now, &actions) }
    admitWaiters(&actions.resumptions)
    // The caller that has opened a store submits its request next.
    if isDraining, !completions.contains(where: \.opensStore) { finishDraining(&actions) }
    return (scan, actions)
  }

  private mutating func processStoreEvents(_ events: [ReplyScan.StoreEvent], _ actions: inout Actions) {
    for event in events {
      switch event {
      case .opened(let store, let handle): stores.opened(store, handle: handle, now: lastReceived)
      case .unknown(let store): stores.refused(store)
      }
    }
    let pending = pending
    stores.settleStaleHandles { pending.hasRequest(on: $0) }
    actions.resume(stores.popReadyWaiters(), .retry(nil))
  }

  /// Resumes as many calls that wait for a handle as could have one.
  private mutating func wakeHandleWaiters(now: UInt64, _ actions: inout Actions) {
    guard stores.hasHandleWaiters else { return }
    let available = stores.availableHandles(busy: pending.busyStores, limit: limits.openStores, now: now)
    actions.resume(stores.popHandleWaiters(available), .retry(nil))
  }

  /// What the task that reads the replies does in a turn.
  enum ReadingTurn: Sendable {
    /// It looks for bytes.
    case read
    /// It lets other tasks run.
    case wait
    case end
  }

  /// Begins a turn of the task that reads from `channel`, which also writes what calls have left for it.
  /// - Parameters:
  ///   - now: In nanoseconds.
  ///   - defersFlush: Whether a call is about to write the output of all.
  mutating func readingTurn(
    from channel: SharedChannel, now: UInt64, defersFlush: Bool
  ) -> (turn: ReadingTurn, actions: Actions) {
    var actions = Actions()
    if gathering.mustWait(inFlight: pending.waitingCalls) { return (.wait, actions) }
    let continues = channelState.readingTurn(
      from: channel, isAwaited: pending.waitingCalls > 0, hasStreams: pending.hasStreams, now: now, &actions)
    if !defersFlush || !continues { channelState.flushIfNeeded(&actions) }
    return (continues ? .read : .end, actions)
  }

  /// Records that a task has found the end of the connection.
  mutating func readingFailed(from channel: SharedChannel, _ failure: ConnectionFailure<Caller>) -> Actions {
    // Only the event loop closes connections.
    var actions = Actions(eventLoop: .wake)
    if channelState.channel === channel {
      channelState.reportFailure(failure)
    } else {
      actions.resume(failure.undecodable, failure.reason.reply(from: address, wasSent: true, isPartial: true))
    }
    return actions
  }

  // MARK: Timers

  /// When the event loop has something to do, in milliseconds; `.max` for never.
  var nextTimer: UInt64 { min(channelState.nextTimer, nextDeadlineCheck) }

  /// Ends the waits whose deadlines have passed, and checks that the server still responds.
  mutating func expire(now: UInt64) -> Actions {
    var actions = Actions()
    if nextDeadlineCheck <= now {
      let (unanswered, cancelIDs, nextReply) = pending.expire(now: now)
      for id in cancelIDs { channelState.output.append(.cancel, id: id) }
      let (unsent, nextWaiter) = waiters.expire(now: now)
      let (unopened, withoutHandle, nextOpening) = stores.expire(now: now)
      actions.resume(unanswered, .failed(.noReply(from: address), .final))
      actions.resume(unsent + unopened, .failed(timeoutBeforeSending, .final))
      actions.resume(withoutHandle, .failed(.noStoreHandle(at: address, limit: limits.openStores), .final))
      nextDeadlineCheck = min(nextReply, nextWaiter, nextOpening)

      if channelState.checkReader(&actions) {
        nextDeadlineCheck = min(nextDeadlineCheck, now + TaskReading.idleMilliseconds)
      }
      if stores.hasHandleWaiters {
        wakeHandleWaiters(now: now, &actions)
        nextDeadlineCheck = min(nextDeadlineCheck, now + StoreHandles<Caller>.protectionMilliseconds)
      }
      probe(now: now)
      closeIfSilent(now: now)
      channelState.flushIfNeeded(&actions)
    }
    finishDraining(&actions)
    return actions
  }

  /// After how long without a byte the client sends a ping while a reader waits without a deadline.
  private var probeMilliseconds: UInt64 { max(1, configuration.silenceLimit.wholeMilliseconds / 2) }

  /// Sends a ping if a reader waits without a deadline and nothing has arrived for long, so that the server's silence
  /// is noticed.
  private mutating func probe(now: UInt64) {
    guard channelState.lifecycle.isReady, pending.hasReaderWithoutDeadline else { return }
    let probeTime = lastReceived + probeMilliseconds
    guard probeTime <= now else {
      nextDeadlineCheck = min(nextDeadlineCheck, probeTime)
      return
    }
    nextDeadlineCheck = min(nextDeadlineCheck, now + probeMilliseconds)
    guard pending.oldestUnanswered == nil, hasCapacity else { return }
    channelState.output.append(.ping, id: pending.insertUnattended(now: now))
  }

  /// Gives the connection up if requests are unanswered and nothing has arrived for long.
  private mutating func closeIfSilent(now: UInt64) {
    guard channelState.lifecycle.isReady, let oldest = pending.oldestUnanswered else { return }
    let silentTime = max(oldest, lastReceived) + configuration.silenceLimit.wholeMilliseconds
    nextDeadlineCheck = min(nextDeadlineCheck, silentTime)
    guard silentTime <= now else { return }
    channelState.reportFailure(
      ConnectionFailure(
        reason: .disconnected("it sent nothing for \(configuration.silenceLimit) while requests were unanswered")))
  }

  // MARK: Connecting

  /// Returns what the event loop must do about the connection now.
  mutating func nextAction(now: UInt64) -> ConnectionStateMachine.Action {
    channelState.nextAction(now: now, hasWaiters: !waiters.isEmpty)
  }

  /// Records the server's hello, and lets the waiting calls begin.
  mutating func helloReceived(_ limits: NegotiatedLimits, serverName: String, now: UInt64) -> Actions {
    channelState.helloReceived(now: now)
    self.limits = limits
    self.serverName = serverName
    var actions = Actions()
    admitWaiters(&actions.resumptions)
    return actions
  }

  // MARK: Ending

  /// Records that the connection, or the attempt to connect, is over, and ends or retries its calls.
  mutating func connectionLost(_ failure: ConnectionFailure<Caller>, now: UInt64) -> Actions {
    var actions = Actions()
    let (connectError, isFinal) = failure.reason.connectError(to: address)
    // Another thread may have found the end, too.
    let undecodable = failure.undecodable + (channelState.takeFailure()?.undecodable ?? [])
    if !channelState.lifecycle.isClosed {
      actions.interest = channelState.detach()
      let wasReady = channelState.lifecycle.isReady
      channelState.failed(connectError, now: now, hasWaiters: !waiters.isEmpty)
      var streamError = connectError
      if case .failed(let error, _) = failure.reason.reply(from: address, wasSent: true, isPartial: true) {
        streamError = error.ofRead(true)
      }
      for call in pending.connectionLost(streamError: streamError) {
        actions.resume(
          call.caller,
          failure.reason.reply(
            from: address, wasSent: call.requestEnd <= channelState.output.takenBytes, isPartial: call.isPartial))
      }
      actions.resume(resetConnection(), .retry(nil))
      if !wasReady, isFinal || !configuration.waitsForConnection {
        actions.resume(waiters.popAll(), .failed(connectError, .final))
      }
    }
    actions.resume(undecodable, failure.reason.reply(from: address, wasSent: true, isPartial: true))
    finishDraining(&actions)
    return actions
  }

  /// Refuses calls from now on. `terminate` follows.
  mutating func close() { channelState.close() }

  /// Ends all calls of a closed client.
  mutating func terminate() -> Actions {
    var actions = Actions()
    actions.interest = channelState.detach()
    _ = channelState.takeConnectResult()
    for call in pending.connectionLost(streamError: .clientClosed) {
      let outcome: LarderError.Outcome = call.requestEnd <= channelState.output.takenBytes ? .unknown : .notExecuted
      let error = LarderError(.closed, outcome: outcome, "the client was closed before the reply arrived")
      actions.resume(call.caller, .failed(error, .final))
    }
    let undecodable = channelState.takeFailure()?.undecodable ?? []
    actions.resume(undecodable + resetConnection() + waiters.popAll(), .failed(.clientClosed, .final))
    finishDraining(&actions)
    return actions
  }

  /// Forgets what belongs to the connection that is gone.
  /// - Returns: The calls that waited for a store or a handle.
  private mutating func resetConnection() -> [Caller] {
    channelState.reset()
    reservations = 0
    return stores.reset()
  }

  /// Refuses new calls, and resumes `caller` when those that have begun are done.
  mutating func drain(_ caller: Caller) -> Actions {
    isDraining = true
    drainWaiters.append(caller)
    var actions = Actions()
    finishDraining(&actions)
    return actions
  }

  /// Resumes the callers of `shutdown` if no call is in progress. Streams that are still being read, and abandoned
  /// calls, don't count.
  ///
  /// Called last, after every event that may have ended a call.
  private mutating func finishDraining(_ actions: inout Actions) {
    guard !drainWaiters.isEmpty, reservations == 0, waiters.isEmpty, stores.isIdle, pending.waitingCalls == 0,
      !actions.hasReturningCaller
    else { return }
    actions.resume(drainWaiters, .empty)
    drainWaiters = []
  }
}
