/// What a store that is watched does beside: every change is noted in its feed.
extension EntryMap {
  /// Begins to watch. Pair it with `endWatch`.
  /// - Parameters:
  ///   - limit: bytes of changes that the feed keeps.
  ///   - tellsAtOnce: whether changes may be told of before a journal has them on the disk.
  package mutating func beginWatch(limit: Int, tellsAtOnce: Bool) -> ChangeFeed {
    var feed = feed.take() ?? ChangeFeed(after: revision, limit: limit, tellsAtOnce: tellsAtOnce)
    feed.addWatcher()
    self.feed = feed
    notesChanges = true
    return feed
  }

  package mutating func endWatch() { feed?.removeWatcher() }

  /// Forgets the feed if nobody has watched for a while.
  package mutating func forgetFeed(now: UInt64) {
    guard feed?.isForgotten(now: now) == true else { return }
    feed = nil
    notesChanges = isJournaled
  }

  /// Has `waiter` told, once, when there are more changes or the store is dropped.
  package mutating func awaitChange(_ waiter: any ChangeWaiter) { feed?.wait(waiter) }

  /// Who is to be told of changes now, by the caller, once it has let go of the store.
  package mutating func takeChangeWaiters() -> [any ChangeWaiter] { feed?.takeWaiters() ?? [] }

  /// Whether there is somebody to be told of changes.
  @inline(__always)
  package var hasNews: Bool { notesChanges && feed?.hasNews == true }
}
