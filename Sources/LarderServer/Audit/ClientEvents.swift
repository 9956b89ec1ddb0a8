import Platform

/// The events of the audit that clients cause. However often one does something, it can neither fill the disk nor hide what
/// others do: beyond a number of events of a kind, further ones are counted.
struct ClientEvents: Sendable {
  /// The number of events of a kind of one client that are recorded per minute.
  static let maxPerClient = 60
  static let maxPerMinute = 1_000

  /// What the events of one limit have in common.
  private struct Source: Hashable {
    let kind: AuditEvent.Kind
    let client: String

    init(_ event: AuditEvent, by client: AuditClient) {
      kind = event.kind
      self.client = client.principal.map { "principal \($0)" } ?? "\(client.peer.origin)"
    }
  }

  private let trail: AuditTrail
  private let log: ThrottledLog<Source, AuditEvent>

  init(in trail: AuditTrail) {
    self.trail = trail
    log = ThrottledLog(maxPerSource: Self.maxPerClient, maxPerInterval: Self.maxPerMinute) {
      trail.record($0)
    } suppressed: { count, counts in
      for (source, count) in counts.sorted(by: { $0.value > $1.value }) {
        trail.record(AuditEvent(source.kind, object: "further ones of \(source.client)", count: count))
      }
      let rest = count - counts.values.reduce(0, +)
      if rest > 0 { trail.record(AuditEvent(.eventsLost, count: rest)) }
    }
  }

  /// Records an event; one that no client has caused, in any case.
  func record(_ event: AuditEvent, now: UInt64 = monotonicMilliseconds()) {
    guard let client = event.client else { return trail.record(event) }
    log.add(event, from: Source(event, by: client), now: now)
  }

  /// Records how many events were not recorded one by one.
  func finish() { log.reportSuppressed() }
}
