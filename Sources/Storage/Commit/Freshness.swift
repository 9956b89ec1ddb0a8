import Platform

/// How current a store is whose changes another server makes.
package final class Freshness: Sendable {
  private let state = Lock(State())

  private struct State {
    /// The store has everything that was acknowledged before this time, in milliseconds of the clock of
    /// `monotonicMilliseconds`; 0 if that is unknown.
    var time: UInt64 = 0
    /// The leases of readers, by the staleness that they accept, in milliseconds.
    var leases: [UInt32: Lease] = [:]
  }

  package init() {}

  /// Notes that the store has everything that was acknowledged before a time.
  package func extend(to time: UInt64) {
    state.withLock { state in
      guard time > state.time else { return }
      state.time = time
      for (staleness, lease) in state.leases { lease.extend(to: time + UInt64(staleness)) }
    }
  }

  /// Returns how old the store may be, in milliseconds.
  package func staleness(at now: UInt64) -> UInt64 { state.withLock { now - min(now, $0.time) } }

  /// Returns a lease that is held while the store is not older than `staleness`, in milliseconds, or a little less, so that
  /// there are not more than 124 leases.
  package func lease(within staleness: UInt32) -> Lease {
    let shift = max(0, UInt32.bitWidth - staleness.leadingZeroBitCount - 3)
    let rounded = (staleness >> shift) << shift
    return state.withLock { state in
      if let lease = state.leases[rounded] { return lease }
      let lease = Lease()
      if state.time > 0 { lease.extend(to: state.time + UInt64(rounded)) }
      state.leases[rounded] = lease
      return lease
    }
  }
}
