import Dispatch
import Platform
import Synchronization
import Wire

/// One connection to the server, which is replaced whenever it is lost and a call needs it.
///
/// Every method reports an event to `state`, and performs the actions that it returns after releasing the lock. Calls
/// come from any task, and suspend it until the reply arrives; none waits in its thread. One thread at a time writes,
/// and one at a time reads: that of a task while calls come, otherwise the client's event loop (`TaskReading`). Only the
/// event loop connects, and closes. The lock of `receiver` is taken before that of `state`.
final class ServerConnection: Sendable {
  private let number: Int
  private let address: Address
  private let configuration: LarderClient.Configuration
  /// Makes the layer of each channel; nil for plain ones.
  private let makeLayer: ChannelLayerFactory?
  private let eventLoop: ClientEventLoop
  private let state: Lock<ConnectionState<Caller>>
  private let receiver = Lock(Receiver())
  /// The version of the latest change of the epoll interest. Its lock orders the changes of several threads.
  private let interestVersion = Lock<UInt64>(0)
  /// How many calls were in flight together lately: a hint for calls that don't hold the lock of the state.
  private let concurrency = Atomic<Int>(0)
  /// Whether a call is about to write the requests of all, so that the others need not.
  private let isCoalescing = Atomic<Bool>(false)
  /// Numbers the attempts of calls, so that a cancellation finds them.
  private let tokens = Atomic<UInt64>(0)
  /// Reports to the client's observers; nil if there are none.
  private let reporter: ConnectionReporter?

  /// The number of concurrent calls from which on requests are coalesced.
  private static let coalescingThreshold = CallGathering.callCounts.upperBound
  private static let helloID = UInt32.max

  init(
    number: Int, address: Address, configuration: LarderClient.Configuration, makeLayer: ChannelLayerFactory?,
    eventLoop: ClientEventLoop
  ) {
    self.number = number
    self.address = address
    self.configuration = configuration
    self.makeLayer = makeLayer
    self.eventLoop = eventLoop
    state = Lock(ConnectionState(address: address, configuration: configuration))
    reporter = ConnectionReporter(number: number, address: address, observers: configuration.observers)
  }

  /// The name in the server's latest hello, or nil before the first one.
  var serverName: String? { state.withLock { $0.serverName } }

  // MARK: Calls

  /// Makes a call.
  /// - Parameter store: The store that the request addresses, or nil for the server.
  /// - Returns: A reply other than `.failed`.
  @inline(__always)
  func call<Q: ServerRequest>(
    _ request: Q, store: StoreReference? = nil, deadline: CallDeadline
  ) async throws(LarderError) -> CallResult {
    let target = store.map { RequestTarget.store($0.number) } ?? .server
    let reply = await reply(to: request, target, store: store, deadline: deadline)
    if case .failed(let error, _) = reply { throw error }
    return reply
  }

  /// Sends a request when it can be sent, and again where that is safe, and waits for the reply.
  /// - Parameter store: The store to open if the request addresses a store that is not open.
  func reply<Q: ServerRequest>(
    to request: Q, _ target: RequestTarget, store: StoreReference?, deadline: CallDeadline
  ) async -> CallResult {
    var deadline = deadline
    var reservation: Reservation?
    var mayReopen = true
    var isContinuation = target.isOpening
    var report: CallReport?
    if let reporter, !target.isOpening { report = reporter.callBegan(request, store: store) }
    while true {
      let reply = await attempt(
        request, target, deadline, reservation: reservation, isContinuation: isContinuation)
      reservation = nil
      isContinuation = true
      switch reply {
      case .empty, .number, .entry, .notFound, .body:
        report?.callEnded(reply)
        return reply
      case .retry(let granted):
        reservation = granted
        deadline.refresh()
      case .mustOpenStore:
        guard let store else { preconditionFailure("Only a request that addresses a store can need an open one.") }
        if let failure = await open(store, deadline: deadline) {
          report?.callEnded(failure)
          return failure
        }
        deadline.refresh()
      case .failed(let error, let cause):
        deadline.refresh()
        let isRead = Q.operation.descriptor.isRead
        if cause == .connectionLost, error.outcome == .notExecuted || (isRead && configuration.retriesReads) {
          report?.countRetry()
          continue
        }
        if error.kind == .storeUnknown || error.kind == .notLeader, isRead || error.outcome != .unknown, store != nil,
          mayReopen
        {
          mayReopen = false
          report?.countRetry()
          continue
        }
        let failure = CallResult.failed(error.ofRead(isRead), cause)
        report?.callEnded(failure)
        return failure
      }
    }
  }

