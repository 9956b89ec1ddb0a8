import Platform

/// When a call began and when its time is up, in milliseconds.
struct CallTime: Sendable {
  /// When the clock was last read for the call, which is once for a call that is sent at once.
  var now: UInt64
  let deadline: UInt64

  /// The time of a call that begins now.
  init(_ timeout: UInt64) {
    now = monotonicMilliseconds()
    // One more than the sum, as the clock has counted a part of one already.
    deadline = timeout == 0 ? 0 : now + timeout + 1
  }

  mutating func update() { now = monotonicMilliseconds() }
}
