import Dispatch
import Platform
import Storage
import Synchronization

/// Classes of changes that clients can subscribe to, as Redis's parameter `notify-keyspace-events` names them by letters.
package struct RESPEventClasses: OptionSet, Sendable, CustomStringConvertible {
  package let rawValue: Int

  package init(rawValue: Int) { self.rawValue = rawValue }

  /// On the channels of keys.
  static let keyspace = RESPEventClasses(letter: "K")
  /// On the channels of events.
  static let keyevent = RESPEventClasses(letter: "E")
  /// Deletes, and expiries that are set or removed.
  static let generic = RESPEventClasses(letter: "g")
  /// Values that are set.
  static let strings = RESPEventClasses(letter: "$")
  /// Entries that expire.
  static let expired = RESPEventClasses(letter: "x")
  /// All but those that Redis leaves out: new keys and misses.
  private static let all = "g$lshzxetd".reduce(RESPEventClasses()) { $0.union(RESPEventClasses(letter: $1)) }

  /// All letters, in the order that Redis shows. Larder has events for some of them.
  private static let letters = Array("g$lshzxetdnKEm")

  private init(letter: Character) {
    guard let index = Self.letters.firstIndex(of: letter) else { preconditionFailure("\(letter) is not a class") }
    self.init(rawValue: 1 << index)
  }

  /// - Returns: Nil if there is any other letter.
  package init?(_ text: String) {
    self = []
    for letter in text {
      guard letter == "A" || Self.letters.contains(letter) else { return nil }
      formUnion(letter == "A" ? Self.all : RESPEventClasses(letter: letter))
    }
  }

  package var description: String {
    let rest = isSuperset(of: Self.all) ? subtracting(Self.all.union(RESPEventClasses(letter: "n"))) : self
    let letters = Self.letters.enumerated().filter { rest.rawValue >> $0.offset & 1 != 0 }.map(\.element)
    return (isSuperset(of: Self.all) ? "A" : "") + String(letters)
  }

  /// Whether anything is published.
  var areAny: Bool { contains(.keyspace) || contains(.keyevent) }
}

/// Publishes changes to the stores behind databases, no matter which client made them: Redis's keyspace notifications.
///
/// Watches each store as for any other client, and publishes its changes on a queue once they are durable. Used by any
/// thread.
final class RESPEvents: Sendable {
  private struct State {
    var classes: RESPEventClasses
    var watches: [StoreName: RESPStoreWatch] = [:]
  }

  private let state: Lock<State>
  private let isActive: Atomic<Bool>
  private let databases: RESPDatabases
  fileprivate let channels: RESPChannels
  private let maxFeedBytes: Int
  fileprivate let queue = DispatchQueue(label: "larder.events")

  init(_ classes: RESPEventClasses, _ databases: RESPDatabases, _ channels: RESPChannels, _ limits: ServerLimits) {
    state = Lock(State(classes: classes))
    isActive = Atomic(classes.areAny)
    (self.databases, self.channels, maxFeedBytes) = (databases, channels, limits.maxChangeFeedBytes)
  }

  var classes: RESPEventClasses { state.withLock { $0.classes } }

  /// Publishes other changes from now on.
  func change(_ classes: RESPEventClasses, _ stores: StoreCatalog) {
    guard classes.areAny else { return stop() }
    state.withLock { $0.classes = classes }
    isActive.store(true, ordering: .releasing)
    watchStores(stores)
  }

  /// Publishes no changes any more.
  func stop() {
    isActive.store(false, ordering: .releasing)
    let ended = state.withLock { state in
      defer { state = State(classes: []) }
      return Array(state.watches.values)
    }
    for watch in ended { watch.end() }
  }

  /// Begins to watch the stores of databases that are not watched yet. Call it without a store's lock.
  func watchStores(_ stores: StoreCatalog) {
    guard isActive.load(ordering: .acquiring) else { return }
    let found = Dictionary(stores.list().map { ($0.name, $0) }) { first, _ in first }
    var numbers: [StoreName: [Int]] = [:]
    for number in databases.numbers {
      if let name = databases.store(number, in: stores) { numbers[name, default: []].append(number) }
    }
    for (name, numbers) in numbers {
      guard let store = found[name] else { continue }
      state.withLock { state in
        guard state.classes.areAny, state.watches[name]?.isOn(store) != true else { return }
        let watch = RESPStoreWatch(store, of: numbers, self)
        state.watches[name] = watch
        watch.begin(store, maxFeedBytes: maxFeedBytes)
      }
    }
  }

  fileprivate func didEnd(_ watch: RESPStoreWatch, on name: StoreName) {
    state.withLock { state in if state.watches[name] === watch { state.watches[name] = nil } }
  }
}

/// Publishes the changes of one store.
///
/// Safe because what changes is atomic, or used on the queue of the events only.
private final class RESPStoreWatch: @unchecked Sendable {
  private enum EventKind: String {
    case set, expire, persist, del, expired

    var eventClass: RESPEventClasses {
      switch self {
      case .set: .strings
      case .expire, .persist, .del: .generic
      case .expired: .expired
      }
    }
  }

