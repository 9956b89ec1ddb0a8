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
    let next = state.withLock { state -> PendingTable<Caller>.Next in
      if Task.isCancelled { return .reply(.failed(Self.cancelled(.unknown).ofRead(true), .final)) }
      let (next, credit) = state.table.next(of: answer, for: caller, deadline: deadline)
      if let credit { state.append(credit: credit.bytes, id: credit.id) }
      if case .wait = next, deadline < state.nextLook {
        state.nextLook = deadline
        mustWake = true
      }
      mustFlush = state.mustFlush
      if mustFlush { state.isWriting = true }
      return next
    }
    if mustFlush { flush() }
    if mustWake { loop.wake(by: deadline) }
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

extension Connection.State {
  /// More credit for the answer of a request.
  mutating func append(credit bytes: Int, id: UInt32) {
    let before = output.count
    let start = output.beginRequest(.credit, id: id)
    output.append(UInt32(clamping: bytes))
    output.endFrame(start)
    queuedBytes &+= UInt64(output.count - before)
  }
}
