/// The life cycle of a connection: when to connect, when to give up, when to try again.
///
/// A plain value without I/O; times are milliseconds of the caller's clock. The lock of the connection's state protects
/// it.
struct ConnectionStateMachine {
  private enum State: Equatable {
    /// No call needs a connection.
    case idle
    /// A call needs a connection, and the event loop has not begun to connect.
    case requested
    /// Resolving and connecting; given up at `deadline`.
    case connecting(deadline: UInt64)
    /// The channel's handshake is in progress; given up at `deadline`.
    case handshaking(deadline: UInt64)
    /// The hello is being sent, or was sent; given up at `deadline`.
    case greeting(deadline: UInt64)
    case ready
    /// The attempt failed; the next one begins at `retryTime`.
    case backingOff(retryTime: UInt64)
    case closed
  }

  private var state = State.idle
  /// Why the last attempt failed; nil after the server's hello.
  private(set) var lastError: LarderError?
  private var failures = 0
  private var readySince: UInt64 = 0
  /// Numbers the attempts to connect, so that what belongs to an earlier connection is recognized.
  private(set) var incarnation: UInt64 = 0
  private let backoff: Backoff
  private let attemptMilliseconds: UInt64
  /// A connection that lasted this long is replaced at once. If a server drops each connection early, the client backs
  /// off as it does when the server accepts none.
  private static let stableMilliseconds: UInt64 = 1_000

  /// - Parameter attemptMilliseconds: How long an attempt to connect may take, the server's hello included.
  init(backoff: Backoff, attemptMilliseconds: UInt64) {
    self.backoff = backoff
    self.attemptMilliseconds = attemptMilliseconds
  }

  var isReady: Bool { state == .ready }
  var isClosed: Bool { state == .closed }
  var isConnecting: Bool { if case .connecting = state { true } else { false } }
  var isHandshaking: Bool { if case .handshaking = state { true } else { false } }
  var isGreeting: Bool { if case .greeting = state { true } else { false } }

  /// Whether the connection needs the event loop.
  var needsEventLoop: Bool { state != .idle && state != .closed }

  /// When `nextAction` has something to do, in milliseconds; `.max` for never.
  var nextActionTime: UInt64 {
    switch state {
    case .requested: 0
    case .connecting(let time), .handshaking(let time), .greeting(let time), .backingOff(let time): time
    case .idle, .ready, .closed: .max
    }
  }

  enum Action: Equatable {
    case none
    /// Connect, and report the result with this incarnation.
    case connect(incarnation: UInt64, attempt: Int)
    /// The attempt took too long; close it.
    case timeOut
  }

  /// Records that a call needs a connection.
  /// - Returns: Whether the event loop must start.
  mutating func requestConnection() -> Bool {
    guard state == .idle else { return false }
    state = .requested
    return true
  }

  /// Returns what the event loop must do now.
  mutating func nextAction(now: UInt64, hasWaiters: Bool) -> Action {
    switch state {
    case .requested: return beginAttempt(now)
    case .backingOff(let retryTime) where retryTime <= now:
      guard hasWaiters else {
        state = .idle
        return .none
      }
      return beginAttempt(now)
    case .connecting(let deadline) where deadline <= now, .handshaking(let deadline) where deadline <= now,
      .greeting(let deadline) where deadline <= now:
      return .timeOut
    default: return .none
    }
  }

  private mutating func beginAttempt(_ now: UInt64) -> Action {
    incarnation += 1
    state = .connecting(deadline: now + attemptMilliseconds)
    return .connect(incarnation: incarnation, attempt: failures)
  }

  /// Records that the socket is connected, and the handshake of its channel begins.
  mutating func socketConnected() {
    guard case .connecting(let deadline) = state else { return }
    state = .handshaking(deadline: deadline)
  }

  /// Records that the handshake is done, and the hello is sent.
  mutating func handshakeCompleted() {
    guard case .handshaking(let deadline) = state else { return }
    state = .greeting(deadline: deadline)
  }

  mutating func helloReceived(now: UInt64) {
    guard case .greeting = state else { return }
    state = .ready
    readySince = now
    lastError = nil
  }

  /// Records that the connection, or the attempt to connect, failed.
  /// - Parameter hasWaiters: Whether calls wait. If none do, the next call requests the next connection.
  mutating func failed(_ error: LarderError, now: UInt64, hasWaiters: Bool) {
    guard state != .closed else { return }
    let wasStable = state == .ready && now >= readySince + Self.stableMilliseconds
    if state != .ready { lastError = error }
    incarnation += 1
    failures = wasStable ? 0 : failures + 1
    if wasStable {
      state = hasWaiters ? .requested : .idle
    } else {
      state = .backingOff(retryTime: now + backoff.milliseconds(afterFailures: failures))
    }
  }

  mutating func close() {
    incarnation += 1
    state = .closed
  }
}
