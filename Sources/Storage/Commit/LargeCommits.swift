// A put-many of 65,536 entries:
//
// 1. `Executor+LargeWrites` estimates that the request takes too long for the store's lock: it has many entries, bytes
//    or keys of indexes. The session makes a job (`WriteJob`) and pauses the connection. The frame stays in the
//    connection's input.
// 2. `LargeCommits`, on its thread: the job checks the request, and then `beginLargeCommit` (`LargeCommit`) takes a
//    snapshot and diverts the map.
// 3. In slices of about 0.3 ms, the conditions are checked, memory and space for the commit are reserved, and the
//    entries are written. Nothing can be refused after the first entry. A document with many keys gets them index by
//    index. Between two slices, those who wait for the lock get it (`Store.accessInTurn`).
// 4. Between the slices, reads and new snapshots see the state before the commit. A write throws `commitPending` before
//    it changes anything, and its connection pauses until the commit ends. Expired entries stay, nothing is evicted,
//    and indexes are neither created nor deleted.
// 5. `finishLargeCommit` shows the changes to everybody, hands their one record to the commit writer and their batch to
//    the watches, and wakes the connections that wait. The job's connection executes its request again, which now makes
//    the reply.
// Changes of matching documents and applies with updates (`TaskCommit`) do the same. They examine again what others
// have written meanwhile while nobody else writes, so that no writer can outpace them.

import Dispatch
import Glibc
import Platform

/// A write that is made by a large commit, because it takes too long for one acquisition of the store's lock.
///
/// `LargeCommits` calls these functions in their order, on its thread. Those with a map run under the store's lock, again
/// and again, and must return after a few microseconds. Meanwhile nobody else writes to the store.
package protocol LargeWrite: AnyObject, Sendable {
  var store: Store { get }

  /// Does what needs no store.
  func prepare() -> LargeWriteStep
  /// Evicts some entries if the process lacks the memory for the write.
  /// - Returns: Whether more may have to be evicted.
  func makeRoom(in map: inout EntryMap) -> Bool
  /// Checks whether the next entry permits the write.
  func checkNext(in map: inout EntryMap, now: UInt64) throws(StorageError) -> LargeWriteStep
  /// Does what needs no store, after all checks.
  func compute() -> LargeWriteStep
  /// Reserves memory, and space for the commit. The write can't be canceled from then on.
  /// - Throws: The reason why the write is refused, with nothing changed.
  func reserve(in map: inout EntryMap) throws(StorageError) -> LargeWriteStep
  /// Writes the next entry.
  /// - Returns: `unfinished` if there are more, and `blocked` if `unblock` must be called before the next entry.
  func writeNext(to map: inout EntryMap, revision: UInt64, now: UInt64) throws(StorageError) -> LargeWriteStep
  /// Does what the next entry needs, without the store's lock.
  func unblock()
  /// Takes the outcome.
  func didEnd(_ end: LargeWriteEnd)
}

extension LargeWrite {
  package func prepare() -> LargeWriteStep { .finished }
  package func compute() -> LargeWriteStep { .finished }
  package func unblock() {}
}

package enum LargeWriteStep: Sendable {
  case unfinished, finished, blocked
  /// The write ends with nothing changed, for a reason that it knows.
  case stopped
}

package enum LargeWriteEnd: Sendable {
  case stopped
  /// Nothing has been changed.
  case refused(StorageError)
  /// The store now has this revision.
  case written(UInt64)
  /// The system has refused memory after some of the entries. The others are not written.
  case failed(StorageError)
}

