import DataSources
import Platform

/// The entries of a store that were read or written, until the store's changes contradict them.
///
/// An entry is stored only if no newer change of its key is known, and removed when one becomes known. So the cache is
/// right up to the changes that are still on their way, however calls and changes overtake each other: the store's
/// revisions order them. A *track* is a time without a missing change; a call that has begun before the track stores
/// nothing. The feed reports changes, and for how long the cache may be *trusted*.
///
/// The lock is held briefly, and never across an `await`.
final class LiveCache: Sendable {
  /// The state of a key that calls in progress need.
  private struct CallsInProgress {
    var count = 0
    /// The newest change of the key that became known since the first of the calls began; 0 for none, `.max` for one of
    /// unknown revision.
    var newestChange: UInt64 = 0
  }

  private struct State {
    var slots: CacheSlots
    var calls: [EntryKey: CallsInProgress] = [:]
    /// The number of the track, and whether it lasts.
    var track: UInt64 = 0
    var isTracking = false
    /// The revision up to which all changes are known.
    var knownThrough: UInt64 = 0
    /// The revision at which all entries were deleted.
    var deletedThrough: UInt64 = 0
    /// Until when the cache is trusted, in nanoseconds of the monotonic clock.
    var trustedUntil: UInt64 = 0
    /// The number of the connection that changes arrive on.
    var connection: UInt64 = 0

    mutating func didChange(_ key: EntryKey, revision: UInt64) {
      slots.remove(key, olderThan: revision)
      if let call = calls[key] { calls[key]?.newestChange = max(call.newestChange, revision) }
    }

    /// Forgets everything.
    /// - Returns: What was known, to be released after the lock.
    mutating func startAgain(isTracking: Bool) -> CacheSlots {
      let old = slots
      slots = CacheSlots(limit: old.limit)
      track += 1
      self.isTracking = isTracking
      (knownThrough, deletedThrough) = (0, 0)
      return old
    }
  }

  private let state: Lock<State>
  private let prefix: String

  init(prefix: String, limit: Int) {
    self.prefix = prefix
    state = Lock(State(slots: CacheSlots(limit: limit)))
  }

  /// Whether values are cached for a key.
  func covers(_ key: String) -> Bool { key.utf8.starts(with: prefix.utf8) }

  var isTrusted: Bool {
    let now = monotonicNanoseconds()
    return state.withLock { now < $0.trustedUntil }
  }

  var count: Int { state.withLock { $0.slots.count } }

  // MARK: Reading

  /// Returns what is cached for a key, if the cache is trusted.
  func trustedContent(of key: String) -> CachedContent? {
    let key = EntryKey(key)
    let now = monotonicNanoseconds()
    return state.withLock { now < $0.trustedUntil ? $0.slots.use(key, now: now)?.content : nil }
  }

  /// Returns what keys have at one moment, if the cache is trusted and has all of them.
  ///
  /// What was read or written after the newest known change is not combined with other entries: the same commit may have
  /// changed these, too.
  func trustedContents(of keys: [String]) -> [CachedContent]? {
    let keys = keys.map { EntryKey($0) }
    let now = monotonicNanoseconds()
    return state.withLock { state in
      guard now < state.trustedUntil else { return nil }
      var contents: [CachedContent] = []
      for key in keys {
        guard let entry = state.slots.use(key, now: now), entry.revision <= state.knownThrough || keys.count == 1 else {
          return nil
        }
        contents.append(entry.content)
      }
      return contents
    }
  }

  /// Returns what is cached for a key, even if it may be out of date.
  func content(of key: String) -> CachedContent? {
    let key = EntryKey(key)
    let now = monotonicNanoseconds()
    return state.withLock { $0.slots.use(key, now: now)?.content }
  }

  // MARK: Calls

  /// Records that a call for keys begins, before it is sent. `end` must follow.
  /// - Returns: The track, for `store`.
  func begin(_ keys: [String]) -> UInt64 {
    let keys = keys.map { EntryKey($0) }
    return state.withLock { state in
      for key in keys { state.calls[key, default: CallsInProgress()].count += 1 }
      return state.track
    }
  }

  func end(_ keys: [String]) {
    let keys = keys.map { EntryKey($0) }
    state.withLock { state in
      for key in keys {
        state.calls[key]?.count -= 1
        if state.calls[key]?.count == 0 { state.calls[key] = nil }
      }
    }
  }

  /// Stores what a call has read, or has written, of a key, unless that is known to be out of date.
  /// - Parameters:
  ///   - entry: The entry, with the revision 0 if there was none.
  ///   - track: What `begin` returned.
  func store(_ entry: CacheSlots.Entry, for key: String, readOn track: UInt64) {
    let key = EntryKey(key)
    state.withLock { state in
      guard state.isTracking, state.track == track, state.calls[key]?.newestChange ?? 0 <= entry.revision,
        entry.revision == 0 || entry.revision > state.deletedThrough
      else { return }
      state.slots.insert(entry, for: key)
    }
  }

  /// Records that a call of this process has written keys.
  /// - Parameter revision: The revision of the new entries; nil if it is not known, or if it is not known whether they
  ///   were written.
  func didWrite(_ keys: [String], revision: UInt64?) {
    let keys = keys.map { EntryKey($0) }
    state.withLock { state in
      for key in keys { state.didChange(key, revision: revision ?? .max) }
    }
  }

  /// Records that a call of this process has deleted all entries, or may have.
  func didDeleteAll() {
    state.withLock { state in
      state.slots.removeAll(olderThan: .max)
      for key in Array(state.calls.keys) { state.calls[key]?.newestChange = .max }
    }
  }

  // MARK: The feed

  /// Forgets everything, and begins a track: all changes after a revision will be reported.
  func beginTrack(after revision: UInt64) {
    // The old contents are released after the lock.
    _ = state.withLock { state in
      defer { state.knownThrough = revision }
      return state.startAgain(isTracking: true)
    }
  }

  /// Forgets everything, and ends the track: changes may be missing.
  func endTrack() {
    _ = state.withLock { $0.startAgain(isTracking: false) }
  }

  /// Records that changes arrive, and that all earlier ones have.
  /// - Returns: The connection, for `trust`.
  func connect() -> UInt64 {
    state.withLock { $0.connection }
  }

  /// Trusts the cache for longer.
  /// - Parameter time: In nanoseconds of the monotonic clock.
  func trust(until time: UInt64, on connection: UInt64) {
    state.withLock { state in
      if state.connection == connection { state.trustedUntil = time }
    }
  }

  /// Records that no changes arrive until `connect`.
  func disconnect() {
    state.withLock { state in
      state.connection += 1
      state.trustedUntil = 0
    }
  }

  /// Removes what a commit contradicts.
  func apply(_ commit: Commit) {
    state.withLock { state in
      for change in commit.changes {
        switch change {
        case .put(let entry): state.didChange(EntryKey(entry.key), revision: commit.revision)
        case .delete(let key): state.didChange(EntryKey(key), revision: commit.revision)
        case .deleteAll:
          state.deletedThrough = max(state.deletedThrough, commit.revision)
          state.slots.removeAll(olderThan: commit.revision)
        }
      }
      state.knownThrough = max(state.knownThrough, commit.revision)
    }
  }
}
