import Basics
import CSystemd
import Glibc

/// Notifications to the service manager that started this process: sd_notify(3). Without a service manager they do
/// nothing.
package enum ServiceManager {
  /// Reports that the service is up.
  package static func ready(_ status: String) {
    notify("READY=1", "STATUS=\(oneLine(status))")
  }

  /// Sets the text that `systemctl status` shows.
  package static func status(_ status: String) {
    notify("STATUS=\(oneLine(status))")
  }

  /// Reports that the service is still starting, and extends the start timeout to this time from now.
  package static func starting(_ status: String, for time: Duration) {
    notify("EXTEND_TIMEOUT_USEC=\(time.wholeMilliseconds * 1_000)", "STATUS=\(oneLine(status))")
  }

  /// Reports that the service is reloading its configuration, until `ready`.
  package static func reloading() {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    notify("RELOADING=1", "MONOTONIC_USEC=\(time.tv_sec * 1_000_000 + time.tv_nsec / 1_000)")
  }

  /// Reports that the service is stopping.
  package static func stopping(_ status: String) {
    notify("STOPPING=1", "STATUS=\(oneLine(status))")
  }

  /// Reports to the watchdog that the service works.
  package static func alive() {
    notify("WATCHDOG=1")
  }

  /// The watchdog's timeout: the maximum time between two calls of `alive`; nil if there is no watchdog.
  package static var watchdogInterval: Duration? {
    var microseconds: UInt64 = 0
    guard unsafe sd_watchdog_enabled(0, &microseconds) > 0 else { return nil }
    return .microseconds(Int64(clamping: microseconds))
  }

  private static func notify(_ assignments: String...) {
    // Nothing can be done if the service manager is out of reach.
    _ = unsafe sd_notify(0, assignments.joined(separator: "\n"))
  }

  /// A line break would begin another assignment.
  private static func oneLine(_ text: String) -> String {
    String(text.map { $0.isNewline ? " " : $0 })
  }
}
