import Dispatch
import Platform

/// Passes events on to where they are written, in order, without letting their sources wait. Beyond a number of events
/// that wait, it counts instead of keeping.
///
/// Used by any thread; what changes is behind a lock.
final class AuditTrail: Sendable {
  /// The maximum number of events that wait to be written.
  static let maxWaiting = 4_096

  private struct State {
    var waiting: [AuditEvent] = []
    var isWriting = false
    /// How many were lost since the last one that was written.
    var lost = 0
    var figures = Figures()
  }

  struct Figures {
    /// The number of events, with those that were lost.
    var events: UInt64 = 0
    var lost: UInt64 = 0
  }

  private let state = Lock(State())
  private let queue = DispatchQueue(label: "larder.audit")
  private let write: @Sendable ([AuditEvent]) -> Void
  /// How long `finish` waits. The disk of the audit may not respond.
  private static let finishTimeout = DispatchTimeInterval.seconds(5)

  /// - Parameter write: Writes events. It may take long.
  init(_ write: @escaping @Sendable ([AuditEvent]) -> Void) { self.write = write }

  var figures: Figures { state.withLock { $0.figures } }

  func record(_ event: AuditEvent) {
    let mustWrite = state.withLock { state in
      state.figures.events += 1
      guard state.waiting.count < Self.maxWaiting else {
        state.lost += 1
        state.figures.lost += 1
        return false
      }
      state.waiting.append(event)
      defer { state.isWriting = true }
      return !state.isWriting
    }
    if mustWrite { queue.async { self.writeWaiting() } }
  }

  private func writeWaiting() {
    while true {
      let (events, lost) = state.withLock { state in
        defer { (state.waiting, state.lost) = ([], 0) }
        state.isWriting = !state.waiting.isEmpty
        return (state.waiting, state.lost)
      }
      guard !events.isEmpty else { return }
      write(lost == 0 ? events : events + [AuditEvent(.eventsLost, count: lost)])
    }
  }

  /// Waits until everything is written, but not forever.
  func finish() {
    let done = DispatchSemaphore(value: 0)
    queue.async { done.signal() }
    _ = done.wait(timeout: .now() + Self.finishTimeout)
  }
}
