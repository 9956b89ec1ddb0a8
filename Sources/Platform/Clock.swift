import Glibc

/// Milliseconds of a clock that never goes back and counts on while the machine sleeps. Its start means nothing.
package func monotonicMilliseconds() -> UInt64 {
  var time = timespec()
  _ = unsafe clock_gettime(CLOCK_BOOTTIME, &time)
  return UInt64(time.tv_sec) &* 1_000 &+ UInt64(time.tv_nsec) / 1_000_000
}

/// Nanoseconds of the same clock.
package func monotonicNanoseconds() -> UInt64 {
  var time = timespec()
  _ = unsafe clock_gettime(CLOCK_BOOTTIME, &time)
  return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}

/// Milliseconds since 1970, of the clock on the wall: it may go back.
package func wallMilliseconds() -> UInt64 {
  var time = timespec()
  _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
  return UInt64(time.tv_sec) &* 1_000 &+ UInt64(time.tv_nsec) / 1_000_000
}
