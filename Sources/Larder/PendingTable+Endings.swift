import Wire

/// A caller whose wait ends without a reply.
struct Ending<Caller: Sendable>: Sendable {
  let caller: Caller
  /// How many bytes had been put into the connection, up to the end of the caller's request.
  let position: UInt64
  /// Whether frames of the answer had come before.
  let isCut: Bool
}

extension PendingTable {
  /// Gives a call up: what still comes for it will be dropped.
  /// - Returns: the caller if it waited, and the id to send a cancel frame for if the server is still at an answer.
  mutating func abandon(_ index: Int) -> (caller: Caller?, cancel: UInt32?) {
    let caller = slots[index].caller
    slots[index].caller = nil
    slots[index].deadline = .max
    switch slots[index].phase {
    case .waiting, .streaming:
      slots[index].phase = .abandoned
      queues[index] = nil
      return (caller, slots[index].form.isAnswer ? id(of: index) : nil)
    case .ended:
      release(index)
      return (caller, nil)
    case .abandoned, .free:
      return (caller, nil)
    }
  }

  /// The slot of the call with a token, whatever it waits for. O(slots), which only cancellations pay.
  func slot(token: UInt64) -> Int? {
    slots.firstIndex { $0.token == token && $0.phase != .free }
  }

  /// Gives up the calls whose time is up. O(slots).
  /// - Returns: those callers, the ids to send cancel frames for, and when to look again.
  mutating func expire(now: UInt64) -> (callers: [Caller], cancels: [UInt32], next: UInt64) {
    var callers: [Caller] = []
    var cancels: [UInt32] = []
    var next = UInt64.max
    for index in slots.indices where slots[index].deadline != .max {
      guard slots[index].deadline <= now else {
        next = min(next, slots[index].deadline)
        continue
      }
      let (caller, cancel) = abandon(index)
      if let caller { callers.append(caller) }
      if let cancel { cancels.append(cancel) }
    }
    return (callers, cancels, next)
  }

  /// Whether some caller waits for the first frame of its reply. O(slots).
  var hasWaiting: Bool { slots.contains { $0.phase == .waiting } }

  /// When the oldest request without any reply was put in; nil when there is none.
  var oldestUnanswered: UInt64? {
    var oldest: UInt64?
    for slot in slots where slot.phase == .waiting || (slot.phase == .abandoned && !slot.form.isAnswer) {
      oldest = min(oldest ?? .max, slot.began)
    }
    return oldest
  }

  /// The connection is gone. Answers keep the frames that came, and end behind them.
  /// - Returns: everybody who waited.
  mutating func loseConnection(_ error: LarderError) -> [Ending<Caller>] {
    var endings: [Ending<Caller>] = []
    for index in slots.indices {
      let slot = slots[index]
      switch slot.phase {
      case .free, .ended: continue
      case .waiting, .abandoned:
        if let caller = slot.caller { endings.append(Ending(caller: caller, position: slot.position, isCut: false)) }
        free(index)
      case .streaming:
        if let caller = slot.caller {
          endings.append(Ending(caller: caller, position: slot.position, isCut: true))
          release(index)
        } else {
          queues[index]?.failure = (error, .final)
          slots[index].phase = .ended
        }
      }
    }
    inFlight = 0
    return endings
  }
}
