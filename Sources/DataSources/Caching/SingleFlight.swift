/// Makes concurrent calls for the same key one call, whose result or error all of the callers receive.
///
/// The call runs in a task of its own, which has the priority and the task-local values of the first caller. A caller
/// that is cancelled stops waiting, and the others don't notice. The last one's cancellation cancels the call.
package final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Flight {
    let number: UInt64
    /// Whether the call continues if no caller waits for it.
    let isBackground: Bool
    var task: Task<Void, Never>?
    var waiters: [UInt64: CheckedContinuation<Value, any Error>] = [:]
  }

  private struct State {
    var flights: [Key: Flight] = [:]
    /// The last number of a flight or a waiter.
    var lastNumber: UInt64 = 0

    mutating func nextNumber() -> UInt64 {
      lastNumber += 1
      return lastNumber
    }
  }

  private let state = LockedValue(State())

  package init() {}

  /// Returns the result of the call in progress for a key, or else of a new call.
  /// - Throws: The error of the call; `CancellationError` if the task is cancelled.
  package func value(
    of key: Key, _ call: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let waiter = state.withLock { $0.nextNumber() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { join(key, waiter, $0, call) }
    } onCancel: {
      leave(key, waiter)
    }
  }

  /// Starts a call for a key that continues even if no caller waits for it, unless one is in progress.
  package func start(_ key: Key, _ call: @escaping @Sendable () async throws -> Value) {
    state.withLock { state in
      if state.flights[key] == nil { takeOff(key, isBackground: true, &state, call) }
    }
  }

  /// Returns how many callers wait for the call in progress for a key.
  func waiterCount(of key: Key) -> Int {
    state.withLock { $0.flights[key]?.waiters.count ?? 0 }
  }

  /// The number of callers that wait for any call in progress.
  var waiterCount: Int {
    state.withLock { $0.flights.values.reduce(0) { $0 + $1.waiters.count } }
  }

  private func join(
    _ key: Key, _ waiter: UInt64, _ continuation: CheckedContinuation<Value, any Error>,
    _ call: @escaping @Sendable () async throws -> Value
  ) {
    let hasJoined = state.withLock { state in
      // Under the lock: a cancellation from now on finds the waiter.
      guard !Task.isCancelled else { return false }
      if state.flights[key] == nil { takeOff(key, isBackground: false, &state, call) }
      state.flights[key]!.waiters[waiter] = continuation
      return true
    }
    if !hasJoined { continuation.resume(throwing: CancellationError()) }
  }

  private func leave(_ key: Key, _ waiter: UInt64) {
    let continuation = state.withLock { state -> CheckedContinuation<Value, any Error>? in
      guard let continuation = state.flights[key]?.waiters.removeValue(forKey: waiter) else { return nil }
      if let flight = state.flights[key], flight.waiters.isEmpty, !flight.isBackground {
        state.flights[key] = nil
        flight.task?.cancel()
      }
      return continuation
    }
    continuation?.resume(throwing: CancellationError())
  }

  private func takeOff(
    _ key: Key, isBackground: Bool, _ state: inout State, _ call: @escaping @Sendable () async throws -> Value
  ) {
    let number = state.nextNumber()
    state.flights[key] = Flight(number: number, isBackground: isBackground)
    // The task can't land before the lock is released.
    state.flights[key]!.task = Task {
      let result: Result<Value, any Error>
      do { result = .success(try await call()) } catch { result = .failure(error) }
      self.land(key, number, result)
    }
  }

  private func land(_ key: Key, _ number: UInt64, _ result: Result<Value, any Error>) {
    let waiters = state.withLock { state in
      // Once all of its waiters have left, another flight may have the key.
      guard let flight = state.flights[key], flight.number == number else {
        return [UInt64: CheckedContinuation<Value, any Error>]()
      }
      state.flights[key] = nil
      return flight.waiters
    }
    for waiter in waiters.values { waiter.resume(with: result) }
  }
}
