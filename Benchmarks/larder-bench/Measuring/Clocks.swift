import Foundation
import Glibc

/// Clocks that read in nanoseconds.
enum Clocks {
  @inline(__always)
  static func now() -> UInt64 { read(CLOCK_MONOTONIC) }

  /// Returns the CPU time of the calling thread.
  static func threadCPU() -> UInt64 { read(CLOCK_THREAD_CPUTIME_ID) }

  /// Returns the CPU time of this process.
  static func processCPU() -> UInt64 { read(CLOCK_PROCESS_CPUTIME_ID) }

  /// Returns the CPU time of a process with all its threads, or nil if it doesn't exist. More precise than `/proc`.
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

/// The CPU time of all cores combined, from `/proc/stat`, with a resolution of about 10 ms.
enum MachineClock {
  /// Returns the busy time since boot in seconds, including time stolen by the hypervisor.
  static func busySeconds() -> Double {
    guard let line = try? String(contentsOfFile: "/proc/stat", encoding: .utf8).prefix(while: { $0 != "\n" }) else {
      return 0
    }
    // user, nice, system, idle, iowait, irq, softirq, steal: see proc(5).
    let ticks = line.split(separator: " ").dropFirst().prefix(8).compactMap { Double($0) }
    guard ticks.count == 8 else { return 0 }
    let idle = ticks[3] + ticks[4]
    return (ticks.reduce(0, +) - idle) / Double(sysconf(Int32(_SC_CLK_TCK)))
  }
}
