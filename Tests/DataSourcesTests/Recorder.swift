@testable import DataSources

/// What happened, in its order, from whatever thread.
final class Recorder<Event: Sendable>: Sendable {
  private let recorded = Locked<[Event]>([])

  var events: [Event] { recorded.withLock { $0 } }

  func add(_ event: Event) {
    recorded.withLock { $0.append(event) }
  }
}
