import Platform
import Storage
import Wire

/// Runs the server's request processing on an arbitrary stream of frames, without a socket. For fuzzing, this file is
/// compiled as part of the module LarderServer.
///
/// A run passes if nothing traps, the output consists of whole frames within the limits, nothing follows a notice, the
/// same stream split in two gives the same frames, and a client that may only read changes nothing. The first byte
/// selects where the stream is split.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRequests(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  guard count > 0 else { return 0 }
  let bytes = unsafe RawSpan(_unsafeStart: start, byteCount: count)
  let stream = bytes.extracting(1..<count)
  let split = Int(bytes.integer(at: 0, as: UInt8.self)!) * stream.byteCount / 255
  let whole = Exchange().replies(to: stream, splitAt: stream.byteCount)
  let halves = Exchange().replies(to: stream, splitAt: split)
  if whole != halves { fatalError("the stream gets other replies when it is split at \(split)") }
  _ = Exchange(permitting: .read).replies(to: stream, splitAt: split)
  return 0
}

/// A connection with its own server, in the same initial state every time.
private struct Exchange: ~Copyable {
  private let server: ServerState
  private let right: Right
  private var connection: Connection
  private var processor: RequestProcessor
  private var output = ReplyBuffer()

  /// Nothing is mailed, because no finds run.
  private static let mailbox: Mailbox = {
    do { return try Mailbox() } catch { fatalError("no mailbox: \(error)") }
  }()

  init(permitting right: Right = .admin) {
    self.right = right
    var limits = ServerLimits()
    limits.stores = 4
    limits.maxOpenStores = 3
    limits.maxRequestsInFlight = 4
    limits.maxKeysPerRequest = 64
    limits.maxFrameBytes = 1 << 16
    // A find ends on another thread, at any time.
    limits.finds = 0
    server = ServerState(limits: limits, workerCount: 1)
    server.accessControl.change(Self.policy)
    processor = RequestProcessor(server: server, metrics: server.workers[0], mailbox: Self.mailbox)
    processor.beginWakeup(now: 1_000)
    // The connection has no descriptor, because nothing here receives or sends.
    connection = Connection(
      Descriptor(owning: -1), token: ConnectionToken(0), listener: 0, server.registry.add(.unknown, now: 1_000),
      now: 1_000)
    // Its figures depend on time and chance, so they are not reported.
    server.registry.remove(connection.figures)
    connection.phase = .open
    connection.grants = Grants(onAll: right)
    connection.credit = 1_000
    for (index, name) in ["a", "b"].enumerated() {
      guard let name = try? StoreName(name), let store = try? server.stores.create(name, .init(.memory)),
        connection.stores.open(store, permitting: right, limit: 3) == UInt16(index + 1)
      else { fatalError("no store") }
    }
  }

  /// A policy without rules, which names the socket in refusals.
  private static var policy: AccessPolicy {
    guard let policy = try? AccessPolicy([], listeners: [Listener(address: .unix(path: "/s"))]) else {
      fatalError("no policy")
    }
    return policy
  }

  /// Returns the frames in reply to a stream, including those of its reply streams as far as their credit allows.
  consuming func replies(to stream: RawSpan, splitAt split: Int) -> [UInt8] {
    var replies: [UInt8] = []
    var input = ByteBuffer()
    for part in [0..<split, split..<stream.byteCount] {
      input.append(stream.extracting(part))
      var isAtEnd = false
      // Requests for which the output had no room are processed once it has been sent.
      while !isAtEnd {
        let before = input.count
        var consumed = 0
        // A copy, so that the buffer can be consumed while the copy is in use.
        let bytes = input.toArray()
        let prefetchEnd = unsafe processor.prefetch(bytes.span.bytes, of: connection)
        processor.prefetchRecords()
        unsafe consumed = processor.process(
          bytes.span.bytes, of: &connection, prefetchEnd: prefetchEnd, into: &output)
        processor.unlockStore()
        guard consumed >= 0, consumed <= before else { fatalError("more bytes were consumed than there are") }
        input.consume(consumed)
        isAtEnd = output.isEmpty || !connection.executes
        replies += takeOutput()
      }
    }
    if connection.executes { replies += finishAnswers() }
    connection.endAllStreams()
    for name in ["a", "b"] {
      guard let name = try? StoreName(name), let store = try? server.stores.open(name) else { continue }
      let (snapshots, watchers, revision) = store.access {
        ($0.snapshotCount, $0.feed?.watcherCount ?? 0, $0.revision)
      }
      if snapshots != 0 || watchers != 0 { fatalError("a snapshot or a watcher was not released") }
      if right == .read, revision != 0 { fatalError("a client that may only read has written") }
    }
    if right == .read, server.stores.list().count != 2 {
      fatalError("a client that may only read has created or dropped a store")
    }
    return replies
  }

  private mutating func finishAnswers() -> [UInt8] {
    var replies: [UInt8] = []
    for index in connection.streams.indices.reversed() {
      connection.streams[index].addCredit(ReplyStream.maxCredit)
      while connection.streams[index].isReady,
        processor.continueStream(&connection.streams[index], into: &output)
      {}
      connection.endStream(at: index)
      replies += takeOutput()
    }
    return replies
  }

  /// Returns and clears the output, which must consist of whole frames, none too long and none after a notice. Figures
  /// are omitted, because some of them depend on time and chance.
  private mutating func takeOutput() -> [UInt8] {
    let bytes = output.bytes.toArray()
    var kept: [UInt8] = []
    var offset = 0
    while offset < bytes.count {
      guard case .frame(let header) = unsafe FrameScan(bytes.span.bytes, at: offset, maxLength: 1 << 16),
        Outcome(rawValue: header.kind) != nil, ErrorCode(rawValue: header.detail) != nil
      else { fatalError("no frame in the output at \(offset)") }
      let body = bytes[header.body(at: offset)]
      let isFigures = Self.firstFigures.contains { body.dropFirst().starts(with: $0.utf8) }
      kept += isFigures ? bytes[offset + 4..<offset + Frame.headerSize] : bytes[offset..<offset + header.frameSize]
      offset += header.frameSize
      if header.id == 0, offset != bytes.count { fatalError("something follows a notice") }
    }
    output.bytes.removeAll()
    return kept
  }

  private static let firstFigures = ["uptime_milliseconds", "entries"]
}
