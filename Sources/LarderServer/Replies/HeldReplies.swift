// A durable put:
//
// 1. As above, up to `put` in `Executor+Entries`. A put for which the engine has no reserved space left wakes the
//    commit thread and pauses its connection. It is executed again when there may be space; after a second in which the
//    disk has accepted nothing, it fails with `storeFull` or `tooManyRequests` without having changed anything.
// 2. `EntryMap+Writing` changes the map, and `ChangeRecorder` appends the change to the store's `CommitBuffer`, both
//    under the store's lock. From here on, other requests see the new entry.
// 3. The reply is written, and the buffer notes the commit that it requires, and where the reply begins and ends. When
//    all requests of the wakeup are executed, `HeldStore` wakes the commit thread, so that they share a commit.
// 4. `HeldReplies` holds the connection's replies, and all later replies on that connection, until the commit is
//    durable. The worker goes on with other connections.
// 5. `CommitWriter`, on the commit thread: takes the whole buffer under `Store.lock`, and calls `Engine.write` without
//    it.
// 6. **The put becomes durable here**: in `LogWriter` (`append`, with one system call that writes and syncs) or in
//    `JournalWriter` (`append` and `sync`; the entry files follow on another thread, in `DirectorySettler`).
// 7. The commit thread advances the durable revision and notifies `Mailbox`. If the worker is waiting and at most eight
//    of its connections have held replies, the commit thread locks the worker's event loop and sends the replies itself
//    (`Worker`), which spares a single client a wakeup of the worker. Otherwise the worker is woken, releases the held
//    replies and sends them.
// A store with `durability=interval` or `none` does not hold replies: step 4 is left out, and step 6 writes at once but
// syncs by the interval or never.

import Storage
import Wire

/// Replies of one connection that are held back until commits are durable, in the order in which they were made.
///
/// No client learns of anything that a crash can undo. Replies that reveal nothing themselves wait behind those that
/// do, so that replies keep their order. If a store's files fail, what its replies would reveal is replaced by errors.
/// Owned by a `Connection`.
struct HeldReplies: ~Copyable {
  private var bytes = ByteBuffer()
  /// The replies among them that must wait, and the parts of streams, with offsets from the first byte that was ever held
  /// since the buffer was empty.
  private var gates: [ReplyGate] = []
  /// The number of gates that have been passed, and of bytes that have been released.
  private var (passedCount, releasedCount) = (0, 0)
  /// The requests whose replies became errors. No further part of these is sent.
  private var failedTags: [UInt32] = []

  /// The size of the replies, in bytes.
  var count: Int { bytes.count }
  @inline(__always)
  var isEmpty: Bool { bytes.isEmpty }

  /// Moves replies behind all that wait. If they require no commit themselves, they wait for what is before them.
  mutating func hold(_ replies: inout ReplyBuffer) {
    replies.copyAttachedValues()
    let offset = releasedCount + bytes.count
    for gate in replies.gates { gates.append(gate.moved(by: offset)) }
    replies.bytes.withSpan { bytes.append($0) }
    replies.bytes.removeAll()
    replies.removeGates()
  }

  /// Moves the replies that need not wait any more to `replies`.
  /// - Parameters:
  ///   - session: Encodes errors.
  ///   - waiter: What is notified when more of them need not wait.
  /// - Returns: The tags of replies that became errors.
  mutating func release(
    into replies: inout ReplyBuffer, _ session: some Session, notifying waiter: any DurabilityWaiter
  ) -> [UInt32] {
    repeat {
      releaseReady(into: &replies.bytes, session)
    } while waitingCommit.map { !$0.wait(notifying: waiter) } ?? false
    let failed = failedTags
    if waitingCommit == nil {
      moveBytes(to: releasedCount + bytes.count, into: &replies.bytes)
      bytes.releaseStorage()
      gates.removeAll(keepingCapacity: gates.count <= 64)
      (passedCount, releasedCount) = (0, 0)
      failedTags = []
    } else if passedCount > 64, passedCount > gates.count / 2 {
      gates.removeFirst(passedCount)
      passedCount = 0
    }
    return failed
  }

  /// The commit that the first replies wait for; nil if there is none.
  private var waitingCommit: RequiredCommit? { passedCount < gates.count ? gates[passedCount].commit : nil }

  /// Releases the replies up to the first one that must wait.
  private mutating func releaseReady(into output: inout ByteBuffer, _ session: some Session) {
    while passedCount < gates.count, gates[passedCount].commit?.isSettled ?? true {
      let gate = gates[passedCount]
      passedCount += 1
      moveBytes(to: gate.range.lowerBound, into: &output)
      if !gate.isContinuation { failedTags.removeAll { $0 == gate.tag } }
      if failedTags.contains(gate.tag) {
        dropBytes(to: gate.range.upperBound)
      } else if gate.reveals, let failure = gate.commit?.failure {
        dropBytes(to: gate.range.upperBound)
        let failure = CommandFailure(ofCommit: failure)
        if gate.isContinuation {
          session.append(failure, toBegunStream: gate.tag, into: &output)
        } else {
          session.append(failure, to: gate.tag, into: &output)
        }
        failedTags.append(gate.tag)
      } else {
        moveBytes(to: gate.range.upperBound, into: &output)
      }
    }
  }

  private mutating func moveBytes(to end: Int, into output: inout ByteBuffer) {
    let count = end - releasedCount
    guard count > 0 else { return }
    bytes.withSpan { output.append($0.extracting(0..<count)) }
    dropBytes(to: end)
  }

  private mutating func dropBytes(to end: Int) {
    bytes.consume(end - releasedCount)
    releasedCount = end
  }
}
