import Platform

/// Reports refusals, but not more of them than a log can bear, because a client can ask for what it may not do as often
/// as it likes. Refusals that are not reported are counted.
package final class RefusalLog: Sendable {
  package enum Event: Equatable, Sendable {
    case refused(Refusal)
    /// The number of further refusals that were not reported, and of those of the users and hosts with most of them.
    case suppressed(Int, [Peer.Origin: Int])
  }

  static let intervalMilliseconds = ThrottledLog<Peer.Origin, Refusal>.intervalMilliseconds
  /// The number of refusals of one user or host that are reported per interval.
  static let maxPerOrigin = 10
  static let maxPerInterval = 60

  private let log: ThrottledLog<Peer.Origin, Refusal>

  init(_ onEvent: @escaping @Sendable (Event) -> Void) {
    log = ThrottledLog(maxPerSource: Self.maxPerOrigin, maxPerInterval: Self.maxPerInterval) {
      onEvent(.refused($0))
    } suppressed: {
      onEvent(.suppressed($0, $1))
    }
  }

  func report(_ refusal: Refusal, now: UInt64 = monotonicMilliseconds()) {
    log.add(refusal, from: refusal.client.peer.origin, now: now)
  }

  /// Reports how many refusals have been suppressed since the last report.
  func reportSuppressed() { log.reportSuppressed() }
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
