import Glibc
import Platform
import Storage
import Wire

/// Runs the server's request processing on an arbitrary stream of frames, without a socket. For fuzzing, this file is
/// compiled as part of the module LarderServer.
///
/// A run passes if nothing traps, the output consists of whole frames within the limits, nothing follows a notice, the
/// same stream split in two gives the same frames, and a client that may only read changes nothing. The first byte
/// selects where the stream is split. Finds, aggregations, changes of matching documents and large applies run when the
/// stream has ended, on this thread.
@_cdecl("fuzzRequests")
public func fuzzRequests(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  unsafe FuzzedStream.check(start, count) { Exchange(permitting: $0).replies(to: $1, splitAt: $2) }
  return 0
}

/// Runs the same from the hello on, on a server that admits only the owner of a token.
///
/// A run passes if, beyond that, a stream without the token gets no right.
@_cdecl("fuzzHello")
public func fuzzHello(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let bytes = unsafe RawSpan(_unsafeStart: start, byteCount: count)
  let text = String(decoding: bytes.toArray(), as: UTF8.self)
  let replies = Exchange(permitting: nil).replies(to: bytes, splitAt: count / 2)
  if !text.contains(FuzzedStream.token), replies.count > 8, replies[0] == Outcome.done.rawValue {
    fatalError("a client without the token was admitted")
  }
  return 0
}

/// A connection with its own server, in the same initial state every time.
private struct Exchange: ~Copyable {
  private let server: ServerState
  private let grants: Grants
  private var connection: Connection
  private var executor: Executor
  private let session = NativeSession()
  private var output = ReplyBuffer()

  /// The number of the upload that requests can name: that of the golden vectors.
  private static let uploadNumber: UInt64 = 0x0123_4567_89AB_CDEF

  /// - Parameter grants: What the client may do; nil for one that has yet to say hello.
  init(permitting grants: Grants?) {
    self.grants = grants ?? Grants()
    var limits = ServerLimits()
    limits.stores = 4
    limits.maxOpenStores = 3
    limits.maxRequestsInFlight = 4
    limits.maxKeysPerRequest = 64
    limits.maxFrameBytes = 1 << 16
    // Four jobs for the connection, which end at the same point every time.
    limits.finds = 16
    limits.findTime = .seconds(3_600)
    server = ServerState(limits: limits, workerCount: 1, findThreadCount: 1)
    server.accessControl.change(grants == nil ? FuzzedStream.policyOfToken : FuzzedStream.policy)
    executor = Executor(server: server, metrics: server.workers[0], mailbox: FuzzedStream.mailbox)
    executor.beginWakeup(now: 1_000)
    // The connection has no descriptor, because nothing here receives or sends.
    let sharer = ConnectionSharer(Sharer(.anonymous, connection: 1))
    connection = Connection(
      ByteChannel(Descriptor(owning: -1)), token: ConnectionToken(0), session, listener: 0,
      server.registry.add(.unknown, now: 1_000), sharer, input: InputMemory(server.buffers, sharer) {},
      clientState: nil, now: 1_000)
    // Its figures depend on time and chance, so they are not reported.
    server.registry.remove(connection.figures)
    if let grants {
      connection.phase = .open
      connection.grants = grants
    }
    connection.credit = 1_000
    connection.uploads = Uploads([
      ValueUpload(server.buffers, for: sharer.current, number: Self.uploadNumber, now: 1_000) {}
    ])
    for (index, name) in ["a", "b"].enumerated() {
      guard let name = try? StoreName(name), let store = try? server.stores.create(name, .init(.memory)),
        connection.stores.open(store, self.grants.rights(to: name), limit: 3) == UInt16(index + 1)
      else { fatalError("no store") }
    }
  }

  /// Returns the frames in reply to a stream, including those of its reply streams as far as their credit allows.
  consuming func replies(to stream: RawSpan, splitAt split: Int) -> [UInt8] {
    var replies: [UInt8] = []
    var input = ByteBuffer()
    let isGradual = createsIndexes(stream)
    for part in [0..<split, split..<stream.byteCount] {
      input.append(stream.extracting(part))
      var isAtEnd = false
      // Requests for which the output had no room are processed once it has been sent.
      while !isAtEnd {
        // A copy, so that the buffer can be consumed while the copy is in use.
        var bytes = input.toArray()
        if isGradual {
          waitForIndexes()
          if case .frame(let header) = unsafe FrameScan(bytes.span.bytes, at: 0, maxLength: 1 << 16) {
            bytes.removeLast(bytes.count - header.frameSize)
          }
        }
        let before = bytes.count
        var consumed = 0
        let prefetchEnd = unsafe session.prefetch(bytes.span.bytes, of: &connection, on: &executor)
        executor.prefetchRecords()
        unsafe consumed = session.process(
          bytes.span.bytes, of: &connection, prefetchEnd: prefetchEnd, on: &executor, into: &output)
        executor.unlockStore()
        while connection.waits.isPaused {
          // Another thread changes the stores.
          if FuzzedStream.mailbox.read().endedPauses.contains(where: { connection.waits.isPaused(as: $0) }) {
            session.endPause(of: &connection, isOverdue: false, on: &executor, into: &output)
          } else {
            sched_yield()
          }
        }
        guard consumed >= 0, consumed <= before else { fatalError("more bytes were consumed than there are") }
        input.consume(consumed)
        isAtEnd = isGradual ? consumed == 0 : output.isEmpty || !connection.executes
        replies += takeOutput()
      }
    }
    if connection.executes {
      replies += finishJobs()
      replies += finishAnswers()
    }
    connection.endAllStreams()
    // What has been posted belongs to jobs that have ended.
    _ = FuzzedStream.mailbox.read()
    waitForIndexes()
    for name in ["a", "b"] {
      guard let name = try? StoreName(name), let store = try? server.stores.open(name) else { continue }
      let (snapshots, watchers, revision) = store.access {
        ($0.snapshotCount, $0.feed?.watcherCount ?? 0, $0.revisions.last)
      }
      if snapshots != 0 || watchers != 0 { fatalError("a snapshot or a watcher was not released") }
      FuzzedStream.checkKeys(of: store, grants)
      if grants.onAll < .write, !grants.rights(to: name).dependOnKeys, !isAdmitted,
        revision != 0 || !store.indexReports.isEmpty
      {
        fatalError("a client that may not write has written, or created an index")
      }
    }
    if server.jobs.openCount != 0 { fatalError("a job has not ended") }
    if grants.onAll < .admin, !isAdmitted, server.stores.list().count != 2 {
      fatalError("a client that is no administrator has created or dropped a store")
    }
    return replies
  }

