import Documents
import Storage
import Wire

/// Requests on all documents of a store that match: `Protocol/wire.md` §6.7 to §6.9.
///
/// A request opens a reply stream that waits for a `DocumentJob`. Once the job has found the documents' handles, the
/// stream of a find sends the documents like any other entries.
extension RequestProcessor {
  /// The number of frames that take long which are made in a row, so that their connections' worker gets to serve others.
  static let maxSlowFrames = 4
  /// The size of the documents, in bytes, after which a frame with fields of them ends.
  private static let maxProjectedBytes = 256 << 10
  /// The number of documents that are looked at under one acquisition of the store's lock.
  private static let maxHandlesPerAccess = 1_024

  /// Starts a find, an aggregation or a change. No store is locked.
  mutating func startJob(
    _ operation: Operation, _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, _ store: Store,
    into replies: inout ReplyBuffer
  ) -> RequestResult {
    guard let request = DocumentRequest(operation, body) else {
      return replies.fail(.malformed, id, BodyFlaw.ofDocuments(body, of: operation))
    }
    if let failure = rejectStream(id, &connection, into: &replies) { return failure }
    if store.access({ $0.expireBriefly(now: now) }) { return .deferred }
    if server.memory.isExhausted { return failForMemory(id, into: &replies) }
    let snapshot = store.access { map in map.isDropped ? nil : map.snapshot(now: now) }
    guard let snapshot else { return replies.fail(.storeUnknown, id, "store \(store.name) was dropped") }
    let job = DocumentJob(
      request, body, for: connection.token, connection.sharer, of: store, in: snapshot, now: now, limits: limits,
      mailbox)
    let isPending = !job.runBriefly()
    let share = isPending ? openPlace(for: job, connection) : nil
    var stream = ReplyStream(
      id: id, operation: operation, store: store, snapshot: snapshot, remainder: .running(job), share: share,
      credit: operation == .changeMatching ? ReplyStream.maxCredit : connection.credit, now: now)
    if isPending, share == nil {
      stream.end()
      return failForPlaces(id, into: &replies)
    }
    if !isPending {
      recordWork(of: job)
      switch job.outcome {
      case .success(.found(let found)): stream.remainder = .found(found, next: 0)
      case .failure(let failure):
        stream.end()
        return replies.fail(failure.code, id, failure.message)
      default: preconditionFailure("only finds run at once")
      }
    }
    connection.streams.append(stream)
    if job.changesEntries { connection.awaitChange() }
    return RequestResult(isPending: isPending)
  }

  /// Starts an apply with updates, whose body is valid. Its store is locked.
  mutating func startApply(
    _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, _ store: Store, _ map: inout EntryMap,
    into replies: inout ReplyBuffer
  ) -> RequestResult {
    if let failure = rejectStream(id, &connection, into: &replies) { return failure }
    if server.memory.isExhausted { return failForMemory(id, into: &replies) }
    let snapshot = map.snapshot(now: now)
    let job = DocumentJob(
      .apply, body, for: connection.token, connection.sharer, of: store, in: snapshot, now: now, limits: limits, mailbox
    )
    guard let share = openPlace(for: job, connection) else {
      map.end(snapshot)
      return failForPlaces(id, into: &replies)
    }
    connection.streams.append(
      ReplyStream(
        id: id, operation: .apply, store: store, snapshot: snapshot, remainder: .running(job), share: share,
        credit: ReplyStream.maxCredit, now: now))
    connection.awaitChange()
    return RequestResult(isPending: true)
  }

  private func failForMemory(_ id: UInt32, into replies: inout ReplyBuffer) -> RequestResult {
    replies.fail(.tooManyRequests, id, "the server has reached its memory limit; try again later")
  }

  private func failForPlaces(_ id: UInt32, into replies: inout ReplyBuffer) -> RequestResult {
    replies.fail(
      .tooManyRequests, id,
      """
      there are \(limits.finds) unfinished finds already, or a quarter of that on this connection (limits.finds), and \
      no other client has more than this one; wait for the replies to others first
      """)
  }

  /// Makes room for another job, unless the server or the connection has too many.
  private func openPlace(for job: DocumentJob, _ connection: borrowing Connection) -> Share? {
    guard connection.streams.count(where: { $0.runningJob != nil }) < (limits.finds + 3) / 4 else { return nil }
    return server.jobs.open(job, limit: limits.finds)
  }

  /// Gives the new jobs of a connection to the runner. Call it without a store's lock, because it may wake a thread.
  mutating func startJobs(of connection: inout Connection) {
    for index in connection.streams.indices { connection.streams[index].runningJob?.start(on: server.jobs) }
  }

