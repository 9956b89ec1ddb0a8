import Platform

/// Decides who reads the replies: the client's event loop, or a task of the client.
///
/// A reply that the event loop reads wakes two threads: the loop's, and one for the caller's task. If few calls are in
/// flight, that is most of a call's time. So while calls come, a task reads the replies, on the threads that run the
/// callers. In each of its turns it sends what calls have left for it, and looks whether bytes have arrived; then it
/// lets the other tasks run. (It leaves out a turn if several callers are about to call: see `CallGathering`.) It never
/// waits for the socket, and no call does, so that a thread is free for other tasks whenever there are any. The price is
/// that it takes processor time for as long as a call waits, though at most `maxWait` in vain: with one task that makes
/// call after call, somewhat more than a thread that sleeps.
///
/// The task ends when no call waits for a reply, and the next call starts another one. The event loop reads again if
/// replies take long, if no call comes, or if other tasks keep the threads; and as soon as the task ends, if there are
/// reply streams, whose frames come without a call.
///
/// A plain value; the lock of the connection's state protects it.
struct TaskReading {
  /// For how long the task looks for bytes in vain, in nanoseconds.
  static let maxWait: UInt64 = 100_000
  /// How long without calls, or without a turn of the task, until the event loop reads again, in milliseconds.
  static let idleMilliseconds: UInt64 = 20
  /// How many turns the task has when no call waits: enough for the caller that it has resumed to make its next call.
  static let idleTurns = 4
  /// How many calls the event loop serves before a task does.
  static let initialThreshold = 16
  private static let maxThreshold = 1 << 16
  /// On one processor, the server would wait for the task.
  private static let isPossible = ((try? ProcessorSet.ofCurrentThread().numbers.count) ?? 1) > 1

  private let isPossible: Bool
  /// Whether a task reads when a call waits, so that the event loop doesn't poll the socket.
  private(set) var isActive = false
  /// Whether there is a task. One that has lost its part to the event loop ends in its next turn.
  private var hasTask = false
  private var wasUsed = false
  private var hasReceived = false
  /// When bytes arrived last, in nanoseconds.
  private var lastReceived: UInt64 = 0
  private var emptyTurns = 0
  private var calls = 0
  private var threshold = TaskReading.initialThreshold

  init(isPossible: Bool = TaskReading.isPossible) { self.isPossible = isPossible }

  /// Whether a task reads now, and has another turn soon.
  var hasTurns: Bool { isActive && hasTask }

  enum Decision: Equatable {
    case none
    /// A task must start.
    case start
    /// A task must start, and the event loop must stop polling the socket.
    case takeOver
    /// The task ends.
    case end
    /// The task ends, and the event loop must poll the socket again.
    case handBack
  }

  /// Decides who reads after a request was submitted.
  mutating func requestSubmitted() -> Decision {
    guard !hasTask, isPossible else { return .none }
    let wasActive = isActive
    if !wasActive {
      calls += 1
      guard calls >= threshold else { return .none }
    }
    isActive = true
    hasTask = true
    wasUsed = true
    hasReceived = true
    return wasActive ? .start : .takeOver
  }

  /// Records that bytes have arrived.
  mutating func received() {
    guard isActive else { return }
    hasReceived = true
    threshold = max(Self.initialThreshold, threshold / 2)
  }

  /// Decides, at the beginning of the task's turn, whether it goes on.
  /// - Parameters:
  ///   - isAwaited: Whether a call waits for a reply.
  ///   - hasStreams: Whether frames of reply streams may come without a call.
  ///   - now: In nanoseconds.
  mutating func turn(isAwaited: Bool, hasStreams: Bool = false, now: UInt64) -> Decision {
    wasUsed = true
    guard isActive else {
      hasTask = false
      return .end
    }
    if hasReceived {
      hasReceived = false
      lastReceived = now
      emptyTurns = 0
      return .none
    }
    emptyTurns += 1
    if isAwaited {
      guard now > lastReceived + Self.maxWait else { return .none }
      // The higher the threshold, the less often a task tries again.
      threshold = min(Self.maxThreshold, threshold * 4)
      hasTask = false
      return handBack()
    }
    guard emptyTurns >= Self.idleTurns else { return .none }
    hasTask = false
    return hasStreams ? handBack() : .end
  }

  /// Decides, every `idleMilliseconds`, whether calls still come, and the task has turns.
  mutating func tick() -> Decision {
    guard isActive else { return .none }
    defer { wasUsed = false }
    return wasUsed ? .none : handBack()
  }

  private mutating func handBack() -> Decision {
    isActive = false
    calls = 0
    return .handBack
  }
}
