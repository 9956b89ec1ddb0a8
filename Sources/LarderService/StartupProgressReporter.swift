import Platform
import Storage
import Systemd

/// Reports to the service manager how far the opening of stores is, so that it keeps waiting. Any thread may report.
final class StartupProgressReporter: Sendable {
  /// The time that each notification asks for. No part of the work takes longer without another notification.
  private static let timeoutExtension = Duration.seconds(60)
  private static let intervalMilliseconds: UInt64 = 250

  private let last = Lock<(number: Int, time: UInt64)>((0, 0))
  private let notify: @Sendable (String, Duration) -> Void

  init(_ notify: @escaping @Sendable (String, Duration) -> Void = ServiceManager.starting) { self.notify = notify }

  /// Reports progress, a few times per second at most. Repeats unchanged progress, because one percent of a large store
  /// can take longer than the service manager waits.
  func report(_ progress: OpeningProgress, now: UInt64 = monotonicMilliseconds()) {
    let isDue = last.withLock { last in
      guard last.number != progress.number || now >= last.time + Self.intervalMilliseconds else { return false }
      last = (progress.number, now)
      return true
    }
    guard isDue else { return }
    let position = progress.storeCount > 1 ? ", store \(progress.number) of \(progress.storeCount)" : ""
    notify("opening \(progress.store)\(position): \(progress.percent)% read", Self.timeoutExtension)
  }
}
