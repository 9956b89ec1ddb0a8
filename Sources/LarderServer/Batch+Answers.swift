import Storage
import Wire

/// Answers of entry records, in one frame or several: `Protocol/wire.md` §5.
extension Batch {
  mutating func getMany(
    _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, _ store: Store, _ map: inout EntryMap
  ) {
    guard var rest = checkedKeys(body, id), mayAnswer(id, &connection) else { return }
    let start = output.beginReply(id: id)
    var lookedAt = 0
    while true {
      if lookedAt == 0 { lookedAt = lookAhead(rest, of: body, &map) }
      lookedAt -= 1
      var behind = rest
      guard let key = behind.next(body) else { break }
      let entry = map.get(body.extracting(key), now: now)
      if entry == nil { shownRevision = max(shownRevision, map.lastRemoval) }
      guard append(entry, toFrameAt: start) else { break }
      rest = behind
    }
    output.endFrame(start)
    guard !rest.isComplete(body) else { return }
    // What is missing from later frames is missing as of now.
    shownRevision = max(shownRevision, map.lastRemoval)
    let kept = connection.answers.reduce(0) { $0 + $1.rest.keyCount }
    guard kept + rest.remaining <= limits.keysInAnswers else {
      takeBack(to: start)
      return fail(.tooManyRequests, id, "open answers of this connection have \(kept) keys to go; read them first")
    }
    var handles: [UInt32] = []
    handles.reserveCapacity(rest.remaining)
    while let key = rest.next(body) { handles.append(map.handle(of: body.extracting(key), now: now) ?? 0) }
    keepOpen(.entries(handles, next: 0), id, frameAt: start, &connection, store, &map)
  }

  mutating func scan(
    _ operation: Operation, _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, _ store: Store,
    _ map: inout EntryMap
  ) throws(StorageError) {
    guard let request = ScanRequest(body, of: operation) else { return fail(.malformed, id) }
    guard request.prefix.count <= Key.largest, request.cursor?.count ?? 0 <= Key.largest else {
      return fail(.illegalArgument, id)
    }
    guard mayAnswer(id, &connection) else { return }
    let prefix = body.extracting(request.prefix)
    let matches: Range<Int>
    if let cursor = request.cursor {
      matches = map.ranks(prefix: prefix, after: body.extracting(cursor), reverse: request.isReverse, now: now)
    } else {
      matches = map.ranks(prefix: prefix, after: nil, reverse: request.isReverse, now: now)
    }
    let ranks = request.page(of: matches)
    shownRevision = request.offset == 0 ? map.lastRemoval : max(map.lastRemoval, map.lastInsertion)
    let start = output.beginReply(id: id)
    let rest = try appendEntries(ranks, request.isReverse, request.isKeysOnly, frameAt: start, in: nil, &map)
    output.endFrame(start)
    if !rest.isEmpty {
      keepOpen(
        .scan(ranks: rest, reverse: request.isReverse, keysOnly: request.isKeysOnly), id, frameAt: start, &connection,
        store, &map)
    }
  }

  /// Sends the next frame of an answer.
  /// - Parameter bell: is rung when there is more to tell, for a watch.
  /// - Returns: whether the answer goes on after it.
  mutating func continueAnswer(_ answer: inout Answer, _ bell: WatchBell? = nil) -> Bool {
    if case .changes(var watch) = answer.rest {
      defer { answer.rest = .changes(watch) }
      return continueWatch(&answer, &watch, bell)
    }
    guard let snapshot = answer.snapshot else { preconditionFailure("an answer shows a snapshot") }
    let start = output.beginReply(id: answer.id)
    shownRevision = 0
    do throws(StorageError) {
      answer.rest = try answer.store.access { map throws(StorageError) in
        try appendEntries(answer.rest, of: snapshot, frameAt: start, &map)
      }
    } catch {
      takeBack(to: start)
      fail(ErrorCode(error), answer.id, "\(error)")
      return false
    }
    output.endFrame(start)
    guard unread.isEmpty || readValues(of: answer.id, from: start) else { return false }
    if let commitWriter = answer.store.commitWriter { gate(shownRevision, commitWriter) }
    if !answer.rest.isEmpty { markMore(frameAt: start) }
    answer.credit -= output.count - start
    answer.waitingSince = now
    return !answer.rest.isEmpty
  }

