import Storage

/// The connections of one worker that wait for changes, by store. Owned by the worker's `EventLoop`.
struct WatcherTable {
  private struct Watchers {
    /// Keeps the store alive, because its identity is the key of the table.
    let store: Store
    let notifier: ChangeNotifier
    var tokens: Set<UInt64> = []
  }

  private var watchers: [ObjectIdentifier: Watchers] = [:]
  private let mailbox: Mailbox

  init(_ mailbox: Mailbox) { self.mailbox = mailbox }

  /// Adds a connection that watches a store.
  /// - Returns: what wakes the worker when the store changes.
  mutating func add(_ token: ConnectionToken, watching store: Store) -> ChangeNotifier {
    let id = ObjectIdentifier(store)
    let notifier = watchers[id]?.notifier ?? ChangeNotifier(store, mailbox)
    watchers[id, default: Watchers(store: store, notifier: notifier)].tokens.insert(token.number)
    return notifier
  }

  /// Removes and returns the connections that wait for changes of a store.
  mutating func removeWatchers(of store: ObjectIdentifier) -> [ConnectionToken] {
    (watchers.removeValue(forKey: store)?.tokens ?? []).map(ConnectionToken.init)
  }

  /// Removes a connection that is closed. A store without watchers is not kept, because it may have been dropped.
  mutating func remove(_ token: ConnectionToken) {
    for id in Array(watchers.keys) {
      watchers[id]?.tokens.remove(token.number)
      if watchers[id]?.tokens.isEmpty == true { watchers[id] = nil }
    }
  }
}

/// Notifies a worker of changes in one store. The store's feed and commit writer keep it; it keeps neither.
final class ChangeNotifier: Sendable {
  private let store: ObjectIdentifier
  private let mailbox: Mailbox

  fileprivate init(_ store: Store, _ mailbox: Mailbox) {
    self.store = ObjectIdentifier(store)
    self.mailbox = mailbox
  }
}

extension ChangeNotifier: ChangeWaiter, DurabilityWaiter {
  var listener: ObjectIdentifier { ObjectIdentifier(mailbox) }
  func storeDidChange() { mailbox.post(changedStore: store) }
  func durabilityDidAdvance() { mailbox.post(changedStore: store) }
}