  private struct Event {
    let kind: EventKind
    let key: [UInt8]
  }

  private enum Progress {
    /// More changes can be read at once.
    case partial
    /// There are no more changes before this revision, or it is not durable.
    case complete(before: UInt64)
    case dropped
  }

  /// The store, until the end: its feed keeps this watch.
  private var store: Store?
  private let storeName: StoreName
  private let id: ObjectIdentifier
  private let databases: [Int]
  private let events: RESPEvents
  /// Where the next change is in the feed.
  private var position: UInt64 = 0
  private let isScheduled = Atomic(false)

  /// How many changes are read at a time, because the store is locked meanwhile.
  private static let maxChangesPerAccess = 256

  init(_ store: Store, of databases: [Int], _ events: RESPEvents) {
    (self.store, storeName, id) = (store, store.name, ObjectIdentifier(store))
    (self.databases, self.events) = (databases, events)
  }

  func isOn(_ store: Store) -> Bool { id == ObjectIdentifier(store) }

  /// Begins the watch. What is changed after the call is published. Call it once.
  func begin(_ store: Store, maxFeedBytes: Int) {
    let gatesReplies = store.commitWriter?.gatesReplies ?? false
    let end = store.access { map -> UInt64? in
      guard !map.isDropped else { return nil }
      return map.beginWatch(limit: maxFeedBytes, notifiesImmediately: !gatesReplies).end
    }
    events.queue.async {
      guard let end else { return self.storeWasDropped() }
      self.position = end
      self.publishChanges()
    }
  }

  func end() {
    events.queue.async {
      self.store?.access { map in if !map.isDropped { map.endWatch() } }
      self.store = nil
    }
  }

  private func storeWasDropped() {
    store = nil
    events.didEnd(self, on: storeName)
  }

  private func schedule() {
    if !isScheduled.exchange(true, ordering: .acquiringAndReleasing) { events.queue.async { self.publishChanges() } }
  }

  private func publishChanges() {
    isScheduled.store(false, ordering: .releasing)
    while let store {
      var found: [Event] = []
      let progress = readChanges(of: store, into: &found)
      let classes = events.classes
      for event in found where classes.contains(event.kind.eventClass) { publish(event, classes) }
      switch progress {
      case .partial: continue
      case .complete(let revision):
        // If clients must never see what a crash can undo, the feed notifies its waiters of expiries only.
        guard let commitWriter = store.commitWriter, commitWriter.gatesReplies else { return }
        if commitWriter.wait(for: revision, self) || !commitWriter.isDurable(revision) { return }
      case .dropped: storeWasDropped()
      }
    }
  }

  /// Reads some changes.
  private func readChanges(of store: Store, into found: inout [Event]) -> Progress {
    let visibleRevision = store.commitWriter?.visibleRevision ?? .max
    let (position, events, progress) = store.accessInTurn { [position] map -> (UInt64, [Event], Progress) in
      guard !map.isDropped, let feed = map.feed else { return (position, [], .dropped) }
      var events: [Event] = []
      // What was dropped from the feed since is lost, as are messages to slow clients.
      var next = max(position, feed.start)
      var progress = Progress.complete(before: map.revisions.last + 1)
      feed.visit(from: next) { change in
        if change.revision > visibleRevision {
          progress = .complete(before: change.revision)
          return false
        }
        guard events.count < Self.maxChangesPerAccess else {
          progress = .partial
          return false
        }
        Self.append(change, to: &events)
        next += UInt64(change.byteCount)
        return true
      }
      if case .complete = progress { map.addChangeWaiter(self) }
      return (next, events, progress)
    }
    (self.position, found) = (position, events)
    return progress
  }

  private static func append(_ change: ChangeView, to events: inout [Event]) {
    let key = unsafe Array(change.key)
    switch change.kind {
    case .single, .list:
      if change.kind == .single, change.effect != .expiry { events.append(Event(kind: .set, key: key)) }
      // An expiry that stays as it was is no event.
      if change.effect == .value { return }
      if change.expiry != 0 {
        events.append(Event(kind: .expire, key: key))
      } else if change.effect == .expiry {
        events.append(Event(kind: .persist, key: key))
      }
    case .delete: events.append(Event(kind: .del, key: key))
    case .expiry: events.append(Event(kind: .expired, key: key))
    case .deleteAll: break
    }
  }

  private func publish(_ event: Event, _ classes: RESPEventClasses) {
    let name = event.kind.rawValue
    for database in databases {
      if classes.contains(.keyspace) {
        let channel = Array("__keyspace@\(database)__:".utf8) + event.key
        events.channels.publish(Array(name.utf8), to: channel, about: storeName)
      }
      if classes.contains(.keyevent) {
        let channel = Array("__keyevent@\(database)__:\(name)".utf8)
        events.channels.publish(event.key, to: channel, about: storeName)
      }
    }
  }
}

extension RESPStoreWatch: ChangeWaiter, DurabilityWaiter {
  var listener: ObjectIdentifier { ObjectIdentifier(self) }
  func storeDidChange() { schedule() }
  func durabilityDidAdvance() { schedule() }
}
