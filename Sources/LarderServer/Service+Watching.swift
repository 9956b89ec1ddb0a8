import Storage

/// Watches that wait for changes.
extension Service {
  /// The connections of this worker that wait for changes of one store.
  struct Watchers {
    /// Keeps the store, whose identity they are found by.
    let store: Store
    let bell: WatchBell
    var tokens: Set<UInt64> = []
  }

  /// The bell that is rung for a connection when there is more for a watch to tell; nil for another answer.
  mutating func watchBell(for answer: Answer, _ connection: inout Connection) -> WatchBell? {
    guard answer.isWatch else { return nil }
    connection.hasWatched = true
    let (store, id) = (answer.store, ObjectIdentifier(answer.store))
    let bell = watchers[id]?.bell ?? WatchBell(store, mailbox)
    watchers[id, default: Watchers(store: store, bell: bell)].tokens.insert(connection.token.number)
    return bell
  }

  /// Takes those who wait for changes of a store, for there are some.
  mutating func takeWatchers(of store: ObjectIdentifier) -> [ConnectionToken] {
    (watchers.removeValue(forKey: store)?.tokens ?? []).map(ConnectionToken.init)
  }

  /// Has the watches of a connection look for changes.
  /// - Parameter store: of which store; nil for all.
  func wakeWatches(of store: ObjectIdentifier?, _ connection: inout Connection) {
    for index in connection.answers.indices {
      guard store == nil || ObjectIdentifier(connection.answers[index].store) == store else { continue }
      connection.answers[index].wake()
    }
  }

  /// Forgets a connection that has ended.
  mutating func forgetWatcher(_ connection: borrowing Connection) {
    guard connection.hasWatched else { return }
    for id in Array(watchers.keys) {
      watchers[id]?.tokens.remove(connection.token.number)
      // A store that is dropped later is not to be kept by those who once watched it.
      if watchers[id]?.tokens.isEmpty == true { watchers[id] = nil }
    }
  }

  /// Whether the watches of a connection need not hold up the end of the server: no changes are to come that they have not told of.
  func hasNothingToTell(_ connection: borrowing Connection) -> Bool {
    watchesMayEnd ? connection.answers.allSatisfy { $0.isAtEnd } : connection.answers.isEmpty
  }
}
