/// How a connection comes, goes and comes again: a plain value, in milliseconds of the caller's clock. Owned by the connection's lock.
struct ConnectionStateMachine {
  enum State: Equatable {
    /// Nobody wants a connection.
    case idle
    /// Somebody does, and the loop has not begun yet.
    case wanted
    /// Resolving and connecting; given up at `until`.
    case connecting(until: UInt64)
    /// The hello was sent; given up at `until`.
    case greeting(until: UInt64)
    case ready
    /// The attempt failed; the next is at `until`.
    case resting(until: UInt64)
    case closed
  }

  private(set) var state = State.idle
  /// Why the last attempt failed; nil since the last hello.
  private(set) var lastFailure: LarderError?
  private var failures = 0
  private var readySince: UInt64 = 0
  /// A connection that stood so long is made anew at once. A server that drops each connection early is left to rest like one that
  /// takes none.
  private static let soundMilliseconds: UInt64 = 1_000
  /// How many connections there were: what belongs to an earlier one is recognised by its number.
  private(set) var incarnation: UInt64 = 0
  private let backoff: Backoff
  private let attemptMilliseconds: UInt64

  init(backoff: Backoff, attemptMilliseconds: UInt64) {
    self.backoff = backoff
    self.attemptMilliseconds = attemptMilliseconds
  }

  var isReady: Bool { state == .ready }
  var isClosed: Bool { state == .closed }

  /// A call needs a connection.
  /// - Returns: whether the loop is to be told.
  mutating func want() -> Bool {
    guard state == .idle else { return false }
    state = .wanted
    return true
  }

  enum Action: Equatable {
    case nothing
    /// Connect, and report with this number.
    case connect(incarnation: UInt64, attempt: Int)
    /// The attempt took too long.
    case giveUp
  }

  /// What is to be done by now.
  mutating func due(now: UInt64, isWanted: Bool) -> Action {
    switch state {
    case .wanted: return begin(now)
    case .resting(let until) where until <= now:
      guard isWanted else {
        state = .idle
        return .nothing
      }
      return begin(now)
    case .connecting(let until) where until <= now, .greeting(let until) where until <= now: return .giveUp
    default: return .nothing
    }
  }

  private mutating func begin(_ now: UInt64) -> Action {
    incarnation += 1
    state = .connecting(until: now + attemptMilliseconds)
    return .connect(incarnation: incarnation, attempt: failures)
  }

  /// The transport stands, and the hello goes out.
  mutating func connected() {
    guard case .connecting(let until) = state else { return }
    state = .greeting(until: until)
  }

  mutating func greeted(now: UInt64) {
    guard case .greeting = state else { return }
    state = .ready
    readySince = now
    lastFailure = nil
  }

  /// The attempt or the connection failed.
  /// - Parameter isWanted: whether calls wait; without any, the next connection is made when one comes.
  mutating func failed(_ error: LarderError, now: UInt64, isWanted: Bool) {
    guard state != .closed else { return }
    let stood = state == .ready && now >= readySince + Self.soundMilliseconds
    if state != .ready { lastFailure = error }
    incarnation += 1
    failures = stood ? 0 : failures + 1
    if stood {
      state = isWanted ? .wanted : .idle
    } else {
      state = .resting(until: now + backoff.milliseconds(afterFailures: failures))
    }
  }

  mutating func close() {
    incarnation += 1
    state = .closed
  }

  /// When `due` has something to do; `.max` for never.
  var nextDue: UInt64 {
    switch state {
    case .wanted: 0
    case .connecting(let until), .greeting(let until), .resting(let until): until
    case .idle, .ready, .closed: .max
    }
  }

  /// Whether the loop is needed.
  var isActive: Bool {
    switch state {
    case .idle, .closed: false
    default: true
    }
  }
}