  /// Opens a store by its name, for this call and all that wait for it. The state keeps the handle when the reply
  /// arrives, because the handle is valid only for the connection of the reply.
  /// - Returns: What the call fails with, or nil.
  private func open(_ store: StoreReference, deadline: CallDeadline) async -> CallResult? {
    let target = RequestTarget.opening(store.number)
    let reply: CallResult
    if let maxStaleness = store.maxStaleness {
      let request = StoreOpenStaleRequest(name: store.name, maxStaleness: maxStaleness)
      reply = await self.reply(to: request, target, store: nil, deadline: deadline)
    } else {
      reply = await self.reply(to: StoreOpenRequest(name: store.name), target, store: nil, deadline: deadline)
    }
    guard case .failed(let error, _) = reply else { return nil }
    perform(state.withLock { $0.openFailed(store.number, error) })
    return .failed(error, .final)
  }

  /// Sends a request once, or waits until it can be sent.
  private func attempt<Q: ServerRequest>(
    _ request: Q, _ target: RequestTarget, _ deadline: CallDeadline, reservation: Reservation?, isContinuation: Bool
  ) async -> CallResult {
    let token = tokens.wrappingAdd(1, ordering: .relaxed).newValue
    let measure = request.measure
    let writesForAll = await coalesce()
    return await withTaskCancellationHandler {
      await Caller.suspend { caller in
        let attempt = Attempt(
          caller: caller, token: token, deadline: deadline, reservation: reservation, isContinuation: isContinuation)
        submit(request, measure, target, attempt, writesForAll: writesForAll)
      }
    } onCancel: {
      perform(state.withLock { $0.cancel(token) })
    }
  }

  /// If many calls are concurrent, lets the other tasks that are about to call submit their requests first, so that one
  /// write sends them all. A call that is alone does not wait.
  /// - Returns: Whether the caller must write for all.
  @inline(__always)
  private func coalesce() async -> Bool {
    guard concurrency.load(ordering: .relaxed) >= Self.coalescingThreshold,
      isCoalescing.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
    else { return false }
    await Task.yield()
    return true
  }

  private func submit<Q: ServerRequest>(
    _ request: Q, _ measure: RequestMeasure, _ target: RequestTarget, _ attempt: Attempt<Caller>, writesForAll: Bool
  ) {
    let (actions, inFlight) = state.withLock { state in
      // Only under the lock, so that the calls that leave the writing to this one have appended their requests.
      if writesForAll { isCoalescing.store(false, ordering: .releasing) }
      return state.submit(
        request, measure, target, attempt, isCancelled: Task.isCancelled,
        defersFlush: isCoalescing.load(ordering: .acquiring))
    }
    if inFlight > concurrency.load(ordering: .relaxed) { concurrency.store(inFlight, ordering: .relaxed) }
    perform(actions)
  }

  // MARK: Reply streams

  /// Waits for the next frame of a stream, and gives the server credit for the frames before it.
  /// - Parameter deadline: In milliseconds of the monotonic clock; `.max` for none.
  /// - Returns: `.body` or `.failed`.
  func nextFrame(of stream: ReplyStreamID, deadline: UInt64) async -> CallResult {
    await withTaskCancellationHandler {
      await Caller.suspend { caller in
        let now = deadline == .max ? monotonicMilliseconds() : 0
        perform(
          state.withLock {
            $0.nextFrame(of: stream, for: caller, deadline: deadline, now: now, isCancelled: Task.isCancelled)
          })
      }
    } onCancel: {
      abandon(stream)
    }
  }

  /// Whether the reader of a stream has taken all frames that have arrived, and waits for the next one.
  func isReaderWaiting(for stream: ReplyStreamID) -> Bool {
    state.withLock { $0.isReaderWaiting(for: stream) }
  }

  /// Abandons a stream whose reader is gone.
  func abandon(_ stream: ReplyStreamID) {
    perform(state.withLock { $0.abandon(stream) })
  }

  // MARK: Actions