  /// Appends records until there are no more or the frame that began at `start` is full.
  /// - Returns: what is left.
  private mutating func appendEntries(
    _ rest: Answer.Rest, of snapshot: Snapshot, frameAt start: Int, _ map: inout EntryMap
  ) throws(StorageError) -> Answer.Rest {
    switch rest {
    case .scan(let ranks, let reverse, let keysOnly):
      let rest = try appendEntries(ranks, reverse, keysOnly, frameAt: start, in: snapshot, &map)
      return .scan(ranks: rest, reverse: reverse, keysOnly: keysOnly)
    case .entries(let handles, var next):
      try map.check(snapshot)
      while next < handles.count {
        var entry: EntryView?
        if handles[next] != 0 { entry = map.entry(at: handles[next]) }
        if let expiry = entry?.expiry, expiry != 0, expiry <= now { entry = nil }
        guard append(entry, toFrameAt: start) else { break }
        next += 1
      }
      return .entries(handles, next: next)
    case .changes: preconditionFailure("a watch has no entries")
    }
  }

  /// Appends the records of `ranks` until the frame that began at `start` is full.
  /// - Returns: the ranks that are left.
  private mutating func appendEntries(
    _ ranks: Range<Int>, _ reverse: Bool, _ keysOnly: Bool, frameAt start: Int, in snapshot: Snapshot?,
    _ map: inout EntryMap
  ) throws(StorageError) -> Range<Int> {
    var isFull = false
    let visited = try map.scan(ranks: ranks, reverse: reverse, in: snapshot, now: now) { entry in
      let size = unsafe entry.headerSize + entry.key.count + (keysOnly ? 0 : entry.valueByteCount)
      isFull = !fits(size, inFrameAt: start)
      if !isFull { append(entry, withKey: true, withValue: !keysOnly) }
      return !isFull
    }
    let consumed = isFull ? visited - 1 : visited
    return reverse ? ranks.lowerBound..<ranks.upperBound - consumed : ranks.lowerBound + consumed..<ranks.upperBound
  }

  /// Appends the record of get-many for an entry, or for an absent one.
  /// - Returns: false, and appends nothing, when the frame is full.
  @inline(__always)
  private mutating func append(_ entry: EntryView?, toFrameAt start: Int) -> Bool {
    guard let entry else {
      guard fits(EntryRecord.headerSize, inFrameAt: start) else { return false }
      output.appendMissingEntry()
      return true
    }
    guard fits(entry.headerSize + entry.valueByteCount, inFrameAt: start) else { return false }
    append(entry, withKey: false)
    return true
  }

  private func fits(_ recordSize: Int, inFrameAt start: Int) -> Bool {
    let bodySize = output.count - start - Frame.headerSize
    return bodySize == 0 || bodySize + recordSize <= frameBytes
  }

  private mutating func markMore(frameAt start: Int) {
    output.replace(at: start + 5, with: Frame.more)
  }

  /// Whether a new answer may be begun under this id; otherwise the fault is in the output.
  mutating func mayAnswer(_ id: UInt32, _ connection: inout Connection) -> Bool {
    if connection.answers.contains(where: { $0.id == id }) {
      endConnection(&connection, .malformed, "an answer with id \(id) is open already")
      return false
    }
    if connection.answers.count >= limits.requestsInFlight {
      fail(.tooManyRequests, id, "\(limits.requestsInFlight) requests are in flight; wait for answers first")
      return false
    }
    return true
  }

  private mutating func keepOpen(
    _ rest: Answer.Rest, _ id: UInt32, frameAt start: Int, _ connection: inout Connection, _ store: Store,
    _ map: inout EntryMap
  ) {
    markMore(frameAt: start)
    connection.answers.append(
      Answer(
        id: id, store: store, snapshot: map.snapshot(now: now), rest: rest,
        credit: connection.credit - (output.count - start), waitingSince: now))
  }
}

extension EntryView {
  /// Bytes of its entry record ahead of the key.
  fileprivate var headerSize: Int { EntryRecord.headerSize + (expiry == 0 ? 0 : 8) }
}

extension ScanRequest {
  /// The ranks that the page has, of those that match.
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
