/// What a timed cache remembers: values by their keys, each until its time is up.
///
/// A value is remembered only if no change was under way at any time since it was asked for. Else a slow reader could bring back what a
/// writer replaced meanwhile.
final class TimedMemory<T: Sendable>: Sendable {
  typealias Instant = ContinuousClock.Instant

  private struct State {
    var values: [EntryKey: (value: StoredValue<T>, ends: Instant)] = [:]
    /// How many changes are under way.
    var changes = 0
    /// How many changes have begun and ended.
    var epoch: UInt64 = 0
  }

  private let state = Locked(State())
  private let lifetime: Duration
  private let limit: Int
  private let now: @Sendable () -> Instant

  init(lifetime: Duration, limit: Int, now: @escaping @Sendable () -> Instant) {
    self.lifetime = lifetime
    self.limit = limit
    self.now = now
  }

  /// What is remembered of a key, and the epoch to give back with what is found out otherwise.
  func value(of key: String) -> (value: StoredValue<T>?, epoch: UInt64) {
    let now = now()
    let key = EntryKey(key)
    return state.withLock { state in
      guard let (value, ends) = state.values[key] else { return (nil, state.epoch) }
      if now < ends { return (value, state.epoch) }
      state.values[key] = nil
      return (nil, state.epoch)
    }
  }

  func remember(_ value: StoredValue<T>, of key: String, since epoch: UInt64) {
    let now = now()
    state.withLock { state in
      guard state.changes == 0, state.epoch == epoch else { return }
      if state.values.count >= limit { makeRoom(in: &state, now) }
      state.values[EntryKey(key)] = (value, now + lifetime)
    }
  }

  /// Forgets keys, nil for all, of which nothing is remembered until the change ends.
  func beginChange(_ keys: [String]?) {
    state.withLock { state in
      state.changes += 1
      state.epoch += 1
      if let keys {
        for key in keys { state.values[EntryKey(key)] = nil }
      } else {
        state.values = [:]
      }
    }
  }

  func endChange() {
    state.withLock { state in
      state.changes -= 1
      state.epoch += 1
    }
  }

  /// Drops what has ended or, when that is less than half, everything: O(n), but at most once for n/2 that are remembered.
  private func makeRoom(in state: inout State, _ now: Instant) {
    state.values = state.values.filter { now < $0.value.ends }
    if state.values.count > limit / 2 { state.values = [:] }
  }
}