  /// Performs the actions that the state has returned, after its lock was released.
  @inline(__always)
  private func perform(_ actions: ConnectionActions<Caller>) {
    if let interest = actions.interest { apply(interest) }
    if let incarnation = actions.flushIncarnation { flush(incarnation) }
    switch actions.eventLoop {
    case .none: break
    case .start: eventLoop.start()
    case .wake: eventLoop.wake()
    case .wakeBy(let time): eventLoop.wake(by: time)
    }
    for resumption in actions.resumptions { resumption.caller.resume(resumption.reply) }
    if let channel = actions.reading {
      // With the caller's priority, it takes turns with the caller.
      Task.detached(priority: Task.currentPriority) { await self.readReplies(from: channel) }
    }
  }

  /// Applies a change of the epoll interest, unless another thread has applied a later one.
  private func apply(_ change: InterestChange) {
    interestVersion.withLock { version in
      guard change.version > version else { return }
      version = change.version
      let channel = change.channel
      guard let use = change.use else { return eventLoop.remove(channel) }
      let interest = channel.interest(receives: use.receives, sends: use.sends)
      eventLoop.change(channel, interest, connection: number, incarnation: change.incarnation)
      if use.receives, channel.holdsInput { eventLoop.wake() }
    }
  }

  /// Follows up on a use of a channel with a layer: makes epoll report what it waits for now, and the event loop read
  /// what it holds.
  private func followUp(on channel: SharedChannel) {
    guard !channel.isPlain else { return }
    if channel.hasNewEvents { perform(state.withLock { $0.channelState.eventsChanged(of: channel) }) }
    if channel.holdsInput { eventLoop.wake() }
  }

  /// Writes the output until there is no more or the channel is full.
  private func flush(_ incarnation: UInt64) {
    var batch = ByteBuffer()
    var layered: SharedChannel?
    defer { if let layered { followUp(on: layered) } }
    while true {
      let step = state.withLock { $0.nextBatch(&batch, incarnation: incarnation) }
      guard let channel = step.channel else { return }
      if !channel.isPlain { layered = channel }
      for resumption in step.resumptions { resumption.caller.resume(resumption.reply) }
      while !batch.isEmpty {
        let sent = unsafe channel.send(batch.bytes)
        switch sent {
        case .moved(let count): batch.consume(count)
        case .wouldBlock:
          return perform(state.withLock { $0.channelState.channelBlocked(&batch, incarnation: incarnation) })
        case .failed(let error):
          return perform(state.withLock { $0.channelState.writeFailed(error, incarnation: incarnation) })
        }
      }
    }
  }

  /// Writes requests and reads replies, until the state decides otherwise. Other tasks run between two looks at the
  /// channel.
  private func readReplies(from channel: SharedChannel) async {
    while true {
      let now = monotonicNanoseconds()
      let (turn, actions) = state.withLock {
        $0.readingTurn(from: channel, now: now, defersFlush: isCoalescing.load(ordering: .acquiring))
      }
      perform(actions)
      switch turn {
      case .read:
        let failure = receiver.withLock { $0.receives(from: channel) ? receive(&$0) : nil }
        if let failure { return perform(state.withLock { $0.readingFailed(from: channel, failure) }) }
        followUp(on: channel)
      case .wait: break
      case .end: return
      }
      await Task.yield()
    }
  }

  // MARK: Receiving

  /// Reads what has arrived, and resumes the callers of the replies.
  /// - Returns: How the connection failed, or nil.
  private func receive() -> ConnectionFailure<Caller>? { receiver.withLock { receive(&$0) } }

  private func receive(_ receiver: inout Receiver) -> ConnectionFailure<Caller>? {
    if let reason = receiver.closeReason { return ConnectionFailure(reason: reason) }
    let failure = receiveArrived(&receiver)
    if let failure { receiver.end(failure.reason) }
    return failure
  }

  private func receiveArrived(_ receiver: inout Receiver) -> ConnectionFailure<Caller>? {
    // Bounded, so that one connection's stream does not keep the event loop from the others.
    for _ in 0..<16 {
      switch receiver.read() {
      case .received(let mayHaveMore):
        if let failure = process(&receiver) { return failure }
        if !mayHaveMore { return nil }
      case .wouldBlock: return nil
      case .ended(let reason): return ConnectionFailure(reason: reason)
      }
    }
    return nil
  }

