import Glibc

/// Clocks in nanoseconds.
enum Clocks {
  @inline(__always)
  static func now() -> UInt64 { read(CLOCK_MONOTONIC) }

  /// The CPU time of the thread that asks.
  static func threadCPU() -> UInt64 { read(CLOCK_THREAD_CPUTIME_ID) }

  /// The CPU time of this process.
  static func processCPU() -> UInt64 { read(CLOCK_PROCESS_CPUTIME_ID) }

  /// The CPU time of a process and all its threads; nil when there is no such process. More precise than `/proc`.
  static func cpu(ofProcess process: Int32) -> UInt64? {
    var clock = clockid_t()
    guard unsafe clock_getcpuclockid(process, &clock) == 0 else { return nil }
    var time = timespec()
    return unsafe clock_gettime(clock, &time) == 0 ? nanoseconds(time) : nil
  }

  @inline(__always)
  private static func read(_ clock: clockid_t) -> UInt64 {
    var time = timespec()
    _ = unsafe clock_gettime(clock, &time)
    return nanoseconds(time)
  }

  @inline(__always)
  private static func nanoseconds(_ time: timespec) -> UInt64 {
    UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
  }
}
