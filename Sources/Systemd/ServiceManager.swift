import CSystemd
import Glibc
import Platform

/// What this process tells the service manager that started it: sd_notify(3). With no service manager around, nothing is told to anyone.
package enum ServiceManager {
  /// The service is up.
  package static func ready(_ status: String) {
    notify("READY=1", "STATUS=\(oneLine(status))")
  }

  /// What `systemctl status` shows.
  package static func status(_ status: String) {
    notify("STATUS=\(oneLine(status))")
  }

  /// Starting goes on: it may take so much longer from now.
  package static func starting(_ status: String, for time: Duration) {
    notify("EXTEND_TIMEOUT_USEC=\(time.microseconds)", "STATUS=\(oneLine(status))")
  }

  /// The configuration is being read anew; `ready` ends that.
  package static func reloading() {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    notify("RELOADING=1", "MONOTONIC_USEC=\(time.tv_sec * 1_000_000 + time.tv_nsec / 1_000)")
  }

  package static func stopping(_ status: String) {
    notify("STOPPING=1", "STATUS=\(oneLine(status))")
  }

  /// The service works.
  package static func alive() {
    notify("WATCHDOG=1")
  }

  /// The longest time between two calls of `alive` that the service manager bears; nil when it doesn't mind.
  package static var watchdogInterval: Duration? {
    var microseconds: UInt64 = 0
    guard unsafe sd_watchdog_enabled(0, &microseconds) > 0 else { return nil }
    return .microseconds(Int64(clamping: microseconds))
  }

  private static func notify(_ assignments: String...) {
    // It is nobody's fault here when the service manager can't be reached.
    _ = unsafe sd_notify(0, assignments.joined(separator: "\n"))
  }

  /// A line break would begin another assignment.
  private static func oneLine(_ text: String) -> String {
    String(text.map { $0.isNewline ? " " : $0 })
  }
}

extension Duration {
  fileprivate var microseconds: Int64 {
    let (seconds, attoseconds) = components
    return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
  }
}