  /// Begins the reply to a job that has ended, if the connection still waits for it.
  mutating func beginReply(
    to job: DocumentJob, of connection: inout Connection, into replies: inout ReplyBuffer
  ) {
    guard let index = connection.streams.firstIndex(where: { $0.runningJob === job }) else { return }
    switch job.outcome {
    case .success(.found(let found)):
      guard keep(.found(found), at: index, of: &connection, into: &replies) else {
        return record(.notExecuted, of: job)
      }
      connection.streams[index].remainder = .found(found, next: 0)
    case .success(.rows(let rows)):
      guard keep(.rows(rows), at: index, of: &connection, into: &replies) else { return record(.notExecuted, of: job) }
      connection.streams[index].remainder = .rows(rows, next: 0)
    case .success(.changed(let changes, let shownRevision)):
      let start = replies.bytes.beginReply(id: connection.endStream(at: index))
      replies.bytes.append(changes)
      replies.bytes.endFrame(start)
      if let commitWriter = job.store.commitWriter { replies.require(shownRevision, commitWriter) }
    case .success(.applied(let revision, let shownRevision)):
      replies.bytes.appendReply(id: connection.endStream(at: index), number: revision)
      if let commitWriter = job.store.commitWriter { replies.require(shownRevision, commitWriter) }
    case .failure(let failure):
      replies.appendError(failure.code, connection.endStream(at: index), failure.message)
      if failure.shownRevision > 0, let commitWriter = job.store.commitWriter {
        replies.require(failure.shownRevision, commitWriter)
      }
      return record(failure.code.outcome, of: job)
    case nil: preconditionFailure("a job that was posted has an outcome")
    }
    record(.done, of: job)
  }

  // MARK: Results

  /// Makes room for what a job has found. A stream that only waits for credit has no share of the jobs.
  /// - Returns: false if there is no room, and the stream has ended with an error.
  private mutating func keep(
    _ result: JobResult, at index: Int, of connection: inout Connection, into replies: inout ReplyBuffer
  ) -> Bool {
    guard result.byteCount > 0 else {
      connection.streams[index].exchangeShare(for: nil)
      return true
    }
    let share = server.results.take(result.byteCount, for: connection.sharer, limit: limits.maxResultBytes) {
      [mailbox] in mailbox.postRevokedShare()
    }
    guard let share else {
      replies.appendError(
        .tooManyRequests, connection.endStream(at: index),
        """
        what was found takes \(result.byteCount) bytes, and what clients have not read yet takes nearly \
        \(limits.maxResultBytes) (limits.result-memory), no other client more than this one; read other replies first
        """)
      return false
    }
    connection.streams[index].exchangeShare(for: share)
    return true
  }

  /// Ends the streams that have to give up their memory to other clients. (A stream that waits for a job ends with the
  /// job.)
  /// - Returns: Whether there were any.
  mutating func endRevokedStreams(of connection: inout Connection, into replies: inout ReplyBuffer) -> Bool {
    var hasEnded = false
    for stream in connection.streams where stream.runningJob == nil && stream.share?.isRevoked == true {
      connection.endStream(id: stream.id)
      replies.appendError(
        .answerExpired, stream.id,
        "other clients need the memory of what this client has found and not read (limits.result-memory)")
      hasEnded = true
    }
    return hasEnded
  }

  // MARK: Rows

  /// Appends the next frame of an aggregation's reply.
  /// - Returns: Whether the stream has more to send.
  mutating func continueRows(
    _ stream: inout ReplyStream, _ rows: AggregatedRows, from first: Int, into replies: inout ReplyBuffer
  ) -> Bool {
    let start = replies.bytes.beginReply(id: stream.id)
    var next = first
    while next < rows.rows.count, fits(EntryRecord.headerSize + rows.rows[next].count, inFrameAt: start, of: replies) {
      let key = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
      unsafe rows.rows[next].withUnsafeBytes { row in
        unsafe replies.bytes.appendEntry(kind: .single, revision: 0, expiry: 0, key: key, value: row)
      }
      next += 1
    }
    if next == rows.rows.count, fits(rows.result.size, inFrameAt: start, of: replies) {
      replies.bytes.append(rows.result)
      next += 1
    }
    replies.bytes.endFrame(start)
    if let snapshot = stream.snapshot, let commitWriter = stream.store.commitWriter {
      replies.require(snapshot.revision, commitWriter)
    }
    stream.remainder = .rows(rows, next: next)
    if !stream.remainder.isEmpty { replies.markMore(frameAt: start) }
    stream.didSend(replies.bytes.count - start, now: now)
    return !stream.remainder.isEmpty
  }

  // MARK: Documents

  /// How far the documents of a frame go.
  private enum AppendedDocuments {
    /// To the document at this position among the handles, which is left to send.
    case upTo(Int)
    /// Nothing was appended, because the fields of this document can't be made before it is read from the disk.
    case nothing(MissingValue, handle: UInt32)
  }

  /// Appends the next frame of a find's reply.
  mutating func continueFind(
    _ stream: inout ReplyStream, _ found: FoundDocuments, from first: Int, into replies: inout ReplyBuffer
  ) -> StreamProgress {
    guard let snapshot = stream.snapshot else { preconditionFailure("a find has a snapshot") }
    let start = replies.bytes.beginReply(id: stream.id)
    var next: Int
    do throws(JobFailure) {
      switch try appendDocuments(found, from: first, of: &stream, in: snapshot, toFrameAt: start, of: &replies) {
      case .upTo(let position): next = position
      case .nothing(let value, let handle):
        replies.truncate(to: start)
        let read = ValueRead(IncompleteFrame(value), of: stream.id, stream.store, showing: 0)
        return .waiting(read, .document(read, handle: handle))
      }
    } catch {
      replies.truncate(to: start)
      replies.appendError(error.code, stream.id, error.message)
      return .ended
    }
    if next == found.handles.count, fits(found.result.size, inFrameAt: start, of: replies) {
      replies.bytes.append(found.result)
      next += 1
    }
    stream.remainder = .found(found, next: next)
    // Even what did not match reveals the snapshot.
    return finishFrame(at: start, of: &stream, showing: snapshot.revision, into: &replies)
  }