  /// Whether the client has said hello with the token.
  private var isAdmitted: Bool { connection.accessToken != nil }

  // MARK: Indexes

  /// Whether a stream may create indexes. It is then processed frame by frame, so that each index is complete for the
  /// frames after it: otherwise, replies would depend on how fast it is built.
  private func createsIndexes(_ stream: RawSpan) -> Bool {
    var offset = 0
    while case .frame(let header) = FrameScan(stream, at: offset, maxLength: 1 << 16) {
      if header.kind == Operation.indexEnsure.rawValue { return true }
      offset += header.frameSize
    }
    return false
  }

  /// Waits until the indexes of all stores are complete, and what built them has ended.
  private func waitForIndexes() {
    for store in server.stores.list() where !store.indexReports.isEmpty {
      while store.indexReports.contains(where: { $0.state != .complete }) { sched_yield() }
      // A stream of this connection may hold a snapshot.
      var rounds = 0
      while store.access({ $0.snapshotCount }) > connection.streams.count, rounds < 1_000 {
        usleep(100)
        rounds += 1
      }
    }
  }

  // MARK: Replies

  /// Runs the jobs to their end and begins their replies.
  private mutating func finishJobs() -> [UInt8] {
    var batch = DocumentBatch()
    for index in connection.streams.indices.reversed() {
      guard let job = connection.streams[index].runningJob else { continue }
      while case .needsTurn = job.takeTurn(&batch, on: server.jobs) {}
      session.beginReply(to: job, of: &connection, on: &executor, into: &output)
    }
    return takeOutput()
  }

  private mutating func finishAnswers() -> [UInt8] {
    var replies: [UInt8] = []
    for index in connection.streams.indices.reversed() {
      connection.streams[index].addCredit(ReplyStream.maxCredit)
      while connection.streams[index].isReady,
        case .unfinished = session.continueStream(&connection.streams[index], on: &executor, into: &output)
      {}
      connection.endStream(at: index)
      replies += takeOutput()
    }
    return replies
  }

  /// Returns and clears the output, which must consist of whole frames, none too long and none after a notice. Figures
  /// are omitted, because some of them depend on time and chance, and so are the reports of indexes.
  private mutating func takeOutput() -> [UInt8] {
    let bytes = output.bytes.toArray()
    var kept: [UInt8] = []
    var offset = 0
    while offset < bytes.count {
      guard case .frame(let header) = unsafe FrameScan(bytes.span.bytes, at: offset, maxLength: 1 << 16),
        Outcome(rawValue: header.kind) != nil, ErrorCode(rawValue: header.detail) != nil
      else { fatalError("no frame in the output at \(offset)") }
      let body = Array(bytes[header.body(at: offset)])
      kept += bytes[offset + 4..<offset + Frame.headerSize] + (isUploadNumber(body) ? [] : Self.repeatable(body))
      offset += header.frameSize
      if header.id == 0, offset != bytes.count { fatalError("something follows a notice") }
    }
    output.bytes.removeAll()
    return kept
  }

  /// Whether a body is the number of an upload that has begun, which is random.
  private func isUploadNumber(_ body: [UInt8]) -> Bool {
    guard body.count == 8, let number = body.span.bytes.integer(at: 0, as: UInt64.self) else { return false }
    return number != Self.uploadNumber && connection.uploads[number] != nil
  }

  private static let firstFigures = ["uptime_milliseconds", "entries"]

  /// Returns the part of a reply that is the same every time.
  private static func repeatable(_ body: [UInt8]) -> [UInt8] {
    if firstFigures.contains(where: { body.dropFirst().starts(with: $0.utf8) }) { return [] }
    if body.starts(with: "[{\"".utf8) { return [] }
    let bytes = body.span.bytes
    if unsafe MatchingChanges(bytes) != nil { return Array(body.dropLast(8)) }
    // The first record of a watch may have the incarnation of a store, which is random.
    if let record = unsafe ChangeRecord(bytes, at: ChangeRecord.throughSize), record.kind == .incarnation {
      return Array(body[..<16] + body[24...])
    }
    var offset = 0
    while let entry = unsafe EntryRecord(bytes, at: offset) { offset = entry.end }
    guard let result = unsafe FindResult(bytes, at: offset) else { return body }
    let steady = FindResult(
      revision: result.revision, examinedDocuments: result.examinedDocuments, examinedKeys: result.examinedKeys,
      found: result.found, nanoseconds: 0, text: result.text)
    var buffer = ByteBuffer()
    buffer.append(steady)
    return body[..<offset] + buffer.toArray()
  }
}
