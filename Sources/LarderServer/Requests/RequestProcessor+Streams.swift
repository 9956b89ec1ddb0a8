import Basics
import Storage
import Wire

/// Replies that consist of entry records, in one frame or several: `Protocol/wire.md` §5.
///
/// A request appends the first frame. If it has more to send, it opens a `ReplyStream` on the connection, which
/// `continueStream` continues, frame by frame, as far as the client's credit goes.
extension RequestProcessor {
  /// The maximum number of keys that are looked up for one frame, because the store is locked meanwhile.
  private static let maxKeysPerFrame = 512
  /// The size of keys that are not looked up, in bytes, that a connection's streams keep. Beyond that, all keys of a
  /// request are looked up at once.
  private static let maxKeptKeyBytes = 32 << 20

  mutating func getMany(
    _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, _ store: Store, _ map: inout EntryMap,
    into replies: inout ReplyBuffer
  ) -> RequestResult {
    var keys: KeyList
    switch decodeKeys(body, id, into: &replies) {
    case .valid(let list): keys = list
    case .invalid(let failure): return failure
    }
    if let failure = rejectStream(id, &connection, into: &replies) { return failure }
    var shownRevision: UInt64 = 0
    let start = replies.bytes.beginReply(id: id)
    var prefetchedCount = 0
    var (frameCount, offset) = (0, 4)
    while frameCount < Self.maxKeysPerFrame {
      if prefetchedCount == 0 { prefetchedCount = prefetcher.prefetch(keys, of: body, &map) }
      prefetchedCount -= 1
      var remaining = keys
      guard let key = remaining.next(body) else { break }
      let entry = map.get(body.extracting(key), now: now)
      guard appendRecord(of: entry, toFrameAt: start, of: &replies) else {
        shownRevision = max(shownRevision, entry == nil ? map.lastRemoval : 0)
        break
      }
      shownRevision = max(shownRevision, entry?.revision ?? map.lastRemoval)
      keys = remaining
      frameCount += 1
      offset = key.upperBound
    }
    replies.bytes.endFrame(start)
    guard !keys.isComplete(body) else { return RequestResult(shownRevision: shownRevision) }
    // Keys that are missing from later frames are missing as of now.
    shownRevision = max(shownRevision, map.lastRemoval)
    let openKeyCount = connection.streams.reduce(0) { $0 + $1.remainder.keyCount }
    guard openKeyCount + keys.remaining <= limits.maxStreamKeys else {
      replies.truncate(to: start)
      return replies.fail(
        .tooManyRequests, id,
        "the open reply streams of this connection have \(openKeyCount) keys left to send; read them first"
      ).showing(shownRevision)
    }
    let keptByteCount = connection.streams.reduce(0) { $0 + $1.remainder.keptKeyByteCount }
    if keptByteCount + body.byteCount - offset <= Self.maxKeptKeyBytes {
      let rest = ReplyStream.RemainingKeys(keys, of: body, at: offset)
      openStream(.keys(rest), .getMany, id, frameAt: start, &connection, store, &map, into: &replies)
      return RequestResult(shownRevision: shownRevision)
    }
    var handles: [UInt32] = []
    handles.reserveCapacity(keys.remaining)
    while let key = keys.next(body) { handles.append(map.handle(of: body.extracting(key), now: now) ?? 0) }
    openStream(.entries(handles, next: 0), .getMany, id, frameAt: start, &connection, store, &map, into: &replies)
    return RequestResult(shownRevision: shownRevision)
  }

