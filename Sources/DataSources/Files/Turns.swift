/// A semaphore whose waiters are tasks: they suspend, take their turns in the order of their arrival, and stop waiting
/// when they are cancelled.
///
/// A task that needs more turns than are free isn't overtaken by one that needs fewer.
package final class Turns: Sendable {
  /// The time is up.
  package struct TimeoutError: Error {}

  private struct Waiter {
    let count: Int
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var freeCount: Int
    var waiters: [UInt64: Waiter] = [:]
    /// The numbers of the waiters from `head` on, in order, and of some that don't wait any more.
    var order: [UInt64] = []
    var head = 0
    var lastNumber: UInt64 = 0
    /// The numbers of those that ended before they began to wait.
    var ended: [UInt64: any Error] = [:]

    /// Takes turns if no other task waits for them.
    mutating func take(_ count: Int) -> Bool {
      guard waiters.isEmpty, freeCount >= count else { return false }
      freeCount -= count
      return true
    }

    /// Gives turns to the waiters that are first, and removes these.
    mutating func admit() -> [Waiter] {
      var admitted: [Waiter] = []
      while head < order.count {
        if let waiter = waiters[order[head]] {
          guard freeCount >= waiter.count else { break }
          freeCount -= waiter.count
          waiters[order[head]] = nil
          admitted.append(waiter)
        }
        head += 1
      }
      if head == order.count || head >= 1_024 {
        order.removeFirst(head)
        head = 0
      }
      return admitted
    }
  }

  private let state: LockedValue<State>

  /// - Parameter count: The number of turns that can be taken at a time.
  package init(count: Int) {
    state = LockedValue(State(freeCount: count))
  }

  /// Takes turns, and waits until they are free.
  /// - Throws: `CancellationError` if the task is cancelled, and `TimeoutError` after this time.
  package func take(_ count: Int, within limit: Duration? = nil) async throws {
    try Task.checkCancellation()
    let number: UInt64? = state.withLock { state in
      if state.take(count) { return nil }
      state.lastNumber += 1
      return state.lastNumber
    }
    guard let number else { return }
    let timer = limit.map { limit in
      Task {
        try await Task.sleep(for: limit)
        end(number, TimeoutError())
      }
    }
    defer {
      timer?.cancel()
      state.withLock { $0.ended[number] = nil }
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { wait(number, Waiter(count: count, continuation: $0)) }
    } onCancel: {
      end(number, CancellationError())
    }
  }

  package func giveBack(_ count: Int) {
    let admitted = state.withLock { state in
      state.freeCount += count
      return state.admit()
    }
    for waiter in admitted { waiter.continuation.resume() }
  }

  private func wait(_ number: UInt64, _ waiter: Waiter) {
    let (error, admitted): ((any Error)?, [Waiter]) = state.withLock { state in
      if let error = state.ended[number] { return (error, []) }
      state.waiters[number] = waiter
      state.order.append(number)
      return (nil, state.admit())
    }
    if let error { waiter.continuation.resume(throwing: error) }
    for waiter in admitted { waiter.continuation.resume() }
  }

  /// Ends the waiting of a task.
  private func end(_ number: UInt64, _ error: any Error) {
    let (ended, admitted): (Waiter?, [Waiter]) = state.withLock { state in
      guard let waiter = state.waiters.removeValue(forKey: number) else {
        state.ended[number] = error
        return (nil, [])
      }
      return (waiter, state.admit())
    }
    ended?.continuation.resume(throwing: error)
    for waiter in admitted { waiter.continuation.resume() }
  }
}
