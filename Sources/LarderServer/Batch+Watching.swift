import Storage
import Wire

/// Watches: `Protocol/wire.md` §6.5.
extension Batch {
  mutating func watch(
    _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, _ store: Store, _ map: inout EntryMap
  ) {
    guard let request = WatchRequest(body) else { return fail(.malformed, id) }
    guard request.prefix.count <= Key.largest else { return fail(.illegalArgument, id) }
    guard mayAnswer(id, &connection) else { return }
    // Whatever revision is told here must be there after a crash.
    shownRevision = map.revision
    let feed = map.beginWatch(limit: limits.changeBytes, tellsAtOnce: !(store.commitWriter?.gatesReplies ?? false))
    let from = request.from == 0 ? map.revision + 1 : request.from
    guard from > feed.lostRevision, from - 1 <= map.revision else {
      map.endWatch()
      return loseTrack(id, through: from - 1, of: from > feed.lostRevision ? map.revision : feed.lostRevision)
    }
    let start = output.beginReply(id: id, more: true)
    output.append(from - 1)
    output.endFrame(start)
    let watch = Watch(
      prefix: body.extracting(request.prefix).toArray(), isKeysOnly: request.isKeysOnly, place: feed.place(of: from),
      through: from - 1)
    connection.answers.append(
      Answer(
        id: id, store: store, snapshot: nil, rest: .changes(watch), credit: connection.credit - (output.count - start),
        waitingSince: now))
  }

  /// Sends the next frame of a watch, if there is anything to tell.
  /// - Parameter bell: is rung when there is more.
  /// - Returns: whether the watch goes on.
  mutating func continueWatch(_ answer: inout Answer, _ watch: inout Watch, _ bell: WatchBell?) -> Bool {
    let (id, store) = (answer.id, answer.store)
    let visibleRevision = store.commitWriter?.visibleRevision ?? .max
    let start = output.beginReply(id: id, more: true)
    output.append(watch.through)
    let outcome = store.access { map -> WatchOutcome in
      if map.isDropped { return .dropped }
      guard let feed = map.feed else { preconditionFailure("a watch without a feed") }
      guard watch.place >= feed.start else { return .lost(feed.lostRevision) }
      let isFull = append(feed, &watch, through: map.revision, notBeyond: visibleRevision, frameAt: start)
      if !isFull, let bell { map.awaitChange(bell) }
      return .told(isFull: isFull)
    }
    switch outcome {
    case .dropped:
      output.truncate(to: start)
      fail(.storeUnknown, id, "store \(store.name) was dropped")
      return false
    case .lost(let revision):
      output.truncate(to: start)
      loseTrack(id, through: watch.through, of: revision)
      return false
    case .told(let isFull):
      endFrame(start, &answer, &watch)
      watch.isCaughtUp = !isFull
      guard watch.isCaughtUp, let bell, let commitWriter = store.commitWriter, commitWriter.gatesReplies else {
        return true
      }
      watch.isCaughtUp = commitWriter.wait(for: watch.through + 1, bell)
      guard !watch.isCaughtUp, !commitWriter.isDurable(watch.through + 1), let failure = commitWriter.failure else {
        return true
      }
      fail(ErrorCode(failure), id, "\(failure)")
      return false
    }
  }

  private enum WatchOutcome {
    case told(isFull: Bool)
    case lost(UInt64)
    case dropped
  }

  /// Appends records of changes until there are no more, none that may be told, or the frame that began at `start` is full.
  /// - Returns: whether it is full.
  private mutating func append(
    _ feed: ChangeFeed, _ watch: inout Watch, through revision: UInt64, notBeyond visibleRevision: UInt64,
    frameAt start: Int
  ) -> Bool {
    let recordsStart = output.count
    var isFull = false
    watch.isAtEnd = true
    var through = revision
    feed.visit(from: watch.place) { change in
      if watch.concerns(change) {
        let valueCount = unsafe watch.isKeysOnly ? 0 : change.value.count
        let size = unsafe ChangeRecord.headerSize + (change.expiry == 0 ? 0 : 8) + change.key.count + valueCount
        isFull = output.count > recordsStart && output.count - start - Frame.headerSize + size > frameBytes
      }
      guard !isFull, change.revision <= visibleRevision else {
        watch.isAtEnd = false
        through = change.revision - 1
        return false
      }
      if watch.concerns(change) { append(change, withValue: !watch.isKeysOnly) }
      watch.place += UInt64(change.byteCount)
      return true
    }
    watch.through = max(watch.through, through)
    output.replace(at: start + Frame.headerSize, with: watch.through)
    return isFull
  }

  private mutating func append(_ change: ChangeView, withValue: Bool) {
    let none = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    // An entry that has expired meanwhile was written all the same.
    let left = change.expiry == 0 ? 0 : max(change.expiry, now + 1) - now
    unsafe output.appendChange(
      ChangeKind(change.kind), revision: change.revision, expiry: left, key: change.key,
      value: withValue ? change.value : none)
  }

  /// Ends the frame of a watch, or takes it back if it is not worth sending.
  private mutating func endFrame(_ start: Int, _ answer: inout Answer, _ watch: inout Watch) {
    let isEmpty = output.count - start == Frame.headerSize + ChangeRecord.throughSize
    if isEmpty, watch.place - watch.toldPlace < UInt64(limits.changeBytes / 4) { return output.truncate(to: start) }
    output.endFrame(start)
    watch.toldPlace = watch.place
    answer.credit -= output.count - start
    answer.waitingSince = now
  }

  private mutating func loseTrack(_ id: UInt32, through: UInt64, of revision: UInt64) {
    let none = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    let start = output.beginReply(id: id, more: true)
    output.append(through)
    unsafe output.appendChange(.lost, revision: revision, key: none, value: none)
    output.endFrame(start)
    fail(
      .changesLost, id,
      "the changes up to revision \(revision) are not kept any more; read the store and watch it from \(revision + 1)")
  }
}

extension ChangeKind {
  fileprivate init(_ kind: ChangeView.Kind) {
    self =
      switch kind {
      case .single: .single
      case .list: .list
      case .delete: .deleted
      case .deleteAll: .allDeleted
      }
  }
}
