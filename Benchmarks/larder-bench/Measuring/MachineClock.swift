import Foundation
import Glibc

/// The CPU time of all cores together, from `/proc/stat`; exact to about 10 ms.
enum MachineClock {
  /// Seconds of work since the machine started, with those that the hypervisor gave to others.
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