/// Makes large commits on a thread of its own, one at a time in each store, and slice by slice, in turn for all stores.
///
/// A slice locks the store for a fraction of a millisecond, and lets those who wait for the lock have it before the next
/// one. While there is nothing to write, there is no thread.
package final class LargeCommits: Sendable {
  /// How long a slice locks the store, in nanoseconds, but for its last entry.
  private static let sliceTime: UInt64 = 300_000
  /// How long a store stays unlocked after a commit that others have waited for, in microseconds.
  private static let pauseForWriters: UInt32 = 1_000

  private struct Writes {
    /// In the order of their arrival.
    var waiting: [any LargeWrite] = []
    var hasThread = false
    var isStopping = false
  }

  private let queue = DispatchQueue(label: "larder.large-commits")
  private let writes = Lock(Writes())
  /// Called with the time of an expiry that is sooner than those before.
  private let entryWillExpire: @Sendable (UInt64) -> Void

  package init(entryWillExpire: @escaping @Sendable (UInt64) -> Void = { _ in }) {
    self.entryWillExpire = entryWillExpire
  }

  /// Makes a write, and tells it the outcome. From any thread.
  package func run(_ write: any LargeWrite) {
    let needsThread = writes.withLock { writes in
      writes.waiting.append(write)
      defer { writes.hasThread = true }
      return !writes.hasThread
    }
    if needsThread { queue.async { self.makeCommits() } }
  }

  /// Waits until all writes have ended. Those that have not begun are refused.
  package func stop() {
    writes.withLock { $0.isStopping = true }
    queue.sync {}
  }

  private func makeCommits() {
    var commits: [Commit] = []
    while true {
      let (begun, refused, isIdle) = takeWaiting(besides: commits)
      for write in refused { write.didEnd(.refused(.storeDropped)) }
      if isIdle { return }
      commits += begun
      var hadWaiters = false
      commits.removeAll { commit in
        guard case .ended(let hasWaiters) = commit.takeTurn(until: Self.sliceTime, entryWillExpire) else {
          return false
        }
        if hasWaiters { hadWaiters = true }
        return true
      }
      if hadWaiters { usleep(Self.pauseForWriters) }
    }
  }

  /// Begins with the first write of each store that has none.
  private func takeWaiting(besides commits: [Commit]) -> ([Commit], refused: [any LargeWrite], isIdle: Bool) {
    writes.withLock { writes in
      var (begun, refused): ([Commit], [any LargeWrite]) = ([], [])
      if writes.isStopping { swap(&refused, &writes.waiting) }
      writes.waiting.removeAll { write in
        guard !commits.contains(where: { $0.store === write.store }),
          !begun.contains(where: { $0.store === write.store })
        else { return false }
        begun.append(Commit(write))
        return true
      }
      let isIdle = commits.isEmpty && begun.isEmpty
      if isIdle { writes.hasThread = false }
      return (begun, refused, isIdle)
    }
  }
}

/// A large commit in progress. Used by the thread of `LargeCommits`.
private final class Commit: @unchecked Sendable {
  private enum Phase {
    case preparing, beginning, checking, computing, reserving, writing, finishing
  }

  enum TurnEnd {
    case unfinished
    case ended(hasWaiters: Bool)
  }

  /// How many times the beginning evicts entries.
  private static let maxEvictions = 256
  /// How many turns the end waits until the commit writer has taken what it has to write, because appending to that takes
  /// a while, and how long each of them is, in microseconds, without about 50 that the system adds.
  private static let maxWaitingTurns = 100
  private static let waitingTime: UInt32 = 20

  private let write: any LargeWrite
  private var phase = Phase.preparing
  private var revision: UInt64 = 0
  /// The time of the write, in milliseconds.
  private var now: UInt64 = 0
  /// What the last entry has returned.
  private var lastStep = LargeWriteStep.unfinished
  private var failure: StorageError?
  private var buffer = CommitBuffer()
  private var evictions = 0
  private var waitingTurns = 0

  var store: Store { write.store }

  init(_ write: any LargeWrite) { self.write = write }

  func takeTurn(until sliceTime: UInt64, _ entryWillExpire: (UInt64) -> Void) -> TurnEnd {
    let deadline = monotonicNanoseconds() + sliceTime
    switch phase {
    case .preparing:
      guard case .finished = write.prepare() else { return end(.stopped) }
      phase = .beginning
    case .beginning:
      do throws(StorageError) { try begin() } catch { return end(.refused(error)) }
    case .checking:
      switch slice({ map throws(StorageError) in try check(&map, deadline) }) {
      case .success(.finished): phase = .computing
      case .success(.unfinished): break
      case .success: return finish(with: .stopped, entryWillExpire)
      case .failure(let error): return finish(with: .refused(error), entryWillExpire)
      }
    case .computing:
      guard case .finished = write.compute() else { return finish(with: .stopped, entryWillExpire) }
      phase = .reserving
    case .reserving:
      switch slice({ map throws(StorageError) in try reserve(&map) }) {
      case .success(.finished): phase = .writing
      case .success: return finish(with: .stopped, entryWillExpire)
      case .failure(let error): return finish(with: .refused(error), entryWillExpire)
      }
    case .writing:
      switch slice({ map throws(StorageError) in try writeEntries(&map, deadline) }) {
      case .success(.finished): phase = .finishing
      case .success(.blocked): write.unblock()
      case .success: break
      case .failure(let error):
        failure = error
        phase = .finishing
      }
    case .finishing:
      if mustWaitForCommitWriter() { return .unfinished }
      return finish(with: failure.map { .failed($0) }, entryWillExpire)
    }
    return .unfinished
  }

