import Dispatch
import Glibc
import Platform
import Synchronization
import Wire

/// A server that can do what a real one never does: send nothing, send garbage, cut replies off, hang up. All its
/// stores are one dictionary.
final class FakeServer: Sendable {
  /// What the server does about a request.
  enum Reaction: Sendable {
    case answer
    case silence
    /// Sends these bytes, and continues.
    case send([UInt8])
    /// Sends these bytes, and hangs up.
    case hangUp([UInt8])
  }

  struct Request: Sendable {
    let operation: Wire.Operation
    let store: UInt16
    let id: UInt32
    let body: [UInt8]
    /// The number of this request among those with the same operation on all connections, from 1.
    let count: Int

    /// Returns a reply with frames of these bodies.
    func reply(_ bodies: [[UInt8]]) -> Reaction {
      var output = ByteBuffer()
      for (index, body) in bodies.enumerated() {
        let start = output.beginReply(id: id, more: index < bodies.count - 1)
        output.append(body)
        output.endFrame(start)
      }
      return .send(output.toArray())
    }

    /// Returns a reply that is an error.
    func error(_ code: ErrorCode, _ message: String = "") -> Reaction {
      var output = ByteBuffer()
      output.appendError(code, id: id, message: message)
      return .send(output.toArray())
    }
  }

  typealias Script = @Sendable (Request) -> Reaction

  struct Shared {
    var entries: [String: (revision: UInt64, value: [UInt8])] = [:]
    var revision: UInt64 = 0
    /// The bookmark in the replies to finds.
    var bookmark = ""
    var counts: [Wire.Operation: Int] = [:]
    var script: Script?
    var handle: UInt16 = 7
    var maxInFlight = 0
    var framesSent = 0
    var connections = 0
    var isStopped = false
  }

  private let path: String
  let shared = Lock(Shared())
  let hello: ServerHello
  private static let numbers = Atomic<Int>(0)

  var address: String { "unix:\(path)" }

  /// Returns a path that no server listens on.
  static func freshPath() -> String {
    "/tmp/larder-test-\(getpid())-\(numbers.wrappingAdd(1, ordering: .relaxed).newValue).sock"
  }

  init(
    path: String = FakeServer.freshPath(), inFlight: UInt32 = 1_000, openStores: UInt16 = 16,
    features: UInt32 = Features.documents, _ script: Script? = nil
  ) throws {
    self.path = path
    hello = ServerHello(
      features: features, maxFrameSize: 1 << 20, maxValueSize: 1 << 19, maxKeySize: 4_096, maxOpenStores: openStores,
      maxRequestsInFlight: inFlight, maxKeyCount: 1_000, name: "fake")
    shared.withLock { $0.script = script }
    let listener = try ListeningSocket.open(.unix(path: path))
    let queue = DispatchQueue(label: "fake.listener")
    let box = Box(listener)
    queue.async { self.listen(box) }
  }

  deinit { stop() }

  func stop() { shared.withLock { $0.isStopped = true } }

  var isStopped: Bool { shared.withLock { $0.isStopped } }

  func count(of operation: Wire.Operation) -> Int { shared.withLock { $0.counts[operation] ?? 0 } }

  func set(_ script: Script?) { shared.withLock { $0.script = script } }

  func put(_ key: String, _ value: [UInt8]) {
    shared.withLock { shared in
      shared.revision += 1
      shared.entries[key] = (shared.revision, value)
    }
  }

  private final class Box: Sendable {
    let listener: ListeningSocket
    init(_ listener: consuming ListeningSocket) { self.listener = listener }
  }

  private func listen(_ box: Box) {
    while !isStopped {
      guard Self.wait(box.listener.descriptor.number) else { continue }
      guard let socket = try? box.listener.accept() else { continue }
      let connection = FakeConnection(self, socket)
      shared.withLock { $0.connections += 1 }
      DispatchQueue(label: "fake.connection").async { connection.serve() }
    }
  }

  /// Returns whether there is something to read within 5 ms.
  static func wait(_ number: Int32) -> Bool {
    var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&entry, 1, 5) > 0
  }
}

/// One connection of a fake server, on a thread of its own.
final class FakeConnection: Sendable {
  private let server: FakeServer
  private let socket: Descriptor

  init(_ server: FakeServer, _ socket: consuming Descriptor) {
    self.server = server
    self.socket = socket
  }

  private struct Stream {
    var frames: [[UInt8]]
    var credit: Int
  }

  func serve() {
    var input = ByteBuffer()
    var streams: [UInt32: Stream] = [:]
    while !server.isStopped {
      guard FakeServer.wait(socket.number) else { continue }
      let transfer = unsafe input.fill(65_536) { buffer -> (written: Int, result: Transfer) in
        let transfer = unsafe socket.receive(into: buffer)
        if case .moved(let count) = transfer { return (count, transfer) }
        return (0, transfer)
      }
      guard case .moved(let count) = transfer, count > 0 else { return }
      // Requests that arrive together were in flight together.
      var batch = 0
      while let request = next(&input) {
        batch += 1
        switch server.shared.withLock({ $0.script })?(request) ?? .answer {
        case .answer: answer(request, &streams)
        case .silence: break
        case .send(let bytes): send(bytes)
        case .hangUp(let bytes):
          send(bytes)
          return
        }
      }
      server.shared.withLock { $0.maxInFlight = max($0.maxInFlight, batch) }
    }
  }

