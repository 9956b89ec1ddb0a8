import Glibc

/// The times of requests that are sent at a constant rate, one at a time.
struct PacedTimes {
  private let interval: UInt64
  private var next: UInt64

  /// - Parameter rate: Requests per second.
  init(rate: Int) {
    interval = 1_000_000_000 / UInt64(rate)
    next = Clocks.now() + interval
  }

  /// Waits until the next request must be sent.
  /// - Returns: The time from which its latency counts. A request that could not be sent in time, because the one before
  ///   took so long, counts from when it should have been sent.
  mutating func wait() -> UInt64 {
    let due = next
    next += interval
    guard Clocks.now() < due else { return due }
    sleep(until: due)
    return Clocks.now()
  }

  /// - Parameter time: A time of `Clocks.now`.
  private func sleep(until time: UInt64) {
    var time = timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
    while unsafe clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil) == EINTR {}
  }
}