  mutating func scan(
    _ operation: Operation, _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, _ store: Store,
    _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult {
    guard let request = ScanRequest(body, of: operation) else {
      return replies.fail(.malformed, id, BodyFlaw.ofScan(body, of: operation))
    }
    guard request.prefix.count <= Key.maxSize else { return failPrefix(request.prefix.count, id, into: &replies) }
    if let cursor = request.cursor, cursor.count > Key.maxSize {
      return replies.fail(.illegalArgument, id, "the cursor has \(cursor.count) bytes; the limit is \(Key.maxSize)")
    }
    if let failure = rejectStream(id, &connection, into: &replies) { return failure }
    let prefix = body.extracting(request.prefix)
    let matches: Range<Int>
    if let cursor = request.cursor {
      matches = map.ranks(prefix: prefix, after: body.extracting(cursor), reverse: request.isReverse, now: now)
    } else {
      matches = map.ranks(prefix: prefix, after: nil, reverse: request.isReverse, now: now)
    }
    let ranks = request.page(of: matches)
    let scan = ReplyStream.Scan(ranks: ranks, isReverse: request.isReverse, isKeysOnly: request.isKeysOnly)
    // The page shows which keys there are; with an offset, also how many come before it.
    let revision = request.offset == 0 ? map.lastRemoval : max(map.lastRemoval, map.lastInsertion)
    let start = replies.bytes.beginReply(id: id)
    let (rest, newestRevision) = try appendEntries(of: scan, in: nil, toFrameAt: start, &map, of: &replies)
    replies.bytes.endFrame(start)
    if !rest.ranks.isEmpty {
      openStream(.scan(rest), operation, id, frameAt: start, &connection, store, &map, into: &replies)
    }
    return RequestResult(shownRevision: max(revision, newestRevision))
  }

  // MARK: Streams

  /// Rejects a request whose reply can't become a stream: the id is in use, or the connection has too many of them.
  /// - Returns: nil if the stream may be opened. Otherwise the error has been appended to the replies.
  mutating func rejectStream(
    _ id: UInt32, _ connection: inout Connection, into replies: inout ReplyBuffer
  ) -> RequestResult? {
    if connection.streams.contains(where: { $0.id == id }) {
      return endConnection(&connection, .malformed, "a reply stream with id \(id) is still open", into: &replies)
    }
    if connection.streams.count >= limits.maxRequestsInFlight {
      return replies.fail(
        .tooManyRequests, id,
        "this connection already has \(limits.maxRequestsInFlight) requests in flight; wait for their replies first")
    }
    return nil
  }

  /// Opens a stream whose first frame has been appended.
  private mutating func openStream(
    _ remainder: ReplyStream.Remainder, _ operation: Operation, _ id: UInt32, frameAt start: Int,
    _ connection: inout Connection, _ store: Store, _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) {
    replies.markMore(frameAt: start)
    connection.streams.append(
      ReplyStream(
        id: id, operation: operation, store: store, snapshot: map.snapshot(now: now), remainder: remainder,
        credit: connection.credit - (replies.bytes.count - start), now: now))
  }

  /// Appends frames of a connection's open streams, one of each in rotation, as far as their credit and the room for
  /// replies go.
  mutating func continueStreams(
    of connection: inout Connection, notifying watchers: inout WatcherTable, into replies: inout ReplyBuffer
  ) {
    let maxReplyBytes = maxReplyBytes(for: connection)
    var slowFrameCount = 0
    var isAnyReady = true
    while isAnyReady, !connection.streams.isEmpty {
      isAnyReady = false
      for index in connection.streams.indices.reversed() where connection.streams[index].isReady {
        guard replies.count < maxReplyBytes, slowFrameCount < Self.maxSlowFrames else { return }
        if connection.streams[index].isSlow { slowFrameCount += 1 }
        var notifier: ChangeNotifier?
        if connection.streams[index].isWatch {
          connection.hasWatched = true
          notifier = watchers.add(connection.token, watching: connection.streams[index].store)
        }
        switch continueStream(&connection.streams[index], notifier, into: &replies) {
        case .unfinished: isAnyReady = true
        case .ended: connection.endStream(at: index)
        case .waiting(let read, let pause):
          if connection.streams[index].remainder.isEmpty { connection.endStream(at: index) }
          return wait(for: read, pause, &connection)
        }
      }
    }
  }

  /// What has become of a stream when its next frame was to be made.
  enum StreamProgress {
    case unfinished, ended
    /// The frame needs values that only the disk has.
    case waiting(ValueRead, Pause)
  }

  /// Appends the next frame of a stream.
  /// - Parameter notifier: what wakes the worker when there are more changes; nil unless the stream is a watch.
  mutating func continueStream(
    _ stream: inout ReplyStream, _ notifier: ChangeNotifier? = nil, into replies: inout ReplyBuffer
  ) -> StreamProgress {
    updateClock()
    defer { timeHasPassed() }
    if case .changes(var watch) = stream.remainder {
      defer { stream.remainder = .changes(watch) }
      return continueWatch(&stream, &watch, notifier, into: &replies) ? .unfinished : .ended
    }
    switch stream.remainder {
    case .found(let found, let next): return continueFind(&stream, found, from: next, into: &replies)
    case .rows(let rows, let next):
      return continueRows(&stream, rows, from: next, into: &replies) ? .unfinished : .ended
    default: break
    }
    guard let snapshot = stream.snapshot else { preconditionFailure("a stream of entries has a snapshot") }
    let start = replies.bytes.beginReply(id: stream.id)
    let shownRevision: UInt64
    do throws(StorageError) {
      (stream.remainder, shownRevision) = try stream.store.access { map throws(StorageError) in
        try appendEntries(of: stream.remainder, in: snapshot, toFrameAt: start, &map, of: &replies)
      }
    } catch {
      replies.truncate(to: start)
      replies.appendError(error, stream.id)
      return .ended
    }
    return finishFrame(at: start, of: &stream, showing: shownRevision, into: &replies)
  }

  /// Ends a frame of entries whose records have been appended, and takes it off what is left to send.
  mutating func finishFrame(
    at start: Int, of stream: inout ReplyStream, showing revision: UInt64, into replies: inout ReplyBuffer
  ) -> StreamProgress {
    replies.bytes.endFrame(start)
    if !stream.remainder.isEmpty { replies.markMore(frameAt: start) }
    stream.didSend(replies.bytes.count - start, now: now)
    if replies.lacksValues {
      switch replies.readCachedValues(of: stream.id, from: start) {
      case .complete: break
      case .failed: return .ended
      case .onDisk(let frame):
        let read = ValueRead(frame, of: stream.id, stream.store, showing: revision)
        return .waiting(read, .frame(read))
      }
    }
    if let commitWriter = stream.store.commitWriter { replies.require(revision, commitWriter) }
    return stream.remainder.isEmpty ? .ended : .unfinished
  }

  /// The earliest time, in milliseconds, at which a stream of a connection ends for lack of credit; nil if none lacks
  /// it. Watches don't end.
  func creditDeadline(of connection: borrowing Connection) -> UInt64? {
    var earliest: UInt64?
    for stream in connection.streams where stream.credit <= 0 && !stream.isWatch {
      let deadline = stream.lastSent + limits.streamTimeout.wholeMilliseconds
      earliest = min(earliest ?? .max, deadline)
    }
    return earliest
  }

  /// Ends the streams whose client has sent no credit for too long, and those that lack credit when their client sends
  /// nothing more.
  /// - Returns: whether there were any.
  mutating func endStreamsWithoutCredit(of connection: inout Connection, into replies: inout ReplyBuffer) -> Bool {
    let timeout = limits.streamTimeout
    var hasEnded = false
    let inputHasEnded = connection.phase == .inputEnded && !connection.hasInput
    for index in connection.streams.indices.reversed() where connection.streams[index].credit <= 0 {
      let stream = connection.streams[index]
      guard inputHasEnded || !stream.isWatch && stream.lastSent + timeout.wholeMilliseconds <= now else { continue }
      recordEnd(of: stream, .answerExpired)
      replies.appendError(
        .answerExpired, connection.endStream(at: index),
        inputHasEnded ? "no credit can arrive, because the client sends no more" : "no credit arrived for \(timeout)")
      hasEnded = true
    }
    return hasEnded
  }

  /// Ends the streams of dropped stores, with or without credit. A stream that waits for a job ends with the job.
  /// - Returns: whether there were any.
  mutating func endStreamsOfDroppedStores(of connection: inout Connection, into replies: inout ReplyBuffer) -> Bool {
    var hasEnded = false
    for stream in connection.streams where stream.runningJob == nil && stream.store.access({ $0.isDropped }) {
      connection.endStream(id: stream.id)
      replies.appendError(.storeUnknown, stream.id, "store \(stream.store.name) was dropped")
      hasEnded = true
    }
    return hasEnded
  }

  /// Ends the streams of stores that the connection may not use any more as the requests did.
  /// - Returns: whether there were any.
  mutating func endForbiddenStreams(of connection: inout Connection, into replies: inout ReplyBuffer) -> Bool {
    var hasEnded = false
    for index in connection.streams.indices.reversed() {
      let stream = connection.streams[index]
      // A change that takes place before the rights change is told of.
      if stream.operation.descriptor.right <= connection.grants.right(on: stream.store.name) || !stream.tryCancel() {
        continue
      }
      let action = Self.action(stream.operation, on: stream.store.name)
      replies.appendError(.notPermitted, stream.id, server.accessControl.refuse(action, to: connection))
      recordEnd(of: stream, .notPermitted)
      connection.endStream(at: index)
      hasEnded = true
    }
    return hasEnded
  }

  // MARK: Entries

  /// Appends records until there are no more, or the frame that begins at `start` is full.
  /// - Returns: what is left to send, and the newest revision among the entries.
  private mutating func appendEntries(
    of remainder: ReplyStream.Remainder, in snapshot: Snapshot, toFrameAt start: Int, _ map: inout EntryMap,
    of replies: inout ReplyBuffer
  ) throws(StorageError) -> (ReplyStream.Remainder, newestRevision: UInt64) {
    switch remainder {
    case .scan(let scan):
      let (rest, newest) = try appendEntries(of: scan, in: snapshot, toFrameAt: start, &map, of: &replies)
      return (.scan(rest), newest)
    case .entries(let handles, var next):
      try map.check(snapshot)
      var newest: UInt64 = 0
      while next < handles.count {
        var entry: EntryView?
        if handles[next] != 0 { entry = map.entry(at: handles[next]) }
        if let expiry = entry?.expiry, expiry != 0, expiry <= now { entry = nil }
        guard appendRecord(of: entry, toFrameAt: start, of: &replies) else { break }
        newest = max(newest, entry?.revision ?? 0)
        next += 1
      }
      return (.entries(handles, next: next), newest)
    case .keys(var keys):
      try map.check(snapshot)
      var newest: UInt64 = 0
      for _ in 0..<Self.maxKeysPerFrame {
        var rest = keys.list
        guard let key = unsafe rest.next(keys.bytes.span.bytes) else { break }
        let handle = unsafe try map.handle(of: keys.bytes.span.bytes.extracting(key), in: snapshot)
        var entry = handle == 0 ? nil : map.entry(at: handle)
        if let expiry = entry?.expiry, expiry != 0, expiry <= now { entry = nil }
        guard appendRecord(of: entry, toFrameAt: start, of: &replies) else { break }
        newest = max(newest, entry?.revision ?? 0)
        keys.list = rest
      }
      return (.keys(keys), newest)
    case .changes, .running, .found, .rows: preconditionFailure("the stream has frames of another kind")
    }
  }

  /// Appends the records of a scan until the frame that begins at `start` is full.
  /// - Returns: the rest of the scan, and the newest revision among the entries.
  private mutating func appendEntries(
    of scan: ReplyStream.Scan, in snapshot: Snapshot?, toFrameAt start: Int, _ map: inout EntryMap,
    of replies: inout ReplyBuffer
  ) throws(StorageError) -> (ReplyStream.Scan, newestRevision: UInt64) {
    var isFull = false
    var newest: UInt64 = 0
    let visited = try map.scan(ranks: scan.ranks, reverse: scan.isReverse, in: snapshot, now: now) { entry in
      let size = unsafe entry.headerSize + entry.key.count + (scan.isKeysOnly ? 0 : entry.valueByteCount)
      isFull = !fits(size, inFrameAt: start, of: replies)
      if isFull { return false }
      newest = max(newest, entry.revision)
      replies.appendEntry(entry, withKey: true, withValue: !scan.isKeysOnly, now: now)
      return true
    }
    var rest = scan
    rest.dropFirst(isFull ? visited - 1 : visited)
    return (rest, newest)
  }

  /// Appends the get-many record of an entry, or of an absent one.
  /// - Returns: false, and appends nothing, if the frame is full.
  @inline(__always)
  private mutating func appendRecord(of entry: EntryView?, toFrameAt start: Int, of replies: inout ReplyBuffer) -> Bool
  {
    guard let entry else {
      guard fits(EntryRecord.headerSize, inFrameAt: start, of: replies) else { return false }
      replies.bytes.appendMissingEntry()
      return true
    }
    guard fits(entry.headerSize + entry.valueByteCount, inFrameAt: start, of: replies) else { return false }
    replies.appendEntry(entry, withKey: false, now: now)
    return true
  }

  func fits(_ recordSize: Int, inFrameAt start: Int, of replies: borrowing ReplyBuffer) -> Bool {
    let bodySize = replies.bytes.count - start - Frame.headerSize
    return bodySize == 0 || bodySize + recordSize <= maxStreamFrameBody
  }
}

extension EntryView {
  /// The size of its entry record before the key, in bytes.
  var headerSize: Int { EntryRecord.headerSize + (expiry == 0 ? 0 : 8) }
}

extension ScanRequest {
  /// The ranks of the requested page among the ranks that match.
  fileprivate func page(of matches: Range<Int>) -> Range<Int> {
    let skipped = Int(clamping: min(offset, UInt64(matches.count)))
    let taken = min(limit, matches.count - skipped)
    if isReverse {
      let end = matches.upperBound - skipped
      return end - taken..<end
    }
    let start = matches.lowerBound + skipped
    return start..<start + taken
  }
}
