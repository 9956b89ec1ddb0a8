import Platform
import Storage
import Systemd

/// Tells the service manager how the opening of stores goes on, so that it waits for as long as it does go on.
final class OpeningNotices: Sendable {
  /// How much time each notice asks for: more than any piece of the work takes without another notice.
  private static let patience = Duration.seconds(60)
  private static let intervalMilliseconds: UInt64 = 250

  private let last = Lock<(number: Int, time: UInt64)>((0, 0))
  private let notify: @Sendable (String, Duration) -> Void

  init(_ notify: @escaping @Sendable (String, Duration) -> Void = ServiceManager.starting) { self.notify = notify }

  /// What goes on is told again though its figures are as before: one hundredth of a large store may take longer than the patience.
  func tell(_ progress: OpeningProgress, now: UInt64 = monotonicMilliseconds()) {
    let isDue = last.withLock { last in
      guard last.number != progress.number || now >= last.time + Self.intervalMilliseconds else { return false }
      last = (progress.number, now)
      return true
    }
    guard isDue else { return }
    let place = progress.storeCount > 1 ? ", store \(progress.number) of \(progress.storeCount)" : ""
    notify("opening \(progress.store)\(place): \(progress.percent)% read", Self.patience)
  }
}
