/// Decides whether calls read their replies from the socket themselves.
///
/// A reply that the event loop reads wakes two threads: the loop's and the task's. If one task makes call after call,
/// that is most of the call's time. So after a series of calls that are the only one in flight, each call waits for its
/// reply itself, for a bounded time, and the event loop stops polling the socket. The loop resumes as soon as a second
/// call is in flight, a reply takes long, or no call comes.
///
/// A plain value; the lock of the connection's state protects it.
struct DirectReading {
  /// How long a call waits for its reply before it leaves that to the event loop. It blocks a thread of Swift's pool,
  /// so this is short.
  static let maxWaitMicroseconds = 200
  /// How many times a call polls for its reply before it sleeps: about 15 µs in all.
  static let pollCount = 32
  /// How long without calls until the event loop polls the socket again, in milliseconds.
  static let idleMilliseconds: UInt64 = 20
  /// How many calls in a row must be the only one in flight.
  private static let initialThreshold = 16
  private static let maxThreshold = 1 << 16

  /// Whether calls read, so that the event loop doesn't poll the socket.
  private(set) var isActive = false
  private var hasReader = false
  private var wasUsed = false
  private var soloCalls = 0
  private var threshold = DirectReading.initialThreshold

  enum Decision: Equatable {
    case none
    /// The call reads.
    case read
    /// The call reads, and the event loop must stop polling the socket.
    case takeOver
    /// The event loop must poll the socket again.
    case handBack
  }

  /// Decides who reads after a request was submitted.
  /// - Parameter isOnlyRequest: Whether no other request is in flight.
  mutating func requestSubmitted(isOnlyRequest: Bool) -> Decision {
    guard isOnlyRequest else {
      soloCalls = 0
      return isActive && !hasReader ? handBack() : .none
    }
    if isActive {
      if hasReader { return .none }
      hasReader = true
      wasUsed = true
      return .read
    }
    soloCalls += 1
    guard soloCalls >= threshold else { return .none }
    isActive = true
    hasReader = true
    wasUsed = true
    return .takeOver
  }

  /// Decides who reads next after a call has read.
  /// - Parameters:
  ///   - wasReadable: Whether bytes arrived in time.
  ///   - isIdle: Whether no request is in flight anymore.
  mutating func readFinished(wasReadable: Bool, isIdle: Bool) -> Decision {
    hasReader = false
    // Slow replies are not worth a blocked thread. The higher the threshold, the less often calls try again.
    threshold = wasReadable ? max(Self.initialThreshold, threshold / 2) : min(Self.maxThreshold, threshold * 4)
    guard isActive else { return .none }
    return wasReadable && isIdle ? .none : handBack()
  }

  /// Decides, every `idleMilliseconds`, whether calls still come.
  mutating func tick() -> Decision {
    guard isActive, !hasReader else { return .none }
    defer { wasUsed = false }
    return wasUsed ? .none : handBack()
  }

  private mutating func handBack() -> Decision {
    isActive = false
    soloCalls = 0
    return .handBack
  }
}
