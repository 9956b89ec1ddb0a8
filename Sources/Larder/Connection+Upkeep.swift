import Basics
import Platform
import Wire

/// What the loop does for a connection.
extension Connection {
  /// The socket is ready for something.
  func handle(_ event: Poll.Event, incarnation: UInt64) {
    let (isConnecting, isCurrent) = state.withLock { state in
      var isConnecting = false
      if case .connecting = state.link.state { isConnecting = true }
      return (isConnecting, state.link.incarnation == incarnation)
    }
    guard isCurrent else { return }
    if isConnecting {
      if event.writable || event.hungUp { finishConnecting() }
      return
    }
    if event.readable || event.hungUp, let end = receive() { return lose(end) }
    if event.writable { resumeSending() }
  }

  /// Does what is due: connects, expires calls, and ends a connection that broke while somebody wrote.
  func tend(now: UInt64) {
    let end = state.withLock { $0.end }
    if let end {
      // The server's last words may still be there.
      lose(receive() ?? end)
    }
    expire(now: now)
    if let arrival = takeArrival() { settle(arrival) }
    let action = state.withLock { state in
      state.link.due(now: now, isWanted: !state.line.isEmpty)
    }
    switch action {
    case .nothing: break
    case .connect(let incarnation, let attempt): connect(incarnation, attempt: attempt)
    case .giveUp:
      lose(.broken("no answer within \(configuration.connectTimeout)"))
    }
  }

  /// Ends the waits whose time is up.
  private func expire(now: UInt64) {
    var mustFlush = false
    var isSilent = false
    let (unanswered, unsent, lateness) = state.withLock { state -> ([Caller], [Caller], LarderError) in
      guard state.nextLook <= now else { return ([], [], Self.closed) }
      let lateness = self.lateness(state)
      let (unanswered, cancels, nextReply) = state.table.expire(now: now)
      for id in cancels { state.append(.cancel, id: id) }
      var (unsent, nextTurn) = state.line.expire(now: now)
      for store in Array(state.openers.keys) {
        let (callers, next) = state.openers[store]!.expire(now: now)
        unsent += callers
        nextTurn = min(nextTurn, next)
      }
      state.nextLook = min(nextReply, nextTurn)
      if state.direct.tick() == .handBack { watch(&state) }
      if state.direct.isOn { state.nextLook = min(state.nextLook, now + DirectReading.idleMilliseconds) }
      probe(now: now, &state)
      if state.link.isReady, let oldest = state.table.oldestUnanswered {
        let limit = configuration.silenceLimit.wholeMilliseconds
        let silentAt = max(oldest, state.lastReceived) + limit
        isSilent = silentAt <= now
        state.nextLook = min(state.nextLook, silentAt)
      }
      mustFlush = state.mustFlush
      if mustFlush { state.isWriting = true }
      return (unanswered, unsent, lateness)
    }
    if mustFlush { flush() }
    for caller in unanswered { caller.resume(.failed(silence, .final)) }
    for caller in unsent { caller.resume(.failed(lateness, .final)) }
    if isSilent { lose(.broken("it was silent for \(configuration.silenceLimit) with requests unanswered")) }
    drain()
  }

  /// The connection, or the attempt to make one, is over.
  func lose(_ end: ConnectionEnd) {
    let now = monotonicMilliseconds()
    var impatient: [Caller] = []
    var openers: [Caller] = []
    let failure = self.failure(end)
    let doomed = reading.withLock { reading in
      defer { reading.doomed = [] }
      reading.socket = nil
      reading.input.removeAll()
      reading.wanted = 0
      return reading.doomed
    }
    let endings = state.withLock { state -> [(Caller, Reply)] in
      guard !state.link.isClosed else { return [] }
      if let socket = state.socket {
        loop.poll.remove(socket.descriptor.number)
        state.socket = nil
      }
      let hadStood = state.link.isReady
      state.link.failed(failure.error, now: now, isWanted: !state.line.isEmpty)
      let handed = state.handedBytes
      let cut = loss(end, wasHanded: true, isCut: true)
      var cutError = failure.error
      if case .failed(let error, _) = cut { cutError = error.ofRead(true) }
      let endings = state.table.loseConnection(cutError).map {
        ($0.caller, loss(end, wasHanded: $0.position <= handed, isCut: $0.isCut))
      }
      state.forgetConnection()
      openers = state.takeOpeners()
      if !hadStood, failure.isFinal || !configuration.waitsForConnection { impatient = state.line.popAll() }
      return endings
    }
    for (caller, reply) in endings { caller.resume(reply) }
    for caller in doomed { caller.resume(loss(end, wasHanded: true, isCut: true)) }
    for caller in openers { caller.resume(.proceed(nil)) }
    for caller in impatient { caller.resume(.failed(failure.error, .final)) }
    drain()
  }

  /// Ends everything for good. Runs on the loop's queue.
  func end() {
    let (endings, waiting, handed) = state.withLock { state -> ([Ending<Caller>], [Caller], UInt64) in
      if let socket = state.socket { loop.poll.remove(socket.descriptor.number) }
      state.socket = nil
      state.arrival = nil
      let endings = state.table.loseConnection(Self.closed)
      let handed = state.handedBytes
      state.forgetConnection()
      return (endings, state.line.popAll() + state.takeOpeners(), handed)
    }
    reading.withLock { $0.socket = nil }
    for ending in endings {
      let outcome: LarderError.Outcome = ending.position <= handed ? .unknown : .notExecuted
      let error = LarderError(.closed, outcome: outcome, "the client was closed before the reply came")
      ending.caller.resume(.failed(error, .final))
    }
    for caller in waiting { caller.resume(.failed(Self.closed, .final)) }
    drain()
  }

  /// Refuses calls from now on; `end` is to follow.
  func close() {
    state.withLock { $0.link.close() }
  }

  // MARK: Draining

  /// Refuses calls from now on, and waits until those that are under way are done.
  func finish() async {
    _ = await Caller.suspend { caller in
      let isDone = state.withLock { state in
        state.isDraining = true
        if state.isIdle { return true }
        state.drainers.append(caller)
        return false
      }
      if isDone { caller.resume(.empty) }
    }
  }

  /// Lets those go who wait for the last reply, once it has come.
  func drain() {
    let drainers = state.withLock { state -> [Caller] in
      guard !state.drainers.isEmpty, state.isIdle else { return [] }
      defer { state.drainers = [] }
      return state.drainers
    }
    for drainer in drainers { drainer.resume(.empty) }
  }
}

extension Connection.State {
  /// Whether no call is under way. Answers that are still read, and calls that were given up, don't count.
  var isIdle: Bool { permits == 0 && line.isEmpty && openers.isEmpty && !table.hasWaiting }

  /// What was true of the connection that is gone.
  mutating func forgetConnection() {
    handles.forgetAll()
    output.removeAll()
    isWriting = false
    isBlocked = false
    queuedBytes = 0
    handedBytes = 0
    permits = 0
    direct = DirectReading()
    end = nil
  }
}
