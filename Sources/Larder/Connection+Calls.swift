import Synchronization
import Wire

extension Connection {
  /// Makes a call: sends the request when it can be sent, again where that is safe, and waits for the reply.
  /// - Parameters:
  ///   - store: what to open when the store that the request uses is not.
  ///   - time: how long the call has.
  func call<Q: Request>(_ request: Q, use: StoreUse, store: StoreReference?, time: CallTime) async -> Reply {
    var time = time
    var permit: Permit?
    var mayReopen = true
    var isUnderWay = use.opens
    while true {
      let reply = await attempt(request, use, time, permit: permit, isUnderWay: isUnderWay)
      permit = nil
      isUnderWay = true
      switch reply {
      case .empty, .number, .entry, .absent, .body: return reply
      case .proceed(let given):
        permit = given
        time.update()
      case .mustOpen:
        if let refusal = await open(store!, time: time) { return refusal }
        time.update()
      case .failed(let error, let cause):
        time.update()
        if cause == .connectionLost, error.outcome == .notExecuted || (Q.isRead && configuration.retriesReads) {
          continue
        }
        if error.kind == .storeUnknown, store != nil, mayReopen {
          mayReopen = false
          continue
        }
        return .failed(error.ofRead(Q.isRead), cause)
      }
    }
  }

  /// Sends the request once, or waits for its turn.
  private func attempt<Q: Request>(
    _ request: Q, _ use: StoreUse, _ time: CallTime, permit: Permit?, isUnderWay: Bool
  ) async -> Reply {
    let token = nextToken()
    let measure = request.measure
    let isGatherer = await gather()
    return await withTaskCancellationHandler {
      await Caller.suspend { caller in
        let turn = Turn(caller: caller, token: token, time: time, permit: permit, isUnderWay: isUnderWay)
        submit(request, measure, use, turn, isGatherer)
      }
    } onCancel: {
      cancel(token)
    }
  }

  /// How many calls make it worth waiting for each other.
  private static let crowd = 4

  /// Where calls come in crowds, lets the other tasks that are about to make theirs put them in first, so that one write takes them
  /// all. A call that is alone does not wait.
  /// - Returns: whether the caller must write for all.
  @inline(__always)
  private func gather() async -> Bool {
    guard company.load(ordering: .relaxed) >= Self.crowd,
      isGathering.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
    else { return false }
    await Task.yield()
    return true
  }

  /// A caller on its way into the connection.
  private struct Turn {
    let caller: Caller
    let token: UInt64
    let time: CallTime
    let permit: Permit?
    /// Whether the call had begun before, so that a shutdown waits for it.
    let isUnderWay: Bool
  }

  private enum Step {
    case waits
    case sent
    case reply(Reply)

    var isReply: Bool { if case .reply = self { true } else { false } }
  }

  private func submit<Q: Request>(
    _ request: Q, _ measure: RequestMeasure, _ use: StoreUse, _ turn: Turn, _ isGatherer: Bool
  ) {
    let now = turn.time.now
    var mustFlush = false
    var mustStart = false
    var mustRead = false
    var wakeBy: UInt64?
    var admitted: [Caller] = []
    var incarnation: UInt64 = 0
    let step = state.withLock { state in
      if isGatherer { isGathering.store(false, ordering: .releasing) }
      let step = submit(request, measure, use, turn, now: now, &state, &mustStart)
      let nextLook = state.nextLook
      if !step.isReply { state.nextLook = min(nextLook, turn.time.deadline) }
      if case .sent = step {
        mustRead = direct(now, &state)
      } else if turn.permit != nil {
        // A permit that was not used is for the next in line.
        admitted = state.admit()
        incarnation = state.link.incarnation
      }
      if state.nextLook < nextLook { wakeBy = state.nextLook }
      mustFlush = state.mustFlush && !isGathering.load(ordering: .acquiring)
      if mustFlush { state.isWriting = true }
      return step
    }
    if mustFlush { flush() }
    if mustStart { loop.start() } else if let wakeBy { loop.wake(by: wakeBy) }
    for caller in admitted { caller.resume(.proceed(Permit(incarnation: incarnation))) }
    if case .reply(let reply) = step { turn.caller.resume(reply) }
    if mustRead { readDirectly() }
  }

