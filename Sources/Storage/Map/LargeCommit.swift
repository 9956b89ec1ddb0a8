/// A commit of so many changes that it is made in slices, between which others use the map.
///
/// Between two slices the map is diverted: readers see the snapshot that was taken before the first slice, and writers
/// get `commitPending` before they change anything. So a large commit is as atomic as a small one, although the store's
/// lock is never held for long.
///
///     try map.beginLargeCommit()
///     repeatedly, with the store locked: map.beginSlice(); changes …; map.endSlice()
///     map.finishLargeCommit()
///
/// Owned by one `EntryMap` and used under its store's lock.
struct LargeCommit {
  /// What readers see. It is pinned until the end.
  let snapshot: Snapshot
  /// The root of the snapshot's tree.
  let root: UInt32
  let contents: MapContents
  /// Those of the snapshot during a slice, and those of the commit between two slices.
  var hidden: MapRevisions
  /// What is called at the end.
  var waiters: [@Sendable () -> Void] = []
}

/// What the end of a large commit leaves to its caller, who does it without the store's lock.
package struct LargeCommitEnd: Sendable {
  /// The map's revision after the commit, which it had before if nothing was changed.
  package let revision: UInt64
  /// Watchers to notify of the changes.
  package let changeWaiters: [any ChangeWaiter]
  /// What waited for the end.
  package let waiters: [@Sendable () -> Void]
  /// When the next entry expires, if that is sooner than before.
  package let soonerExpiry: UInt64?
}

extension EntryMap {
  /// Whether a large commit has begun, and others see the map as it was before: see `LargeCommit`.
  package var isDiverted: Bool { attention.contains(.diverted) }

  /// Begins a large commit, and diverts the map.
  /// - Throws: `storeDropped`, or `commitPending` if another one has begun.
  package mutating func beginLargeCommit() throws(StorageError) {
    guard !isDropped else { throw removalError }
    guard largeCommit == nil else { throw .commitPending }
    let contents = contents
    let root = order.root
    largeCommit = LargeCommit(
      snapshot: addSnapshot(isPinned: true), root: root, contents: contents, hidden: revisions)
    changes.beginLargeCommit()
    divert(true)
  }

  /// Lets the caller see and change the map itself, until `endSlice` under the same acquisition of the lock.
  package mutating func beginSlice() {
    precondition(isDiverted)
    divert(false)
    exchangeRevisions()
    indexes?.deferChanges(after: largeCommit?.snapshot.revision)
  }

  package mutating func endSlice() {
    indexes?.deferChanges(after: nil)
    exchangeRevisions()
    divert(true)
  }

  private mutating func divert(_ isDiverted: Bool) {
    if isDiverted { attention.insert(.diverted) } else { attention.remove(.diverted) }
    changes.refuseWrites(isDiverted)
  }

  private mutating func exchangeRevisions() {
    guard largeCommit != nil else { return }
    revisions.exchange(for: &largeCommit!.hidden)
  }

  /// Accepts the changes of the commit, for which there is space, so that they are not checked any more.
  /// - Parameter bytes: The size of keys and values.
  package mutating func reserveLargeCommit(operations: Int, bytes: Int) {
    changes.reserveLargeCommit(operations: operations, bytes: bytes)
  }

  /// Hands over the record of the large commit, which the caller seals and gives back with `finishLargeCommit`.
  package mutating func takeLargeCommit(into buffer: inout CommitBuffer) { changes.takeLargeCommit(into: &buffer) }

  /// Ends the large commit. Everybody sees its changes now. Does nothing to a map that was dropped.
  package mutating func finishLargeCommit(_ buffer: inout CommitBuffer) -> LargeCommitEnd {
    guard let commit = largeCommit else {
      return LargeCommitEnd(revision: revisions.last, changeWaiters: [], waiters: [], soonerExpiry: nil)
    }
    precondition(indexes?.hasDeferredChange != true, "the indexes lack a change")
    divert(false)
    exchangeRevisions()
    largeCommit = nil
    changes.finishLargeCommit(&buffer)
    unpin(commit.snapshot)
    end(commit.snapshot)
    return LargeCommitEnd(
      revision: revisions.last, changeWaiters: takeNotifiedWaiters(), waiters: commit.waiters,
      soonerExpiry: takeSoonerExpiry())
  }

