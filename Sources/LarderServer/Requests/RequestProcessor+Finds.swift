import Documents
import Storage
import Wire

/// Finds of documents: `Protocol/wire.md` §6.7.
///
/// A request opens a reply stream that waits for a `FindJob`. Once the job has found the documents' handles, the stream
/// sends the documents like any other entries.
extension RequestProcessor {
  /// The number of frames with fields that are made in a row, so that their connections' worker gets to serve others.
  static let maxProjectingFrames = 4
  /// The size of the documents, in bytes, after which a frame with fields of them ends.
  private static let maxProjectedBytes = 256 << 10
  /// The number of documents that are looked at under one acquisition of the store's lock.
  private static let maxHandlesPerAccess = 1_024

  mutating func find(
    _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, _ store: Store, _ map: inout EntryMap,
    into replies: inout ReplyBuffer
  ) -> RequestResult {
    guard let request = FindRequest(body) else { return replies.fail(.malformed, id) }
    if let failure = rejectStream(id, &connection, into: &replies) { return failure }
    guard let slot = server.finds.open(limit: limits.finds) else {
      return replies.fail(
        .tooManyRequests, id, "the server already has \(limits.finds) unfinished finds (limits.finds); try again later")
    }
    let snapshot = map.snapshot(now: now)
    let job = FindJob(
      request, body, for: connection.token, of: store, in: snapshot, now: now, limits: limits, slot, mailbox)
    connection.streams.append(
      ReplyStream(
        id: id, store: store, snapshot: snapshot, remainder: .finding(job), credit: connection.credit, now: now))
    return RequestResult()
  }

  /// Gives the new finds of a connection to the runner. Call it without a store's lock, because it may wake a thread.
  mutating func startFinds(of connection: inout Connection) {
    for index in connection.streams.indices { connection.streams[index].startFind(on: server.finds) }
  }

  /// Begins the reply to a find that has ended, if the connection still waits for it.
  mutating func beginReply(
    to job: FindJob, of connection: inout Connection, into replies: inout ReplyBuffer
  ) {
    guard let index = connection.streams.firstIndex(where: { $0.isWaiting(for: job) }) else { return }
    switch job.outcome {
    case .success(let found): connection.streams[index].remainder = .found(found, next: 0)
    case .failure(let failure):
      replies.appendError(failure.code, connection.endStream(at: index), failure.message)
    case nil: preconditionFailure("a find that was posted has an outcome")
    }
  }

  /// Appends the next frame of a find's reply.
  /// - Returns: Whether the stream has more to send.
  mutating func continueFind(
    _ stream: inout ReplyStream, _ found: FoundDocuments, from first: Int, into replies: inout ReplyBuffer
  ) -> Bool {
    guard let snapshot = stream.snapshot else { preconditionFailure("a find has a snapshot") }
    let start = replies.bytes.beginReply(id: stream.id)
    var next: Int
    do throws(FindFailure) {
      next = try appendDocuments(found, from: first, of: stream.store, in: snapshot, toFrameAt: start, of: &replies)
    } catch {
      replies.truncate(to: start)
      replies.appendError(error.code, stream.id, error.message)
      return false
    }
    if next == found.handles.count, fits(found.result.size, inFrameAt: start, of: replies) {
      replies.bytes.append(found.result)
      next += 1
    }
    replies.bytes.endFrame(start)
    if replies.lacksValues, replies.readValues(of: stream.id, from: start) != nil { return false }
    // Even what did not match reveals the snapshot.
    if let commitWriter = stream.store.commitWriter { replies.require(snapshot.revision, commitWriter) }
    stream.remainder = .found(found, next: next)
    if !stream.remainder.isEmpty { replies.markMore(frameAt: start) }
    stream.didSend(replies.bytes.count - start, now: now)
    return !stream.remainder.isEmpty
  }

  /// Appends the records of documents until there are no more, or the frame is full.
  /// - Returns: The position of the first document among the handles that is left to send.
  private mutating func appendDocuments(
    _ found: FoundDocuments, from first: Int, of store: Store, in snapshot: Snapshot, toFrameAt start: Int,
    of replies: inout ReplyBuffer
  ) throws(FindFailure) -> Int {
    if let projection = found.projection {
      return try appendFields(
        projection, found.handles, from: first, of: store, in: snapshot, toFrameAt: start, of: &replies)
    }
    let handles = found.handles
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
      } catch { throw FindFailure(error) }
    }
    return next
  }

  /// Appends records with fields of documents until there are no more, the frame is full, or enough documents were
  /// read.
  /// - Returns: The position of the first document among the handles that is left to send.
  private mutating func appendFields(
    _ projection: EntryProjection, _ handles: [UInt32], from first: Int, of store: Store, in snapshot: Snapshot,
    toFrameAt start: Int, of replies: inout ReplyBuffer
  ) throws(FindFailure) -> Int {
    var next = first
    var byteCount = 0
    while next < handles.count, byteCount < Self.maxProjectedBytes {
      do throws(StorageError) { try documents.copy(handles[next...], of: store, in: snapshot) } catch {
        throw FindFailure(error)
      }
      for index in 0..<documents.count {
        let entry = documents[index]
        if entry.expiry == 0 || entry.expiry > now {
          let object = try documents.withContents(of: index, store, in: snapshot) { key, value in
            projection.object(of: value, key: key, revision: entry.revision)
          }
          guard try appendRecord(of: entry, documents.key(of: index), object, toFrameAt: start, of: &replies) else {
            return next
          }
        }
        next += 1
      }
      byteCount += documents.byteCount
    }
    return next
  }

  /// Appends the record of a document of which some fields are sent.
  /// - Returns: false, and appends nothing, if the frame is full.
  private func appendRecord(
    of entry: DocumentBatch.Entry, _ key: ArraySlice<UInt8>, _ object: [UInt8], toFrameAt start: Int,
    of replies: inout ReplyBuffer
  ) throws(FindFailure) -> Bool {
    let lifetime = entry.expiry == 0 ? 0 : entry.expiry - now
    let size = EntryRecord.headerSize + (lifetime == 0 ? 0 : 8) + key.count + object.count
    guard size <= limits.maxFrameBytes - Frame.minLength else {
      let name = String(decoding: key.prefix(128), as: UTF8.self)
      throw FindFailure(
        .valueTooLarge, "the fields of \"\(name)\" are larger than a frame (limits.frame-bytes); ask for fewer fields")
    }
    guard fits(size, inFrameAt: start, of: replies) else { return false }
    unsafe key.withUnsafeBytes { key in
      unsafe object.withUnsafeBytes { value in
        unsafe replies.bytes.appendEntry(
          kind: .single, revision: entry.revision, expiry: lifetime, key: key, value: value)
      }
    }
    return true
  }
}

extension EntryView {
  fileprivate func isExpired(at now: UInt64) -> Bool { expiry != 0 && expiry <= now }
}
