import Storage
import Wire

/// Watches, the reply streams of a store's changes: `Protocol/wire.md` §6.5.
extension RequestProcessor {
  mutating func watch(
    _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, _ store: Store, _ map: inout EntryMap,
    into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult {
    guard let request = WatchRequest(body) else { return replies.fail(.malformed, id, BodyFlaw.ofWatch(body)) }
    guard request.prefix.count <= Key.maxSize else { return failPrefix(request.prefix.count, id, into: &replies) }
    if let failure = rejectStream(id, &connection, into: &replies) { return failure }
    try map.checkWatching()
    // The reply reveals the store's revision, so that one must still be there after a crash.
    let revision = map.revision
    let feed = map.beginWatch(
      limit: limits.maxChangeFeedBytes, notifiesImmediately: !(store.commitWriter?.gatesReplies ?? false))
    let from = request.from == 0 ? revision + 1 : request.from
    let start = replies.bytes.beginReply(id: id, more: true)
    replies.bytes.append(from - 1)
    if request.incarnation != nil { appendIncarnation(store.incarnation, to: &replies) }
    if let loss = loss(request, from: from, in: store, revision: revision, feed) {
      map.endWatch()
      return endLostFrame(start, id, loss, into: &replies).showing(revision)
    }
    replies.bytes.endFrame(start)
    let watch = Watch(
      prefix: body.extracting(request.prefix).toArray(), isKeysOnly: request.isKeysOnly,
      position: feed.position(of: from), throughRevision: from - 1, startRevision: revision)
    connection.streams.append(
      ReplyStream(
        id: id, operation: .watch, store: store, snapshot: nil, remainder: .changes(watch),
        credit: connection.credit - (replies.bytes.count - start), now: now))
    return RequestResult(shownRevision: revision)
  }

  /// Appends the next frame of a watch, if there is anything to report.
  /// - Parameter notifier: what wakes the worker when there are more changes.
  /// - Returns: whether the watch goes on.
  mutating func continueWatch(
    _ stream: inout ReplyStream, _ watch: inout Watch, _ notifier: ChangeNotifier?, into replies: inout ReplyBuffer
  ) -> Bool {
    let (id, store) = (stream.id, stream.store)
    let visibleRevision = store.commitWriter?.visibleRevision ?? .max
    let start = replies.bytes.beginReply(id: id, more: true)
    replies.bytes.append(watch.throughRevision)
    let progress = store.access { map -> WatchProgress in
      if map.isDropped { return .storeDropped }
      guard let feed = map.feed else { preconditionFailure("a watched store has a feed") }
      guard watch.position >= feed.start else { return .changesLost(feed.lastDroppedRevision) }
      let isFull = appendChanges(
        of: feed, for: &watch, through: map.revision, visibleRevision: visibleRevision, frameAt: start, into: &replies)
      if !isFull, let notifier { map.addChangeWaiter(notifier) }
      return .appended(isFull: isFull)
    }
    switch progress {
    case .storeDropped:
      replies.truncate(to: start)
      replies.appendError(.storeUnknown, id, "store \(store.name) was dropped")
      return false
    case .changesLost(let revision):
      _ = endLostFrame(start, id, .dropped(through: revision), into: &replies)
      return false
    case .appended(let isFull):
      endFrame(start, &stream, &watch, into: &replies)
      watch.isCaughtUp = !isFull
      guard watch.isCaughtUp, let notifier, let commitWriter = store.commitWriter, commitWriter.gatesReplies else {
        return true
      }
      watch.isCaughtUp = commitWriter.wait(for: watch.throughRevision + 1, notifier)
      guard !watch.isCaughtUp, !commitWriter.isDurable(watch.throughRevision + 1),
        let failure = commitWriter.failure
      else { return true }
      replies.appendError(failure, id)
      return false
    }
  }

  private enum WatchProgress {
    case appended(isFull: Bool)
    case changesLost(UInt64)
    case storeDropped
  }

  /// Appends records of changes until there are no more, the next one is not durable, or the frame that begins at
  /// `start` is full.
  /// - Returns: whether it is full.
  private mutating func appendChanges(
    of feed: ChangeFeed, for watch: inout Watch, through revision: UInt64, visibleRevision: UInt64, frameAt start: Int,
    into replies: inout ReplyBuffer
  ) -> Bool {
    let recordsStart = replies.bytes.count
    var isFull = false
    watch.isAtEnd = true
    var through = revision
    feed.visit(from: watch.position) { change in
      if watch.matches(change) {
        let valueCount = unsafe watch.isKeysOnly ? 0 : change.value.count
        let size = unsafe ChangeRecord.headerSize + (change.expiry == 0 ? 0 : 8) + change.key.count + valueCount
        let bodySize = replies.bytes.count - start - Frame.headerSize
        isFull = replies.bytes.count > recordsStart && bodySize + size > maxStreamFrameBody
      }
      guard !isFull, change.revision <= visibleRevision else {
        watch.isAtEnd = false
        through = change.revision - 1
        return false
      }
      if watch.matches(change) { appendRecord(of: change, withValue: !watch.isKeysOnly, to: &replies) }
      watch.position += UInt64(change.byteCount)
      return true
    }
    watch.throughRevision = max(watch.throughRevision, through)
    replies.bytes.replace(at: start + Frame.headerSize, with: watch.throughRevision)
    return isFull
  }

  private mutating func appendRecord(of change: ChangeView, withValue: Bool, to replies: inout ReplyBuffer) {
    let none = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    // The write of an entry that has expired since is still a change.
    let lifetime = change.expiry == 0 ? 0 : max(change.expiry, now + 1) - now
    unsafe replies.bytes.appendChange(
      ChangeKind(change.kind), revision: change.revision, expiry: lifetime, key: change.key,
      value: withValue ? change.value : none)
  }

  /// Ends the frame of a watch, or takes it back if it is not worth sending.
  private mutating func endFrame(
    _ start: Int, _ stream: inout ReplyStream, _ watch: inout Watch, into replies: inout ReplyBuffer
  ) {
    let isEmpty = replies.bytes.count - start == Frame.headerSize + ChangeRecord.throughSize
    let hasReachedStart = watch.startRevision.map { watch.throughRevision >= $0 } ?? false
    if isEmpty, !hasReachedStart, watch.position - watch.reportedPosition < UInt64(limits.maxChangeFeedBytes / 4) {
      return replies.truncate(to: start)
    }
    if hasReachedStart { watch.startRevision = nil }
    replies.bytes.endFrame(start)
    watch.reportedPosition = watch.position
    stream.didSend(replies.bytes.count - start, now: now)
  }

  private mutating func appendIncarnation(_ incarnation: UInt64, to replies: inout ReplyBuffer) {
    let none = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    unsafe replies.bytes.appendChange(.incarnation, revision: incarnation, key: none, value: none)
  }

  // MARK: Lost changes

  /// Why a watch can't deliver what it requests.
  private enum Loss {
    /// The changes up to this revision are no longer kept.
    case dropped(through: UInt64)
    /// The watch is from a revision that the store, which has this one, is far from.
    case beyondRevision(UInt64, from: UInt64)
    /// The client has watched another incarnation. This one has this revision.
    case otherIncarnation(UInt64)

    /// The newest revision with a change that the watch misses, or the store's revision.
    var revision: UInt64 {
      switch self {
      case .dropped(let revision), .beyondRevision(let revision, _), .otherIncarnation(let revision): revision
      }
    }

    var reason: String {
      switch self {
      case .dropped(let revision): "changes up to revision \(revision) are no longer kept"
      case .beyondRevision(let revision, let from):
        "the watch is from revision \(from), but the store has only reached revision \(revision)"
      case .otherIncarnation:
        "this is not the store that was watched before: it has been created again, or may have lost its last changes"
      }
    }
  }

  /// Returns why a request can't be served; nil if it can.
  /// - Parameters:
  ///   - from: The first revision whose changes are wanted.
  ///   - revision: The store's revision.
  private func loss(
    _ request: WatchRequest, from: UInt64, in store: Store, revision: UInt64, _ feed: ChangeFeed
  ) -> Loss? {
    if let incarnation = request.incarnation, incarnation != 0, incarnation != store.incarnation {
      return .otherIncarnation(revision)
    }
    if from <= feed.lastDroppedRevision { return .dropped(through: feed.lastDroppedRevision) }
    return from - 1 <= revision ? nil : .beyondRevision(revision, from: from)
  }

  /// Ends the frame that begins at `start`, and with it a watch that is too slow, or requests what the store doesn't
  /// have.
  private mutating func endLostFrame(
    _ start: Int, _ id: UInt32, _ loss: Loss, into replies: inout ReplyBuffer
  ) -> RequestResult {
    let none = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    unsafe replies.bytes.appendChange(.lost, revision: loss.revision, key: none, value: none)
    replies.bytes.endFrame(start)
    return replies.fail(
      .changesLost, id, "\(loss.reason); read the store and watch it from \(loss.revision + 1)")
  }
}
