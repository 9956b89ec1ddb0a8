import Platform
import Storage
import Wire

/// The server's request handling over any stream of frames, without a socket: part of the module LarderServer when it is built to fuzz.
///
/// It is right when nothing traps, all that comes out are whole frames within the limits, nothing follows a notice, and the same
/// stream, cut in two, gives the same frames; and nothing is changed by a client that may only read. The first byte says where it is cut.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRequests(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  guard count > 0 else { return 0 }
  let bytes = unsafe RawSpan(_unsafeStart: start, byteCount: count)
  let stream = bytes.extracting(1..<count)
  let cut = Int(bytes.integer(at: 0, as: UInt8.self)!) * stream.byteCount / 255
  let whole = Exchange().replies(to: stream, cutAt: stream.byteCount)
  let halves = Exchange().replies(to: stream, cutAt: cut)
  if whole != halves { fatalError("cut at \(cut) the stream gets other replies") }
  _ = Exchange(permitting: .read).replies(to: stream, cutAt: cut)
  return 0
}

/// A connection with a server of its own, in the same state every time.
private struct Exchange: ~Copyable {
  private let server: ServerState
  private let right: Right
  private var connection: Connection
  private var processor: RequestProcessor
  private var output = ReplyBuffer()

  init(permitting right: Right = .admin) {
    self.right = right
    var limits = ServerLimits()
    limits.stores = 4
    limits.openStores = 3
    limits.requestsInFlight = 4
    limits.keysInRequest = 64
    limits.maxFrameBytes = 1 << 16
    server = ServerState(limits: limits, workerCount: 1)
    server.accessControl.change(Self.policy)
    processor = RequestProcessor(server: server, metrics: server.workers[0])
    processor.beginWakeup(now: 1_000)
    // No descriptor is behind it: nothing here reads or sends.
    connection = Connection(
      Descriptor(owning: -1), token: ConnectionToken(0), listener: 0, server.registry.add(.unknown, now: 1_000),
      now: 1_000)
    // Its figures are of time and chance, so nobody is told of them.
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

  /// What names the socket in refusals.
  private static var policy: AccessPolicy {
    guard let policy = try? AccessPolicy([], listeners: [Listener(address: .unix(path: "/s"))]) else {
      fatalError("no policy")
    }
    return policy
  }

  /// The frames that the stream gets, and those of answers as far as their credit goes.
  consuming func replies(to stream: RawSpan, cutAt cut: Int) -> [UInt8] {
    var replies: [UInt8] = []
    var left = ByteBuffer()
    for part in [0..<cut, cut..<stream.byteCount] {
      left.append(stream.extracting(part))
      var isAtEnd = false
      // What the output had no room for is taken up once it has drained.
      while !isAtEnd {
        let before = left.count
        var consumed = 0
        // A copy, so that the buffer may be consumed behind it.
        let bytes = left.toArray()
        let prefetchEnd = unsafe processor.prefetch(bytes.span.bytes, of: connection)
        processor.prefetchRecords()
        unsafe consumed = processor.process(
          bytes.span.bytes, of: &connection, prefetchEnd: prefetchEnd, into: &output)
        processor.unlockStore()
        guard consumed >= 0, consumed <= before else { fatalError("more consumed than there is") }
        left.consume(consumed)
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
      if snapshots != 0 || watchers != 0 { fatalError("a snapshot or a watcher was left behind") }
      if right == .read, revision != 0 { fatalError("who may only read has written") }
    }
    if right == .read, server.stores.list().count != 2 { fatalError("who may only read has made or dropped a store") }
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

  /// The output, which must be whole frames, none of them too large and none behind a notice. Figures, some of which are of time and
  /// chance, are left out.
  private mutating func takeOutput() -> [UInt8] {
    let bytes = output.bytes.toArray()
    var kept: [UInt8] = []
    var place = 0
    while place < bytes.count {
      guard case .frame(let header) = unsafe FrameScan(bytes.span.bytes, at: place, largest: 1 << 16),
        Outcome(rawValue: header.kind) != nil, ErrorCode(rawValue: header.detail) != nil
      else { fatalError("no frame in the output at \(place)") }
      let body = bytes[header.body(at: place)]
      let isFigures = Self.firstFigures.contains { body.dropFirst().starts(with: $0.utf8) }
      kept += isFigures ? bytes[place + 4..<place + Frame.headerSize] : bytes[place..<place + header.frameSize]
      place += header.frameSize
      if header.id == 0, place != bytes.count { fatalError("something follows a notice") }
    }
    output.bytes.removeAll()
    return kept
  }

  private static let firstFigures = ["uptime_milliseconds", "entries"]
}
