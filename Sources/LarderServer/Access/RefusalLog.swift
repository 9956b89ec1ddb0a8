import Dispatch
import Platform

/// Reports refusals, but not more of them than a log can bear, because a client can ask for what it may not do as often
/// as it likes. Refusals that are not reported are counted.
///
/// Used by any thread; what changes is behind a lock.
package final class RefusalLog: Sendable {
  package enum Event: Equatable, Sendable {
    case refused(Refusal)
    /// The number of further refusals that were not reported, and of those of the users and hosts with most of them.
    case suppressed(Int, [Peer.Origin: Int])
  }

  static let intervalMilliseconds: UInt64 = 60_000
  /// The number of refusals of one user or host that are reported per interval, so that one can't hide another's.
  static let maxPerOrigin = 10
  static let maxPerInterval = 60
  /// The number of users and hosts whose refusals are counted one by one.
  static let maxOrigins = 1_024

  private let interval = Lock(ReportingInterval())
  private let onEvent: @Sendable (Event) -> Void

  init(_ onEvent: @escaping @Sendable (Event) -> Void) {
    self.onEvent = onEvent
  }

  func report(_ refusal: Refusal, now: UInt64 = monotonicMilliseconds()) {
    if let (count, counts) = interval.withLock({ $0.restartIfOver(now) }) { onEvent(.suppressed(count, counts)) }
    let decision = interval.withLock { $0.decide(refusal.client.peer.origin) }
    if decision == .report { onEvent(.refused(refusal)) }
    guard decision == .suppressFirst else { return }
    // There may be no later refusal that reports how many were suppressed.
    let milliseconds = Int(Self.intervalMilliseconds)
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { [weak self] in
      self?.reportSuppressed()
    }
  }

  /// Reports how many refusals have been suppressed since the last report.
  func reportSuppressed() {
    let (count, counts) = interval.withLock { $0.takeSuppressed() }
    if count > 0 { onEvent(.suppressed(count, counts)) }
  }
}

/// What was reported, and what was not, in an interval of time.
private struct ReportingInterval {
  private var end: UInt64 = 0
  private var reportedCount = 0
  private var reportedCounts: [Peer.Origin: Int] = [:]
  private var suppressedCount = 0
  private var suppressedCounts: [Peer.Origin: Int] = [:]

  enum Decision {
    case report, suppress
    /// Don't report the refusal, which is the first in the interval.
    case suppressFirst
  }

  /// Begins the next interval if this one is over.
  /// - Returns: how many refusals were suppressed in the last one, if there were any.
  mutating func restartIfOver(_ now: UInt64) -> (Int, [Peer.Origin: Int])? {
    guard now >= end else { return nil }
    let suppressed = takeSuppressed()
    self = ReportingInterval()
    end = now + RefusalLog.intervalMilliseconds
    return suppressed.0 > 0 ? suppressed : nil
  }

  mutating func decide(_ origin: Peer.Origin) -> Decision {
    guard reportedCount < RefusalLog.maxPerInterval, reportedCounts[origin, default: 0] < RefusalLog.maxPerOrigin
    else {
      suppressedCount += 1
      if suppressedCounts.count < RefusalLog.maxOrigins || suppressedCounts[origin] != nil {
        suppressedCounts[origin, default: 0] += 1
      }
      return suppressedCount == 1 ? .suppressFirst : .suppress
    }
    reportedCount += 1
    reportedCounts[origin, default: 0] += 1
    return .report
  }

  mutating func takeSuppressed() -> (Int, [Peer.Origin: Int]) {
    defer { (suppressedCount, suppressedCounts) = (0, [:]) }
    return (suppressedCount, suppressedCounts)
  }
}

/// A request that a client had no right to make, or a connection that was not established.
package struct Refusal: Equatable, Sendable {
  package let client: AuditClient
  /// A description of the client: `user web (uid 33)`.
  package let clientName: String
  /// What it asked for, as it reads after "may not": `write to store sessions`.
  package let action: String
  /// Why it was refused, if not for lack of a right.
  package let reason: String?
}