  // MARK: Indexes

  /// Makes a part of a change of the indexes that a slice has deferred, because it takes long.
  /// - Returns: Whether there is more.
  package mutating func continueIndexChange(now: UInt64) -> Bool {
    guard let indexes, indexes.hasDeferredChange else { return false }
    if indexes.continueChange(in: arena.records) { return true }
    revisions.didChange()
    if limitBytes != nil { enforceLimit(after: revisions.last, overwriting: nil, now: now) }
    return false
  }

  /// Completes the change of an entry that was removed to make room, or because it has expired.
  func completeIndexChange() {
    guard let indexes else { return }
    while indexes.hasDeferredChange { _ = indexes.continueChange(in: arena.records) }
  }

  // MARK: Waiting

  /// Registers what is called at the end of the large commit, without the store's lock.
  /// - Precondition: The map is diverted.
  package mutating func addCommitWaiter(_ waiter: @escaping @Sendable () -> Void) {
    precondition(isDiverted)
    largeCommit?.waiters.append(waiter)
  }

  /// Removes and returns what waits for the end of the large commit, because the store is being dropped.
  mutating func drainCommitWaiters() -> [@Sendable () -> Void] {
    let waiters = largeCommit?.waiters ?? []
    largeCommit?.waiters = []
    return waiters
  }

  /// Forgets the large commit, because the map is dropped.
  mutating func abandonLargeCommit() {
    guard largeCommit != nil else { return }
    divert(false)
    exchangeRevisions()
    largeCommit = nil
    var none = CommitBuffer()
    changes.finishLargeCommit(&none)
  }

  /// Checks that entries can be counted. Those that expire during a large commit stay until it ends.
  /// - Throws: `commitPending`.
  package func checkCounting(now: UInt64) throws(StorageError) {
    if isDiverted, isExpiryDue(now: now) { throw .commitPending }
  }

  /// Checks that a watch sees all changes after the present revision. One that begins during a large commit, as the first
  /// one, would miss some.
  /// - Throws: `commitPending`.
  package func checkWatching() throws(StorageError) {
    if isDiverted, changes.feed == nil { throw .commitPending }
  }

  // MARK: Estimates

  /// Returns an estimate of the keys that puts add to the indexes.
  /// - Parameter arrayElements: The number of elements in arrays, called if it matters.
  package mutating func indexKeyCount(ofPuts count: Int, arrayElements: () -> Int) -> Int {
    guard let indexes else { return 0 }
    let multiple = indexes.keyCounts.multiple
    return count * indexes.indexes.count + (multiple == 0 ? 0 : multiple * arrayElements())
  }

  /// Returns an estimate of the keys that deletes remove from the indexes.
  package mutating func indexKeyCount(ofDeletes count: Int) -> Int { count * (indexes?.keyCounts.average ?? 0) }

  // MARK: Reading

  /// Returns the record that readers see with this key; 0 if there is none.
  /// - Precondition: The map is diverted.
  func divertedFind(_ key: Key) -> UInt32 {
    guard let largeCommit else { return 0 }
    let handle = order.last(notAfter: key, root: largeCommit.root, in: arena.records)
    return handle != 0 && record(handle).key.equals(key) ? handle : 0
  }

  /// The root of the tree that readers see, and the number of its entries.
  var visibleTree: (root: UInt32, count: Int) {
    if isDiverted, let largeCommit { return (largeCommit.root, largeCommit.snapshot.count) }
    return (order.root, order.count)
  }
}

/// Reasons why a look-up can't simply return the record that it has found.
struct Attention: OptionSet {
  let rawValue: UInt8

  /// The map has a memory limit, so reads set reference bits.
  static let limited = Attention(rawValue: 1)
  /// Readers see the snapshot of a large commit.
  static let diverted = Attention(rawValue: 2)
}