  private func process(_ receiver: inout Receiver) -> ConnectionFailure<Caller>? {
    if !receiver.isGreeted {
      switch receiver.readHello(id: Self.helloID, maxFrameLength: configuration.maxFrameSize) {
      case .incomplete: return nil
      case .failed(let reason): return ConnectionFailure(reason: reason)
      case .hello(let hello):
        let limits = NegotiatedLimits(
          hello, maxFrameSize: configuration.maxFrameSize, maxRequests: PendingTable<Caller>.maxCount)
        let now = monotonicMilliseconds()
        let actions = state.withLock { $0.helloReceived(limits, serverName: hello.name, now: now) }
        reporter?.connectionOpened()
        perform(actions)
      }
    }
    let now = monotonicMilliseconds()
    let (actions, failure) = receiver.processReplies { bytes, maxFrameLength, completions in
      let result = state.withLock {
        $0.received(bytes, maxFrameLength: maxFrameLength, now: now, into: &completions)
      }
      concurrency.store(completions.count, ordering: .relaxed)
      return result
    }
    perform(actions)
    return failure
  }

  // MARK: The event loop

  /// Whether the connection needs the event loop.
  var needsEventLoop: Bool { state.withLock { $0.channelState.lifecycle.needsEventLoop } }

  /// When `runTimers` has something to do, in milliseconds; `.max` for never.
  var nextTimer: UInt64 { state.withLock { $0.nextTimer } }

  /// Handles an event of the channel.
  func handle(_ event: Poll.Event, incarnation: UInt64) {
    let (lifecycle, channel) = state.withLock { state in
      (state.channelState.lifecycle, state.channelState.incarnation == incarnation ? state.channelState.channel : nil)
    }
    guard let channel else { return }
    if lifecycle.isConnecting {
      if event.writable || event.hasHungUp { finishConnecting(channel) }
      return
    }
    if lifecycle.isHandshaking { return continueHandshake(of: channel) }
    let ready = channel.readiness(for: event)
    if ready.receives || event.hasHungUp, let failure = receive() { return close(failure) }
    if ready.sends { perform(state.withLock { $0.channelState.channelUnblocked() }) }
    followUp(on: channel)
  }

  /// Reads what a channel with a layer holds, which epoll does not report.
  private func receiveHeldInput() {
    guard let channel = state.withLock({ $0.channelState.channel }), channel.holdsInput else { return }
    if let failure = receive() { return close(failure) }
    followUp(on: channel)
  }

  /// Does what is due: closes a connection that has failed, ends calls whose deadlines have passed, and connects.
  func runTimers(now: UInt64) {
    closeIfFailed()
    receiveHeldInput()
    perform(state.withLock { $0.expire(now: now) })
    closeIfFailed()
    if let result = state.withLock({ $0.channelState.takeConnectResult() }) { continueConnecting(result) }
    switch state.withLock({ $0.nextAction(now: now) }) {
    case .none: break
    case .connect(let incarnation, let attempt): connect(incarnation, attempt: attempt)
    case .timeOut:
      let lifecycle = state.withLock { $0.channelState.lifecycle }
      let missing =
        lifecycle.isGreeting ? "reply to the hello" : lifecycle.isHandshaking ? "complete handshake" : "connection"
      close(ConnectionFailure(reason: .disconnected("no \(missing) within \(configuration.connectTimeout)")))
    }
  }

  private func closeIfFailed() {
    guard let failure = state.withLock({ $0.channelState.failure }) else { return }
    // The server's last words may have arrived: they say more than a failure to write.
    close(receive() ?? ConnectionFailure(reason: failure.reason))
  }

  /// Closes the connection, or ends the attempt to connect.
  private func close(_ failure: ConnectionFailure<Caller>) {
    receiver.withLock { $0.reset() }
    let now = monotonicMilliseconds()
    let (isClosed, actions) = state.withLock { state in
      (state.channelState.lifecycle.isClosed, state.connectionLost(failure, now: now))
    }
    // If the client was closed, `terminate` reports that.
    if !isClosed { reporter?.connectionFailed(failure.reason, address) }
    perform(actions)
  }

  // MARK: Connecting

