import Platform

/// How long a job has worked, and how long its current turn takes. Times are in nanoseconds.
struct JobClock {
  /// When the current turn began.
  private var turnStart: UInt64 = 0
  /// The time that its turns took, without the current one.
  private var usedTime: UInt64 = 0
  /// The time that all of them may take.
  private let limit: Duration

  /// How long a turn takes. A document that takes longer is continued in the next turn.
  static let turnTime: UInt64 = 1_000_000

  init(limit: Duration) { self.limit = limit }

  /// Begins a turn.
  mutating func beginTurn() { turnStart = monotonicNanoseconds() }

  /// Ends the turn.
  /// - Parameter time: When it ends.
  mutating func endTurn(at time: UInt64 = monotonicNanoseconds()) { usedTime += time - turnStart }

  /// Has others take their turns in the middle of this one if it is over.
  /// - Parameter pause: Returns when the next turn begins.
  /// - Returns: Whether the job may take longer.
  mutating func goOn(_ pause: () -> Void) -> Bool {
    let now = monotonicNanoseconds()
    guard Duration.nanoseconds(usedTime + now - turnStart) <= limit else { return false }
    if isTurnOver(at: now) {
      endTurn(at: now)
      pause()
      beginTurn()
    }
    return true
  }

  /// Whether the turn is over.
  func isTurnOver(at time: UInt64) -> Bool { time - turnStart >= Self.turnTime }

  /// Whether the turns that have ended took too long.
  var isOverdue: Bool { Duration.nanoseconds(usedTime) > limit }

}
