import Basics
import Platform
import Wire

/// The channel of a connection, from the first attempt to connect to the end; what waits to be written to it, and which
/// thread reads it.
///
/// Any thread may find that the connection has failed, and host names are resolved on a thread of their own. Both
/// report the result here, and only the event loop acts on it. A value that does no I/O; the lock of the connection's
/// state protects it.
struct ChannelState<Caller: Sendable>: ~Copyable, Sendable {
  typealias Actions = ConnectionActions<Caller>

  private(set) var lifecycle: ConnectionStateMachine
  private(set) var channel: SharedChannel?
  var output = OutputQueue()
  private var taskReading = TaskReading()
  /// Counts the changes of the channel's epoll interest.
  private var interestVersion: UInt64 = 0
  /// The end of the connection, for the event loop to act on.
  private(set) var failure: ConnectionFailure<Caller>?
  /// The result of an attempt to connect, for the event loop to act on.
  private var connectResult: ConnectResult?
  private var isResolving = false

  init(_ configuration: LarderClient.Configuration) {
    lifecycle = ConnectionStateMachine(
      backoff: configuration.backoff, attemptMilliseconds: max(1, configuration.connectTimeout.wholeMilliseconds))
  }

  var incarnation: UInt64 { lifecycle.incarnation }
  /// Whether requests can be sent.
  var isUsable: Bool { lifecycle.isReady && failure == nil }

  /// When the event loop has something to do, in milliseconds; `.max` for never.
  var nextTimer: UInt64 { connectResult != nil || failure != nil ? 0 : lifecycle.nextActionTime }

  // MARK: Connecting

  /// Records that a call needs a connection.
  /// - Returns: Whether the event loop must start.
  mutating func requestConnection() -> Bool { lifecycle.requestConnection() }

  /// Returns what the event loop must do about the connection now.
  mutating func nextAction(now: UInt64, hasWaiters: Bool) -> ConnectionStateMachine.Action {
    lifecycle.nextAction(now: now, hasWaiters: hasWaiters)
  }

  /// Records that a thread begins to resolve the host's name.
  /// - Returns: False if an earlier one still does.
  mutating func beginResolving() -> Bool {
    defer { isResolving = true }
    return !isResolving
  }

  /// Records the result of an attempt to connect that another thread made.
  mutating func resolvingFinished(_ result: ConnectResult) {
    isResolving = false
    connectResult = result
  }

  mutating func takeConnectResult() -> ConnectResult? { connectResult.take() }

  /// Whether an incarnation is that of the connection, or of the attempt to connect.
  func isCurrent(_ incarnation: UInt64) -> Bool { lifecycle.incarnation == incarnation && !lifecycle.isClosed }

  /// Takes over the channel of an attempt to connect.
  /// - Returns: False if the attempt was given up.
  mutating func attach(_ channel: SharedChannel, incarnation: UInt64) -> Bool {
    guard isCurrent(incarnation) else { return false }
    self.channel = channel
    return true
  }

  /// Records that the socket is connected, so that the handshake of the channel begins.
  /// - Returns: The channel, or nil if the attempt was given up.
  mutating func connected() -> (channel: SharedChannel?, actions: Actions) {
    var actions = Actions()
    if channel != nil {
      lifecycle.socketConnected()
      changeInterest(&actions)
    }
    return (channel, actions)
  }

  /// Records that the handshake of the channel is done, and sends the hello.
  mutating func sendHello(_ hello: ClientHello, id: UInt32) -> Actions {
    var actions = Actions()
    guard channel != nil else { return actions }
    lifecycle.handshakeCompleted()
    output.append(hello, id: id)
    flushIfNeeded(&actions)
    return actions
  }

  mutating func helloReceived(now: UInt64) { lifecycle.helloReceived(now: now) }

  /// Records that a channel waits for other events than before.
  mutating func eventsChanged(of channel: SharedChannel) -> Actions {
    var actions = Actions()
    if self.channel === channel { changeInterest(&actions) }
    return actions
  }

  /// Makes epoll report what the connection waits for.
  private mutating func changeInterest(_ actions: inout Actions) {
    guard let channel else { return }
    interestVersion += 1
    actions.interest = InterestChange(
      channel: channel, incarnation: incarnation,
      use: (receives: !taskReading.isActive, sends: output.isBlocked), version: interestVersion)
  }

  // MARK: Writing

  /// Whether the hello or requests may be written.
  private var writes: Bool { lifecycle.isReady || lifecycle.isGreeting }

  /// Makes this thread the writer if there is output, and no other thread writes it.
  @inline(__always)
  mutating func flushIfNeeded(_ actions: inout Actions) {
    guard output.needsWriter, writes else { return }
    output.beginWriting()
    actions.flushIncarnation = incarnation
  }

