/// A first-in, first-out queue of suspended calls with deadlines.
///
/// A plain value; the lock of the connection's state protects it.
struct WaiterQueue<Caller: Sendable>: Sendable {
  private struct Waiter {
    let token: UInt64
    let deadline: UInt64
    let caller: Caller
  }

  /// The waiters in the order of their arrival. The elements before `head`, and those whose caller gave up, are nil.
  private var waiters: [Waiter?] = []
  private var head = 0
  private var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func append(_ caller: Caller, token: UInt64, deadline: UInt64) {
    waiters.append(Waiter(token: token, deadline: deadline, caller: caller))
    count += 1
  }

  /// Removes and returns the caller that has waited longest. Amortized O(1).
  mutating func popFirst() -> Caller? {
    while head < waiters.count {
      let waiter = waiters[head]
      waiters[head] = nil
      head += 1
      if head == waiters.count || head > 1_024 {
        waiters.removeFirst(head)
        head = 0
      }
      if let waiter {
        count -= 1
        return waiter.caller
      }
    }
    return nil
  }

  mutating func popAll() -> [Caller] {
    let callers = waiters.compactMap { $0?.caller }
    waiters.removeAll()
    head = 0
    count = 0
    return callers
  }

  /// Removes and returns the caller with a token, or returns nil if it isn't in the queue. O(waiters).
  mutating func remove(token: UInt64) -> Caller? {
    guard let index = waiters.firstIndex(where: { $0?.token == token }), let waiter = waiters[index] else { return nil }
    waiters[index] = nil
    count -= 1
    return waiter.caller
  }

  /// Removes the callers whose deadline has passed. O(waiters).
  /// - Returns: Those callers, and the earliest deadline among the others (`.max` if there are none).
  mutating func expire(now: UInt64) -> (callers: [Caller], nextDeadline: UInt64) {
    var callers: [Caller] = []
    var nextDeadline = UInt64.max
    for index in waiters.indices {
      guard let waiter = waiters[index] else { continue }
      if waiter.deadline <= now {
        callers.append(waiter.caller)
        waiters[index] = nil
        count -= 1
      } else {
        nextDeadline = min(nextDeadline, waiter.deadline)
      }
    }
    return (callers, nextDeadline)
  }
}