  /// Appends the records of documents until there are no more, or the frame is full.
  private mutating func appendDocuments(
    _ found: FoundDocuments, from first: Int, of stream: inout ReplyStream, in snapshot: Snapshot,
    toFrameAt start: Int, of replies: inout ReplyBuffer
  ) throws(JobFailure) -> AppendedDocuments {
    if let projection = found.projection {
      return try appendFields(
        projection, found.handles, from: first, of: stream.store, in: snapshot, read: stream.readDocument.take(),
        toFrameAt: start, of: &replies)
    }
    let (handles, store) = (found.handles, stream.store)
    var next = first
    var isFull = false
    while next < handles.count, !isFull {
      do throws(StorageError) {
        try store.access { map throws(StorageError) in
          try map.check(snapshot)
          let end = min(next + Self.maxHandlesPerAccess, handles.count)
          while next < end {
            let entry = map.entry(at: handles[next])
            if !entry.isExpired(at: now) {
              let size = unsafe entry.headerSize + entry.key.count + entry.valueByteCount
              isFull = !fits(size, inFrameAt: start, of: replies)
              if isFull { return }
              replies.appendEntry(entry, withKey: true, now: now)
            }
            next += 1
          }
        }
      } catch { throw JobFailure(error) }
    }
    return .upTo(next)
  }

  /// Appends records with fields of documents until there are no more, the frame is full, enough documents were read,
  /// or the next one has to be read from the disk.
  /// - Parameter read: A document that was read from the disk, and its handle.
  private mutating func appendFields(
    _ projection: EntryProjection, _ handles: [UInt32], from first: Int, of store: Store, in snapshot: Snapshot,
    read: (handle: UInt32, read: ValueRead)?, toFrameAt start: Int, of replies: inout ReplyBuffer
  ) throws(JobFailure) -> AppendedDocuments {
    var next = first
    var byteCount = 0
    while next < handles.count, byteCount < Self.maxProjectedBytes {
      let copiedCount: Int
      do throws(StorageError) {
        copiedCount = try documents.copy(handles[next...], of: store, in: snapshot, now: now)
      } catch { throw JobFailure(error) }
      for index in 0..<documents.count {
        let entry = documents[index]
        let object: [UInt8]
        let key = documents.key(of: index)
        if let read, read.handle == entry.head.handle {
          object = unsafe projection.object(
            of: read.read.bytes.bytes.bindMemory(to: UInt8.self).span, key: key.span,
            revision: entry.head.revision)
        } else {
          let contents = try documents.withCachedContents(of: index, store, in: snapshot) { key, value in
            projection.object(of: value, key: key, revision: entry.head.revision)
          }
          switch contents {
          case .result(let made): object = made
          case .onDisk(let value):
            if replies.bytes.count - start == Frame.headerSize { return .nothing(value, handle: entry.head.handle) }
            return .upTo(handles[next...].firstIndex(of: entry.head.handle) ?? next)
          }
        }
        guard try appendRecord(of: entry, key, object, toFrameAt: start, of: &replies) else {
          return .upTo(handles[next...].firstIndex(of: entry.head.handle) ?? next)
        }
      }
      next += copiedCount
      byteCount += documents.byteCount
    }
    return .upTo(next)
  }

  /// Appends the record of a document of which some fields are sent.
  /// - Returns: false, and appends nothing, if the frame is full.
  private func appendRecord(
    of entry: DocumentBatch.Entry, _ key: ArraySlice<UInt8>, _ object: [UInt8], toFrameAt start: Int,
    of replies: inout ReplyBuffer
  ) throws(JobFailure) -> Bool {
    let lifetime = entry.head.expiry == 0 ? 0 : entry.head.expiry - now
    let size = EntryRecord.headerSize + (lifetime == 0 ? 0 : 8) + key.count + object.count
    guard size <= limits.maxFrameBytes - Frame.minLength else {
      let name = String(decoding: key.prefix(128), as: UTF8.self)
      throw JobFailure(
        .valueTooLarge, "the fields of \"\(name)\" are larger than a frame (limits.frame-bytes); ask for fewer fields")
    }
    guard fits(size, inFrameAt: start, of: replies) else { return false }
    unsafe key.withUnsafeBytes { key in
      unsafe object.withUnsafeBytes { value in
        unsafe replies.bytes.appendEntry(
          kind: .single, revision: entry.head.revision, expiry: lifetime, key: key, value: value)
      }
    }
    return true
  }
}

extension EntryView {
  fileprivate func isExpired(at now: UInt64) -> Bool { expiry != 0 && expiry <= now }
}