  /// Moves the output to the empty `batch`, or ends the writing.
  /// - Parameter incarnation: The `flushIncarnation` of the actions that made the thread the writer.
  /// - Returns: The channel to write the batch to, or nil if there is nothing to write.
  mutating func nextBatch(_ batch: inout ByteBuffer, incarnation: UInt64) -> SharedChannel? {
    // The writer of a lost connection has nothing to do with the next one, which may have another writer.
    guard incarnation == self.incarnation else { return nil }
    guard !output.isEmpty, let channel else {
      output.endWriting(&batch)
      return nil
    }
    output.takeBatch(&batch)
    return channel
  }

  /// Records that the channel is full: the rest of `batch` goes back to the output, which the event loop writes when it
  /// can.
  mutating func channelBlocked(_ batch: inout ByteBuffer, incarnation: UInt64) -> Actions {
    var actions = Actions()
    guard incarnation == self.incarnation else { return actions }
    output.block(&batch)
    changeInterest(&actions)
    return actions
  }

  /// Records that writing failed. The event loop closes the connection, after it has read what the server sent before.
  mutating func writeFailed(_ error: ChannelError, incarnation: UInt64) -> Actions {
    guard incarnation == self.incarnation else { return Actions() }
    output.fail()
    reportFailure(ConnectionFailure(reason: CloseReason(error)))
    return Actions(eventLoop: .wake)
  }

  /// Records that the channel may take more again.
  mutating func channelUnblocked() -> Actions {
    var actions = Actions()
    guard output.isBlocked, writes, failure == nil else { return actions }
    output.unblock()
    changeInterest(&actions)
    flushIfNeeded(&actions)
    return actions
  }

  // MARK: Reading

  /// Decides who reads the reply to a request that was just submitted.
  /// - Returns: Whether the event loop must call `checkReader` soon.
  @inline(__always)
  mutating func decideReader(_ actions: inout Actions) -> Bool {
    let decision = taskReading.requestSubmitted()
    guard decision != .none else { return false }
    actions.reading = channel
    guard decision == .takeOver else { return false }
    changeInterest(&actions)
    return true
  }

  /// Records that bytes have arrived.
  mutating func received() { taskReading.received() }

  /// Whether a task reads now, and has another turn soon, in which it also writes.
  var hasReadingTask: Bool { taskReading.hasTurns }

  /// Begins a turn of the task that reads from `channel`.
  /// - Parameters:
  ///   - isAwaited: Whether a call waits for a reply.
  ///   - hasStreams: Whether there are reply streams.
  ///   - now: In nanoseconds.
  /// - Returns: Whether the task goes on.
  mutating func readingTurn(
    from channel: SharedChannel, isAwaited: Bool, hasStreams: Bool, now: UInt64, _ actions: inout Actions
  ) -> Bool {
    // The connection may have been replaced.
    guard self.channel === channel else { return false }
    let decision = taskReading.turn(isAwaited: isAwaited, hasStreams: hasStreams, now: now)
    if decision == .handBack { changeInterest(&actions) }
    return decision == .none
  }

  /// Makes the event loop read again if no task does. Called every `TaskReading.idleMilliseconds`.
  /// - Returns: Whether a task still reads.
  mutating func checkReader(_ actions: inout Actions) -> Bool {
    if taskReading.tick() == .handBack { changeInterest(&actions) }
    return taskReading.isActive
  }

  // MARK: Ending

  /// Records why the connection is over. An earlier reason prevails.
  mutating func reportFailure(_ failure: ConnectionFailure<Caller>) {
    guard let earlier = self.failure else {
      self.failure = failure
      return
    }
    self.failure = ConnectionFailure(
      reason: earlier.reason, undecodable: earlier.undecodable + failure.undecodable)
  }

  /// Removes and returns the reported failure: the event loop has acted on it.
  mutating func takeFailure() -> ConnectionFailure<Caller>? { failure.take() }

  /// Records that the connection, or the attempt to connect, is over.
  mutating func failed(_ error: LarderError, now: UInt64, hasWaiters: Bool) {
    lifecycle.failed(error, now: now, hasWaiters: hasWaiters)
  }

  mutating func close() { lifecycle.close() }

  /// The channel, if nothing is left to be written to it.
  var idleChannel: SharedChannel? { output.isIdle ? channel : nil }

  /// Removes the channel, if there is one.
  /// - Returns: The change that removes it from epoll.
  mutating func detach() -> InterestChange? {
    guard let channel else { return nil }
    interestVersion += 1
    self.channel = nil
    return InterestChange(channel: channel, incarnation: incarnation, use: nil, version: interestVersion)
  }

  /// Forgets the output of the connection that is gone, and who read it.
  mutating func reset() {
    output.reset()
    taskReading = TaskReading()
  }
}

/// The result of an attempt to connect.
struct ConnectResult: Sendable {
  let incarnation: UInt64
  let outcome: Outcome

  enum Outcome: Sendable {
    case connected(SharedChannel)
    /// Its socket is writable when the attempt is decided.
    case inProgress(SharedChannel)
    case failed(String)
  }
}
