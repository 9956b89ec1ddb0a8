import Synchronization

/// A server's right to answer reads of stores that other servers may take over, until a time that it can extend.
///
/// The others wait for that time before they take the stores over. A server therefore checks the lease after it has
/// executed requests, and before it sends the replies.
package final class Lease: Sendable {
  /// When the lease ends, in milliseconds of the clock of `monotonicMilliseconds`.
  private let end = Atomic<UInt64>(0)
  private let revocation = Atomic(false)

  package init() {}

  /// Returns whether the lease is held.
  /// - Parameter now: The current time, in milliseconds of the clock of `monotonicMilliseconds`.
  @inline(__always)
  package func isHeld(at now: UInt64) -> Bool { now < end.load(ordering: .acquiring) }

  /// Extends the lease to a time. One that was revoked stays so.
  package func extend(to time: UInt64) {
    guard !revocation.load(ordering: .sequentiallyConsistent) else { return }
    end.store(time, ordering: .releasing)
    if revocation.load(ordering: .sequentiallyConsistent) { end.store(0, ordering: .releasing) }
  }

  /// Whether the lease has ended for good.
  package var isRevoked: Bool { revocation.load(ordering: .acquiring) }

  /// Ends the lease for good.
  package func revoke() {
    revocation.store(true, ordering: .sequentiallyConsistent)
    end.store(0, ordering: .releasing)
  }
}