  /// Begins to connect. A host name is resolved on a thread of its own, because that can take long.
  private func connect(_ incarnation: UInt64, attempt: Int) {
    reporter?.connectionRequested()
    if case .unix = address {
      return continueConnecting(dial(attempt: attempt, incarnation))
    }
    // If a resolver hangs, later attempts wait for it until they time out, so that there is never more than one such
    // thread.
    guard state.withLock({ $0.channelState.beginResolving() }) else { return }
    DispatchQueue.global().async { [self] in
      let result = dial(attempt: attempt, incarnation)
      state.withLock { $0.channelState.resolvingFinished(result) }
      eventLoop.wake()
    }
  }

  private func dial(attempt: Int, _ incarnation: UInt64) -> ConnectResult {
    do {
      switch try Socket.connect(to: address, attempt: attempt) {
      case .connected(let socket):
        return ConnectResult(incarnation: incarnation, outcome: .connected(try channel(over: socket)))
      case .pending(let socket):
        return ConnectResult(incarnation: incarnation, outcome: .inProgress(try channel(over: socket)))
      }
    } catch {
      let reason = (error as? ConnectError)?.reason ?? "\(error)"
      return ConnectResult(incarnation: incarnation, outcome: .failed(reason))
    }
  }

  private func channel(over socket: consuming Descriptor) throws(SystemError) -> SharedChannel {
    guard let makeLayer else { return SharedChannel(ByteChannel(socket)) }
    guard let layer = makeLayer() else { throw .outOfMemory }
    return SharedChannel(ByteChannel(socket, layer: layer))
  }

  /// Continues an attempt to connect that has a channel, or has failed. The channel of an attempt that was given up is
  /// closed.
  private func continueConnecting(_ result: ConnectResult) {
    guard state.withLock({ $0.channelState.isCurrent(result.incarnation) }) else { return }
    let channel: SharedChannel
    let isConnected: Bool
    switch result.outcome {
    case .failed(let reason): return close(ConnectionFailure(reason: .disconnected(reason)))
    case .connected(let connected): (channel, isConnected) = (connected, true)
    case .inProgress(let pending): (channel, isConnected) = (pending, false)
    }
    do throws(SystemError) {
      try eventLoop.add(
        channel, isConnected ? .reading : .writing, connection: number, incarnation: result.incarnation)
    } catch { return close(ConnectionFailure(reason: .disconnected(error.description))) }
    guard state.withLock({ $0.channelState.attach(channel, incarnation: result.incarnation) }) else {
      return eventLoop.remove(channel)
    }
    if isConnected { beginHandshake() }
  }

  private func finishConnecting(_ channel: SharedChannel) {
    if let error = channel.connectionError {
      close(ConnectionFailure(reason: .disconnected(error.description)))
    } else {
      beginHandshake()
    }
  }

  /// Begins the handshake of the channel. That of a plain channel is done at once.
  private func beginHandshake() {
    let (channel, actions) = state.withLock { $0.channelState.connected() }
    perform(actions)
    if let channel { continueHandshake(of: channel) }
  }

  private func continueHandshake(of channel: SharedChannel) {
    switch channel.continueHandshake() {
    case .done: sendHello(to: channel)
    case .waiting: followUp(on: channel)
    case .failed(let error): close(ConnectionFailure(reason: CloseReason(error)))
    }
  }

  private func sendHello(to channel: SharedChannel) {
    receiver.withLock { $0.begin(channel) }
    let hello = ClientHello(
      features: Features.all, credit: UInt32(configuration.credit), name: configuration.helloName,
      token: configuration.token ?? "")
    perform(state.withLock { $0.channelState.sendHello(hello, id: Self.helloID) })
    followUp(on: channel)
  }

  // MARK: Ending

  /// Refuses calls from now on. `terminate` follows.
  func close() {
    state.withLock { $0.close() }
  }

  /// Ends everything for good. Runs on the event loop's queue.
  func terminate() {
    reporter?.clientClosed()
    let channel = state.withLock { $0.channelState.idleChannel }
    perform(state.withLock { $0.terminate() })
    receiver.withLock { $0.reset() }
    channel?.shutDown()
  }

  /// Refuses new calls, and returns when those in progress are done.
  func drain() async {
    _ = await Caller.suspend { caller in perform(state.withLock { $0.drain(caller) }) }
  }
}
