import Storage
import Wire

/// Watches, the reply streams of a store's changes: `Protocol/wire.md` §6.5.
extension Session {
  /// Appends the first part of a watch, and opens its stream unless it can't be served.
  func beginChanges(
    _ watch: Watch, _ start: WatchStart, _ revision: UInt64, to request: C.Request, of connection: inout Connection,
    on store: Store, executor: inout Executor, into replies: inout ReplyBuffer
  ) -> RequestEnd {
    let mark = replies.count
    let part = C.beginPart(
      of: request.tag, isFirst: true, through: watch.throughRevision, executor.limits, into: &replies)
    if let incarnation = start.incarnation {
      _ = C.append(.incarnation(incarnation), to: part, into: &replies)
    }
    var failure: CommandFailure?
    if let loss = start.loss {
      end(part, watch.throughRevision, loss, on: &executor, into: &replies)
      failure = loss.failure
    } else {
      C.end(part, through: watch.throughRevision, isLast: false, into: &replies)
    }
    if let commitWriter = store.commitWriter {
      replies.require(revision, commitWriter, of: request.tag, from: mark, reveals: true)
    }
    if let failure {
      C.append(failure, toBegunStream: request.tag, into: &replies.bytes)
      return .replied(failure: failure.code)
    }
    connection.open(
      ReplyStream(
        tag: request.tag, operation: .watch, isAwaited: C.isOrdered, store: store, snapshot: nil,
        remainder: .changes(watch),
        credit: connection.credit - (replies.bytes.count - part.start), now: executor.now))
    return .done
  }

  /// Appends the next part of a watch, if there is anything to report.
  /// - Parameter notifier: What wakes the worker when there are more changes.
  /// - Returns: Whether the watch goes on.
  func continueWatch(
    _ stream: inout ReplyStream, _ watch: inout Watch, _ notifier: ChangeNotifier?, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> Bool {
    let (tag, store) = (stream.tag, stream.store)
    let visibleRevision = store.commitWriter?.visibleRevision ?? .max
    let start = replies.count
    let part = C.beginPart(
      of: tag, isFirst: false, through: watch.throughRevision, executor.limits, into: &replies)
    let progress = store.access { map -> WatchProgress in
      if map.isDropped { return .storeDropped }
      guard let feed = map.feed else { preconditionFailure("a watched store has a feed") }
      guard watch.position >= feed.start else { return .changesLost(feed.lastDroppedRevision) }
      let isFull = appendChanges(
        of: feed, for: &watch, through: map.revisions.last, visibleRevision: visibleRevision, to: part, on: &executor,
        into: &replies)
      if !isFull, let notifier { map.addChangeWaiter(notifier) }
      return .appended(isFull: isFull)
    }
    switch progress {
    case .storeDropped:
      replies.truncate(to: part.start)
      C.append(.removed(store), toBegunStream: tag, into: &replies.bytes)
      return false
    case .changesLost(let revision):
      let loss = WatchLoss.dropped(through: revision)
      end(part, watch.throughRevision, loss, on: &executor, into: &replies)
      C.append(loss.failure, toBegunStream: tag, into: &replies.bytes)
      if let commitWriter = store.commitWriter {
        replies.requireForPart(watch.throughRevision, commitWriter, of: tag, from: start)
      }
      return false
    case .appended(let isFull):
      end(part, of: &stream, &watch, on: &executor, into: &replies)
      if replies.count > start, let commitWriter = store.commitWriter {
        replies.requireForPart(watch.throughRevision, commitWriter, of: tag, from: start)
      }
      watch.isCaughtUp = !isFull
      guard watch.isCaughtUp, let notifier, let commitWriter = store.commitWriter, commitWriter.gatesReplies else {
        return true
      }
      watch.isCaughtUp = commitWriter.wait(for: watch.throughRevision + 1, notifier)
      guard !watch.isCaughtUp, !commitWriter.isDurable(watch.throughRevision + 1),
        let failure = commitWriter.failure
      else { return true }
      C.append(CommandFailure(failure), toBegunStream: tag, into: &replies.bytes)
      return false
    }
  }

  /// Appends records of changes until there are no more, the next one is not durable, or the part is full.
  /// - Returns: Whether it is full.
  private func appendChanges(
    of feed: ChangeFeed, for watch: inout Watch, through revision: UInt64, visibleRevision: UInt64,
    to part: StreamPart, on executor: inout Executor, into replies: inout ReplyBuffer
  ) -> Bool {
    let now = executor.now
    var isFull = false
    watch.isAtEnd = true
    var through = revision
    feed.visit(from: watch.position) { change in
      if change.revision <= visibleRevision, watch.matches(change) {
        // The write of an entry that has expired since is still a change.
        let lifetime = change.expiry == 0 ? 0 : max(change.expiry, now + 1) - now
        isFull = !C.append(
          .change(change, hasValue: !watch.isKeysOnly, lifetime: lifetime), to: part, into: &replies)
      }
      guard !isFull, change.revision <= visibleRevision else {
        watch.isAtEnd = false
        through = change.revision - 1
        return false
      }
      watch.position += UInt64(change.byteCount)
      return true
    }
    watch.throughRevision = max(watch.throughRevision, through)
    return isFull
  }

  /// Ends a part of a watch, or takes it back if it is not worth sending.
  private func end(
    _ part: StreamPart, of stream: inout ReplyStream, _ watch: inout Watch, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) {
    let hasReachedStart = watch.startRevision.map { watch.throughRevision >= $0 } ?? false
    if part.isEmpty(in: replies), !hasReachedStart,
      watch.position - watch.reportedPosition < UInt64(executor.limits.maxChangeFeedBytes / 4)
    {
      return replies.truncate(to: part.start)
    }
    if hasReachedStart { watch.startRevision = nil }
    C.end(part, through: watch.throughRevision, isLast: false, into: &replies)
    watch.reportedPosition = watch.position
    stream.didSend(replies.bytes.count - part.start, now: executor.now)
  }

  /// Ends a part of a watch that is too slow, or requests what the store doesn't have. An error follows.
  private func end(
    _ part: StreamPart, _ throughRevision: UInt64, _ loss: WatchLoss, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) {
    _ = C.append(.lost(through: loss.revision), to: part, into: &replies)
    C.end(part, through: throughRevision, isLast: false, into: &replies)
  }
}

private enum WatchProgress {
  case appended(isFull: Bool)
  case changesLost(UInt64)
  case storeDropped
}