  private func begin() throws(StorageError) {
    let now = monotonicMilliseconds()
    phase = try store.accessInTurn { map throws(StorageError) in
      if !map.isDropped, map.expireBriefly(now: now) || makeRoom(in: &map) { return .beginning }
      try map.beginLargeCommit()
      return .checking
    }
  }

  private func makeRoom(in map: inout EntryMap) -> Bool {
    guard evictions < Self.maxEvictions, write.makeRoom(in: &map) else { return false }
    evictions += 1
    return true
  }

  /// Runs `body` in a slice of the commit.
  private func slice(
    _ body: (inout EntryMap) throws(StorageError) -> LargeWriteStep
  ) -> Result<LargeWriteStep, StorageError> {
    store.accessInTurn { map in
      guard !map.isDropped else { return .failure(map.removalError) }
      map.beginSlice()
      defer { map.endSlice() }
      do throws(StorageError) { return .success(try body(&map)) } catch { return .failure(error) }
    }
  }

  private func check(_ map: inout EntryMap, _ deadline: UInt64) throws(StorageError) -> LargeWriteStep {
    let now = monotonicMilliseconds()
    repeat {
      let step = try write.checkNext(in: &map, now: now)
      guard case .unfinished = step else { return step }
    } while monotonicNanoseconds() < deadline
    return .unfinished
  }

  private func reserve(_ map: inout EntryMap) throws(StorageError) -> LargeWriteStep {
    revision = map.revisions.last + 1
    now = monotonicMilliseconds()
    return try write.reserve(in: &map)
  }

  private func writeEntries(_ map: inout EntryMap, _ deadline: UInt64) throws(StorageError) -> LargeWriteStep {
    while true {
      while map.continueIndexChange(now: now) {
        if monotonicNanoseconds() >= deadline { return .unfinished }
      }
      // The entry before is complete now.
      switch lastStep {
      case .unfinished: break
      case .blocked:
        lastStep = .unfinished
        return .blocked
      case .finished, .stopped: return lastStep
      }
      if monotonicNanoseconds() >= deadline { return .unfinished }
      lastStep = try write.writeNext(to: &map, revision: revision, now: now)
    }
  }

  /// Prepares the end of the commit.
  private func mustWaitForCommitWriter() -> Bool {
    guard let commitWriter = store.commitWriter else { return false }
    if buffer.isEmpty {
      store.accessInTurn { $0.takeLargeCommit(into: &buffer) }
      buffer.seal()
    }
    guard waitingTurns < Self.maxWaitingTurns, store.accessInTurn({ $0.hasCommits }) else { return false }
    if waitingTurns == 0 { commitWriter.wake() }
    waitingTurns += 1
    usleep(Self.waitingTime)
    return true
  }

  /// Ends the large commit.
  /// - Parameter result: nil if everything was written.
  private func finish(with result: LargeWriteEnd?, _ entryWillExpire: (UInt64) -> Void) -> TurnEnd {
    let (commit, removal) = store.accessInTurn { map in
      let removal = map.isDropped ? map.removalError : nil
      return (map.finishLargeCommit(&buffer), removal)
    }
    for waiter in commit.changeWaiters { waiter.storeDidChange() }
    store.commitWriter?.wake()
    if let soonerExpiry = commit.soonerExpiry { entryWillExpire(soonerExpiry) }
    write.didEnd(removal.map { .refused($0) } ?? result ?? .written(commit.revision))
    for waiter in commit.waiters { waiter() }
    return .ended(hasWaiters: !commit.waiters.isEmpty)
  }

  /// Ends a write that has not begun its commit.
  private func end(_ result: LargeWriteEnd) -> TurnEnd {
    write.didEnd(result)
    return .ended(hasWaiters: false)
  }
}
