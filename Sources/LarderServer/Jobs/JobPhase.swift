import Synchronization

/// Whether a job goes on: decided once, by whoever comes first. From any thread.
struct JobPhase: ~Copyable {
  private enum Phase: UInt8, AtomicRepresentable {
    /// `displaced` means that another client's job has taken its place.
    case running, canceled, displaced, committed
  }

  private let phase = Atomic(Phase.running)

  /// Ends the job without an outcome, unless it has made its changes.
  /// - Returns: Whether the job changes nothing. It may still be about to notice, until the store is locked once.
  func cancel() -> Bool {
    let (_, phase) = phase.compareExchange(expected: .running, desired: .canceled, ordering: .acquiringAndReleasing)
    return phase != .committed
  }

  /// Ends the job with an error soon, unless it has made its changes.
  func displace() {
    _ = phase.compareExchange(expected: .running, desired: .displaced, ordering: .acquiringAndReleasing)
  }

  /// Prevents that the job is canceled, because it is about to make its changes.
  /// - Returns: False if it has been canceled, or has no place any more.
  func beginCommit() -> Bool {
    phase.compareExchange(expected: .running, desired: .committed, ordering: .acquiringAndReleasing).exchanged
  }

  var isCanceled: Bool { phase.load(ordering: .acquiring) == .canceled }

  /// Whether the job ends without a result.
  var mustEnd: Bool {
    let phase = phase.load(ordering: .acquiring)
    return phase == .canceled || phase == .displaced
  }
}
