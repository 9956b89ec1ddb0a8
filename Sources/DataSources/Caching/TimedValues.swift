/// Values by key that expire: the content of a timed cache.
///
/// A value is only inserted if no change of its key was in progress at any time since the read of the value began.
/// Otherwise a slow reader could bring back a value that a writer has replaced meanwhile.
@usableFromInline final class TimedValues: Sendable {
  enum Found {
    case fresh(CachedContent)
    /// A value that has expired, but may still be returned.
    case stale(CachedContent)
    case nothing
  }

  private struct Timed {
    let content: CachedContent
    /// When it expires: the time since the cache was created.
    let expiry: Duration
  }

  private struct State {
    var values: RecentValues<EntryKey, Timed>
    var epochs = KeyEpochs()
  }

  private let state: LockedValue<State>
  private let lifetime: Duration
  private let extraTime: Duration
  /// Returns the time since the cache was created.
  private let age: @Sendable () -> Duration

  init<C: Clock<Duration>>(lifetime: Duration, extraTime: Duration, limit: Int, clock: C) {
    self.lifetime = lifetime
    self.extraTime = extraTime
    state = LockedValue(State(values: RecentValues(limit: limit)))
    let start = clock.now
    age = { start.duration(to: clock.now) }
  }

  @usableFromInline func freshContent(of key: EntryKey) -> CachedContent? {
    if case .fresh(let content) = find(key) { content } else { nil }
  }

  func find(_ key: EntryKey) -> Found {
    let now = age()
    return state.withLock { state in
      guard let timed = state.values.value(of: key) else { return .nothing }
      if now < timed.expiry { return .fresh(timed.content) }
      if now < timed.expiry + extraTime { return .stale(timed.content) }
      state.values.remove(key)
      return .nothing
    }
  }

  /// Returns what the caller passes to `insert` after it has read the value elsewhere.
  func epoch(of key: EntryKey) -> KeyEpochs.Epoch {
    state.withLock { $0.epochs.epoch(of: .key(key)) }
  }

  func insert(_ content: CachedContent, for key: EntryKey, readAt epoch: KeyEpochs.Epoch) {
    let expiry = age() + lifetime
    state.withLock { state in
      guard state.epochs.isCurrent(epoch, of: .key(key)) else { return }
      state.values.insert(Timed(content: content, expiry: expiry), for: key)
    }
  }

  /// Drops what is cached for a key, if it is what the caller thinks.
  func remove(_ key: EntryKey, if isExpected: (CachedContent) -> Bool) {
    state.withLock { state in
      if let content = state.values.value(of: key)?.content, isExpected(content) { state.values.remove(key) }
    }
  }

  /// Runs a change and drops the cached values that it may change, even if it fails: a failed change may have been
  /// executed in part. Until the change ends, none of them is inserted.
  func changing<R: Sendable>(_ scope: KeyScope, _ change: () async throws -> R) async throws -> R {
    drop(scope) { $0.beginChange(scope) }
    defer { state.withLock { $0.epochs.endChange(scope) } }
    return try await change()
  }

  func drop(_ scope: KeyScope) {
    drop(scope) { $0.advance(scope) }
  }

  private func drop(_ scope: KeyScope, _ count: (inout KeyEpochs) -> Void) {
    state.withLock { state in
      count(&state.epochs)
      switch scope {
      case .key(let key): state.values.remove(key)
      case .keys(let keys): for key in keys { state.values.remove(key) }
      case .all: state.values.removeAll()
      }
    }
  }
}
