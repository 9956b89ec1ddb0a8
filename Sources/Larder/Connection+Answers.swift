import Basics
import Platform
import Wire

extension Connection {
  /// Waits for the next frame of an answer, and gives the server credit for those before it.
  /// - Returns: `.body` or `.failed`.
  func next(of answer: AnswerID, deadline: UInt64) async -> Reply {
    await withTaskCancellationHandler {
      await Caller.suspend { caller in ask(answer, caller, deadline) }
    } onCancel: {
      abandon(answer)
    }
  }

  private func ask(_ answer: AnswerID, _ caller: Caller, _ deadline: UInt64) {
    var mustFlush = false
    var mustWake = false
    // Who waits without a deadline wants to know all the same when the server is gone.
    let lookBy = deadline == .max ? monotonicMilliseconds() + probeMilliseconds : deadline
    let next = state.withLock { state -> PendingTable<Caller>.Next in
      if Task.isCancelled { return .reply(.failed(Self.cancelled(.unknown).ofRead(true), .final)) }
      let (next, credit) = state.table.next(of: answer, for: caller, deadline: deadline)
      if let credit { state.append(credit: credit.bytes, id: credit.id) }
      if case .wait = next { mustWake = state.look(by: lookBy) }
      mustFlush = state.mustFlush
      if mustFlush { state.isWriting = true }
      return next
    }
    if mustFlush { flush() }
    if mustWake { loop.wake(by: lookBy) }
    if case .reply(let reply) = next { caller.resume(reply) }
  }

  /// Lets go of an answer that nobody reads on.
  func abandon(_ answer: AnswerID) {
    var mustFlush = false
    let caller = state.withLock { state -> Caller? in
      guard let slot = state.table.slot(of: answer) else { return nil }
      return abandon(slot, &state, &mustFlush)
    }
    if mustFlush { flush() }
    caller?.resume(.failed(Self.cancelled(.unknown).ofRead(true), .final))
  }
}

extension Connection {
  /// After how long without a byte a server is asked for a sign of life while somebody waits for it without a deadline.
  var probeMilliseconds: UInt64 { max(1, configuration.silenceLimit.wholeMilliseconds / 2) }

  /// Asks the server for a sign of life if somebody waits without a deadline and nothing has come for long: its silence is noticed then.
  func probe(now: UInt64, _ state: inout State) {
    guard state.link.isReady, state.table.hasEndlessWait else { return }
    let due = state.lastReceived + probeMilliseconds
    guard due <= now else {
      _ = state.look(by: due)
      return
    }
    _ = state.look(by: now + probeMilliseconds)
    guard state.table.oldestUnanswered == nil, state.canAdmit else { return }
    state.append(.ping, id: state.table.insertProbe(token: nextToken(), now: now))
  }
}

extension Connection.State {
  /// Has the loop look at deadlines by then.
  /// - Returns: whether it is to be told.
  mutating func look(by time: UInt64) -> Bool {
    guard time < nextLook else { return false }
    nextLook = time
    return true
  }

  /// More credit for the answer of a request.
  mutating func append(credit bytes: Int, id: UInt32) {
    let before = output.count
    let start = output.beginRequest(.credit, id: id)
    output.append(UInt32(clamping: bytes))
    output.endFrame(start)
    queuedBytes &+= UInt64(output.count - before)
  }
}
