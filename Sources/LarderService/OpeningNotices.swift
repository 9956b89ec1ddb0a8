import Platform
import Storage
import Systemd

/// Tells the service manager how the opening of stores goes on, so that it waits for as long as it does go on.
final class OpeningNotices: Sendable {
  /// How much time each notice asks for: more than any piece of the work takes without another notice.
  private static let patience = Duration.seconds(60)
  private static let intervalMilliseconds: UInt64 = 250

  private let last = Lock<(progress: OpeningProgress?, time: UInt64)>((nil, 0))

  func tell(_ progress: OpeningProgress) {
    let now = monotonicMilliseconds()
    let isDue = last.withLock { last in
      let isNews = last.progress?.number != progress.number
      guard progress != last.progress, isNews || now >= last.time + Self.intervalMilliseconds else { return false }
      last = (progress, now)
      return true
    }
    guard isDue else { return }
    let place = progress.storeCount > 1 ? ", store \(progress.number) of \(progress.storeCount)" : ""
    ServiceManager.starting("opening \(progress.store)\(place): \(progress.percent)% read", for: Self.patience)
  }
}