  @inline(__always)
  private func submit<Q: Request>(
    _ request: Q, _ measure: RequestMeasure, _ use: StoreUse, _ turn: Turn, now: UInt64, _ state: inout State,
    _ mustStart: inout Bool
  ) -> Step {
    let hasPermit = turn.permit.map { $0.incarnation == state.link.incarnation } ?? false
    if hasPermit { state.permits -= 1 }
    if state.link.isClosed || (state.isDraining && !turn.isUnderWay) { return .reply(.failed(Self.closed, .final)) }
    // Under the lock: a cancellation that looked for this call before found nothing, and shows here.
    if Task.isCancelled { return .reply(.failed(Self.cancelled(.notExecuted), .final)) }
    if turn.time.deadline <= now { return .reply(.failed(lateness(state), .final)) }

    guard state.link.isReady, state.end == nil, hasPermit || ((state.line.isEmpty || use.opens) && state.canAdmit)
    else {
      state.line.append(turn.caller, token: turn.token, deadline: turn.time.deadline)
      mustStart = state.link.want()
      return .waits
    }
    guard state.limits.allow(measure) else { return .reply(.failed(state.limits.refusal(of: measure), .final)) }
    var handle: UInt16 = 0
    if case .uses(let store) = use {
      switch state.handles[store] {
      case .open(let number): handle = number
      case .closed:
        state.handles[store] = .opening
        return .reply(.mustOpen)
      case .opening, .stale:
        state.openers[store, default: WaitingLine()].append(
          turn.caller, token: turn.token, deadline: turn.time.deadline)
        return .waits
      }
    }
    let (id, slot) = state.table.insert(
      turn.caller, token: turn.token, form: Q.form, store: use.number, deadline: turn.time.deadline, now: now)
    if state.table.inFlight > company.load(ordering: .relaxed) {
      company.store(state.table.inFlight, ordering: .relaxed)
    }
    let before = state.output.count
    let start = state.output.beginRequest(Q.operation, store: handle, id: id)
    request.encode(into: &state.output)
    state.output.endFrame(start)
    state.queuedBytes &+= UInt64(state.output.count &- before)
    state.table.slots[slot].position = state.queuedBytes
    return .sent
  }

  /// The caller's task was cancelled: its wait ends, and what still comes for it will be dropped.
  private func cancel(_ token: UInt64) {
    var outcome = LarderError.Outcome.notExecuted
    var mustFlush = false
    let caller = state.withLock { state -> Caller? in
      if let caller = state.line.remove(token: token) { return caller }
      for store in state.openers.keys {
        if let caller = state.openers[store]?.remove(token: token) { return caller }
      }
      guard let slot = state.table.slot(token: token) else { return nil }
      // An answer that has begun belongs to its reader, who is cancelled by its own handler.
      guard state.table.slots[slot].phase == .waiting else { return nil }
      outcome = .unknown
      return abandon(slot, &state, &mustFlush)
    }
    if mustFlush { flush() }
    caller?.resume(.failed(Self.cancelled(outcome), .final))
    drain()
  }

  /// Gives a call up, and tells the server if it is at an answer.
  func abandon(_ slot: Int, _ state: inout State, _ mustFlush: inout Bool) -> Caller? {
    let (caller, cancel) = state.table.abandon(slot)
    if let cancel {
      state.append(.cancel, id: cancel)
      mustFlush = state.mustFlush
      if mustFlush { state.isWriting = true }
    }
    return caller
  }
}

extension Connection.State {
  /// How much may wait to be written before calls wait too.
  static var outputLimit: Int { 4 << 20 }

  /// Whether one more request may be put in.
  var canAdmit: Bool {
    table.inFlight + permits < limits.requestsInFlight && output.count < Self.outputLimit && table.hasRoom
  }

  /// Whether there are bytes to write and nobody else does it.
  var mustFlush: Bool { !output.isEmpty && !isWriting && !isBlocked && link.isReady }

  /// A frame without a reply of its own and without a body.
  mutating func append(_ operation: Wire.Operation, id: UInt32) {
    output.appendRequest(operation, id: id)
    queuedBytes &+= UInt64(Frame.headerSize)
  }

  /// Those in line whose turn it is now. Each gets a permit.
  mutating func admit() -> [Caller] {
    guard !line.isEmpty, link.isReady else { return [] }
    var admitted: [Caller] = []
    while canAdmit, let caller = line.popFirst() {
      permits += 1
      admitted.append(caller)
    }
    return admitted
  }
}
