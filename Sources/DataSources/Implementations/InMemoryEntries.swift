import Basics

/// The entries of a source in memory, and those who watch them. A plain value; its owner locks it.
///
/// A write is enclosed in `beginWrite` and `endWrite`. All its changes have one revision.
@usableFromInline struct InMemoryEntries<T: Sendable>: Sendable {
  /// Returns the time since the source was created.
  typealias Clock = @Sendable () -> Duration
  typealias Continuation = AsyncThrowingStream<KeyValueChange<T>, any Error>.Continuation

  /// What is under a key.
  @usableFromInline struct Slot: Sendable {
    @usableFromInline let value: StoredValue<T>
    let revision: UInt64
    /// When the entry expires: the time since the source was created; nil for never.
    @usableFromInline let expiry: Duration?

    func entry(of key: String, _ now: Clock) -> KeyValueEntry<T> {
      let lifetime = expiry.map { max(.zero, $0 - now()) }
      return KeyValueEntry(key: key, value: value, revision: revision, expiresIn: lifetime)
    }
  }

  /// All entries, and expired ones that were not removed yet.
  @usableFromInline private(set) var slots: [EntryKey: Slot] = [:]
  /// The keys in order; nil if a key has been added or removed since they were sorted.
  private var sortedKeys: [EntryKey]?
  private(set) var expiries = DeadlineQueue<Duration, EntryKey>()
  private var revision: UInt64 = 0
  /// Whether the current write has changed something.
  private var hasWritten = false
  private(set) var watches: [UInt64: Watch] = [:]
  private var lastWatch: UInt64 = 0
  /// Watches whose consumers are too slow, found in the current write.
  private var overrun: [Continuation] = []

  struct Watch: Sendable {
    let prefix: String
    let continuation: Continuation
  }

  init() {}

  // MARK: - Reading

  /// Returns what is under a key; nil if there is nothing, or it has expired.
  func slot(_ key: EntryKey, _ now: Clock) -> Slot? {
    guard let slot = slots[key] else { return nil }
    if let expiry = slot.expiry, expiry <= now() { return nil }
    return slot
  }

  /// Returns the keys of all entries in order.
  mutating func keysInOrder(_ now: Clock) -> [EntryKey] {
    removeExpired(now)
    if let sortedKeys { return sortedKeys }
    let keys = slots.keys.sorted()
    sortedKeys = keys
    return keys
  }

  private mutating func removeExpired(_ now: Clock) {
    guard expiries.first != nil else { return }
    let now = now()
    while let (_, key) = expiries.popFirst(through: now) {
      // A later write may have changed the expiry.
      if let expiry = slots[key]?.expiry, expiry <= now { removeSlot(key) }
    }
  }

  @discardableResult
  private mutating func removeSlot(_ key: EntryKey) -> Bool {
    guard slots.removeValue(forKey: key) != nil else { return false }
    sortedKeys = nil
    return true
  }

  // MARK: - Writing

  mutating func beginWrite(_ now: Clock) {
    removeExpired(now)
    hasWritten = false
  }

  /// - Returns: The watches that have ended, because their consumers are too slow.
  mutating func endWrite() -> [Continuation] {
    guard !overrun.isEmpty else { return [] }
    defer { overrun = [] }
    return overrun
  }

  /// The revision of what the current write has changed; nil if it has changed nothing.
  var writtenRevision: UInt64? { hasWritten ? revision : nil }

  private mutating func willWrite() {
    if !hasWritten { revision += 1 }
    hasWritten = true
  }

  mutating func put(_ value: StoredValue<T>, _ key: EntryKey, expiresIn lifetime: Duration?, _ now: Clock) {
    willWrite()
    let slot = Slot(value: value, revision: revision, expiry: lifetime.map { now() + $0 })
    if slots.updateValue(slot, forKey: key) == nil { sortedKeys = nil }
    if let expiry = slot.expiry { schedule(key, expiry) }
    guard !watches.isEmpty else { return }
    report(
      .put(KeyValueEntry(key: key.text, value: value, revision: revision, expiresIn: lifetime)), of: key)
  }

  mutating func remove(_ key: EntryKey) {
    guard removeSlot(key) else { return }
    willWrite()
    if !watches.isEmpty { report(.delete(key: key.text), of: key) }
  }

  /// - Returns: The old entries, which the caller should release after its lock.
  mutating func removeAll() -> [EntryKey: Slot] {
    guard !slots.isEmpty else { return [:] }
    willWrite()
    defer { (slots, sortedKeys, expiries) = ([:], nil, DeadlineQueue()) }
    if !watches.isEmpty { report(.deleteAll, of: nil) }
    return slots
  }

  private mutating func schedule(_ key: EntryKey, _ expiry: Duration) {
    expiries.insert(key, at: expiry)
    guard expiries.count > 2 * slots.count + 64 else { return }
    // Most of them are of entries that were written again.
    expiries = DeadlineQueue()
    for (key, slot) in slots { if let expiry = slot.expiry { expiries.insert(key, at: expiry) } }
  }

  // MARK: - Watching

  mutating func addWatch(_ prefix: String, _ continuation: Continuation) -> UInt64 {
    lastWatch += 1
    watches[lastWatch] = Watch(prefix: prefix, continuation: continuation)
    return lastWatch
  }

  mutating func removeWatch(_ id: UInt64) { watches[id] = nil }

  /// - Parameter key: The changed key; nil for all.
  private mutating func report(_ change: KeyValueChange<T>, of key: EntryKey?) {
    for (id, watch) in watches where key?.hasPrefix(watch.prefix) != false {
      guard case .dropped = watch.continuation.yield(change) else { continue }
      watches[id] = nil
      overrun.append(watch.continuation)
    }
  }
}
