import Glibc

/// Returns the time of a clock that never goes backward and includes the time that the machine sleeps, in milliseconds.
/// Only differences are meaningful.
package func monotonicMilliseconds() -> UInt64 {
  var time = timespec()
  _ = unsafe clock_gettime(CLOCK_BOOTTIME, &time)
  return UInt64(time.tv_sec) &* 1_000 &+ UInt64(time.tv_nsec) / 1_000_000
}

/// Returns the time of the same clock in nanoseconds.
package func monotonicNanoseconds() -> UInt64 {
  var time = timespec()
  _ = unsafe clock_gettime(CLOCK_BOOTTIME, &time)
  return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}

/// Returns the wall-clock time in milliseconds since 1970; 0 if the clock is before that. It may go backward.
package func wallMilliseconds() -> UInt64 {
  var time = timespec()
  _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
  return wallMilliseconds(at: time)
}

/// Returns the wall-clock time in seconds since 1970, as of the kernel's latest tick, which takes no system call.
package func wallSeconds() -> Int {
  var time = timespec()
  _ = unsafe clock_gettime(CLOCK_REALTIME_COARSE, &time)
  return max(0, time.tv_sec)
}

func wallMilliseconds(at time: timespec) -> UInt64 {
  UInt64(max(0, time.tv_sec)) &* 1_000 &+ UInt64(time.tv_sec < 0 ? 0 : time.tv_nsec) / 1_000_000
}
