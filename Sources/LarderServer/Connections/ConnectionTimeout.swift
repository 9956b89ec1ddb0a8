import Basics

/// When a connection has waited too long, and for what: `Protocol/wire.md` §9.
///
/// Nothing is timed per request. The worker's sweep looks at what each connection did last, and runs no earlier than
/// the first of them can time out.
struct ConnectionTimeout {
  enum Reason {
    case helloMissing, frameStalled, frameTooSlow, repliesUnread, idle, lingering
  }

  /// In milliseconds.
  let deadline: UInt64
  private let reason: Reason

  /// How long a closed connection's client may take to read the last frame and close the connection too, in
  /// milliseconds.
  static let lingerMilliseconds: UInt64 = 1_000

  init(_ reason: Reason, since start: UInt64, milliseconds: UInt64) {
    self.reason = reason
    deadline = start + milliseconds
  }

  init(_ reason: Reason, since start: UInt64, _ duration: Duration) {
    self.init(reason, since: start, milliseconds: duration.wholeMilliseconds)
  }

  /// What the client is told; nil if it is told nothing because it doesn't read, or can't.
  func message(_ limits: borrowing ServerLimits) -> String? {
    switch reason {
    case .helloMissing: "no hello arrived within \(limits.helloTimeout)"
    case .frameStalled: "the connection stalled in the middle of a frame for \(limits.frameTimeout)"
    case .frameTooSlow: "a frame was not complete after \(limits.frameTime) (limits.frame-time)"
    case .idle: "the connection was idle for \(limits.idleTimeout)"
    case .repliesUnread, .lingering: nil
    }
  }
}

/// When the next sweep for timeouts runs. Owned by a `EventLoop`.
struct SweepTimer {
  /// In milliseconds; `UInt64.max` when no sweep is scheduled.
  private(set) var deadline = UInt64.max

  /// Schedules a sweep, unless an earlier one is scheduled.
  mutating func schedule(noLaterThan time: UInt64) { deadline = min(deadline, time) }

  mutating func reset() { deadline = .max }

  func isDue(_ now: UInt64) -> Bool { now >= deadline }

  /// The time until the next sweep as epoll_wait(2) takes it: in milliseconds, −1 for no limit.
  func timeout(_ now: UInt64) -> Int32 {
    if deadline == .max { return -1 }
    return deadline <= now ? 0 : Int32(clamping: deadline - now)
  }
}