  private func next(_ input: inout ByteBuffer) -> FakeServer.Request? {
    let found = input.withSpan { bytes -> (FrameHeader, [UInt8])? in
      guard case .frame(let header) = FrameScan(bytes, at: 0, maxLength: 1 << 20) else { return nil }
      return (header, bytes.extracting(header.body(at: 0)).toArray())
    }
    guard let (header, body) = found, let operation = Wire.Operation(rawValue: header.kind) else { return nil }
    input.consume(header.frameSize)
    let count = server.shared.withLock { shared in
      shared.counts[operation, default: 0] += 1
      return shared.counts[operation]!
    }
    return FakeServer.Request(operation: operation, store: header.detail, id: header.id, body: body, count: count)
  }

  private func send(_ bytes: [UInt8]) {
    var offset = 0
    while offset < bytes.count {
      let sent = unsafe bytes.withUnsafeBytes { unsafe socket.send(UnsafeRawBufferPointer(rebasing: $0[offset...])) }
      switch sent {
      case .moved(let count): offset += count
      case .wouldBlock: usleep(1_000)
      case .failed: return
      }
    }
  }

  private func send(_ fill: (inout ByteBuffer) -> Void) {
    var output = ByteBuffer()
    fill(&output)
    send(output.toArray())
  }

  private func answer(_ request: FakeServer.Request, _ streams: inout [UInt32: Stream]) {
    let id = request.id
    let handle = server.shared.withLock { $0.handle }
    if request.operation.rawValue >= 16, request.store != handle {
      return send { $0.appendError(.storeUnknown, id: id) }
    }
    switch request.operation {
    case .hello: send { $0.appendReply(server.hello, id: id) }
    case .storeOpen:
      if request.body == Array("absent".utf8) {
        return send { $0.appendError(.storeUnknown, id: id, message: "no such store") }
      }
      send { output in
        let start = output.beginReply(id: id)
        output.append(OpenedStore(handle: handle, engine: "memory"))
        output.endFrame(start)
      }
    case .get:
      let entry = server.shared.withLock { $0.entries[String(decoding: request.body, as: UTF8.self)] }
      guard let entry else { return send { $0.appendError(.notFound, id: id) } }
      send { output in
        let start = output.beginReply(id: id)
        unsafe entry.value.withUnsafeBytes { value in
          unsafe output.appendEntry(
            kind: .single, revision: entry.revision, key: .init(start: nil, count: 0), value: value)
        }
        output.endFrame(start)
      }
    case .put:
      let revision = server.shared.withLock { shared in
        shared.revision += 1
        let body = unsafe request.body.span.bytes
        if let record = WriteRecord(body, at: 0) {
          shared.entries[body.extracting(record.key).toString()] = (
            shared.revision, body.extracting(record.value).toArray()
          )
        }
        return shared.revision
      }
      send { $0.appendReply(id: id, number: revision) }
    case .count:
      send { output in output.appendReply(id: id, number: UInt64(server.shared.withLock { $0.entries.count })) }
    case .all, .page, .getMany:
      streams[id] = Stream(frames: frames(), credit: 65_536)
      sendFrames(of: id, &streams)
    case .find:
      streams[id] = Stream(frames: foundFrames(request.body), credit: 65_536)
      sendFrames(of: id, &streams)
    case .credit:
      streams[id]?.credit += Int(unsafe request.body.span.bytes.integer(at: 0, as: UInt32.self)!)
      sendFrames(of: id, &streams)
    case .cancel:
      if streams.removeValue(forKey: id) != nil { send { $0.appendError(.cancelled, id: id) } }
    default: send { $0.endFrame($0.beginReply(id: id)) }
    }
  }

  private func sendFrames(of id: UInt32, _ streams: inout [UInt32: Stream]) {
    while var stream = streams[id], stream.credit > 0 {
      let body = stream.frames.removeFirst()
      stream.credit -= body.count + Frame.headerSize
      streams[id] = stream.frames.isEmpty ? nil : stream
      server.shared.withLock { $0.framesSent += 1 }
      send { output in
        let start = output.beginReply(id: id, more: !stream.frames.isEmpty)
        output.append(body)
        output.endFrame(start)
      }
    }
  }

  /// The bodies of a reply stream with all entries, one in each frame.
  private func frames() -> [[UInt8]] {
    let entries = server.shared.withLock { $0.entries }
    let frames = entries.keys.sorted().map { key -> [UInt8] in
      var body = ByteBuffer()
      let entry = entries[key]!
      unsafe Array(key.utf8).withUnsafeBytes { key in
        unsafe entry.value.withUnsafeBytes { value in
          unsafe body.appendEntry(kind: .single, revision: entry.revision, key: key, value: value)
        }
      }
      return body.toArray()
    }
    return frames.isEmpty ? [[]] : frames
  }

  /// The bodies of the reply to a find: all entries, one in each frame, and the result.
  private func foundFrames(_ body: [UInt8]) -> [[UInt8]] {
    let (count, revision, bookmark) = server.shared.withLock { (UInt64($0.entries.count), $0.revision, $0.bookmark) }
    let isCountOnly = unsafe FindRequest(body.span.bytes)?.isCountOnly ?? false
    var result = ByteBuffer()
    result.append(
      FindResult(revision: revision, examinedDocuments: count + 1, found: count, nanoseconds: 1_500, text: bookmark))
    return (isCountOnly || count == 0 ? [] : frames()) + [result.toArray()]
  }
}
