import Testing
import Wire

/// A frame from the server.
struct Reply: Equatable, CustomStringConvertible {
  let outcome: Outcome
  let code: ErrorCode
  let id: UInt32
  let more: Bool
  let body: [UInt8]

  init(_ header: FrameHeader, _ body: [UInt8]) {
    outcome = Outcome(rawValue: header.kind)!
    code = ErrorCode(rawValue: header.detail)!
    id = header.id
    more = header.flags & Frame.more != 0
    self.body = body
  }

  /// Bytes of the whole frame.
  var size: Int { Frame.headerSize + body.count }
  var message: String { String(decoding: body, as: UTF8.self) }
  /// The number that the body is; nil when it is none.
  var number: UInt64? { body.count == 8 && outcome == .done ? body.unsigned64(at: 0) : nil }
  var isDone: Bool { outcome == .done }

  /// Whether the frame is this error.
  func isError(_ code: ErrorCode, id: UInt32) -> Bool {
    self.code == code && outcome == code.outcome && self.id == id && !more
  }

  /// Whether the frame is this notice.
  func isNotice(_ code: ErrorCode) -> Bool { isError(code, id: 0) }

  /// The entry records of the body.
  var entries: [TestEntry] {
    var entries: [TestEntry] = []
    var place = 0
    while place < body.count, let record = unsafe EntryRecord(body.span.bytes, at: place) {
      entries.append(
        TestEntry(
          isThere: record.kind != nil, key: Array(body[record.key]), value: Array(body[record.value]),
          revision: record.revision, expiry: record.expiry))
      place = record.end
    }
    return place == body.count ? entries : []
  }

  /// The revision up to which a frame of a watch has brought everything.
  var through: UInt64 { body.count >= 8 ? body.unsigned64(at: 0) : .max }

  /// The change records of a watch's frame.
  var changes: [TestChange] {
    var changes: [TestChange] = []
    var place = ChangeRecord.throughSize
    while place < body.count, let record = unsafe ChangeRecord(body.span.bytes, at: place) {
      changes.append(
        TestChange(
          kind: record.kind, key: String(decoding: body[record.key], as: UTF8.self), value: Array(body[record.value]),
          revision: record.revision, expiry: record.expiry))
      place = record.end
    }
    return place == body.count ? changes : []
  }

  var description: String {
    isDone ? "done \(id)\(more ? " more" : ""), \(body.count) bytes" : "\(code) \(id): \(message)"
  }
}

/// An entry record of an answer.
struct TestEntry: Equatable {
  let isThere: Bool
  let key: [UInt8]
  let value: [UInt8]
  let revision: UInt64
  let expiry: UInt64

  var text: String { String(decoding: key, as: UTF8.self) }
}

/// A change record of a watch.
struct TestChange: Equatable {
  var kind = ChangeKind.single
  var key = ""
  var value: [UInt8] = []
  let revision: UInt64
  var expiry: UInt64 = 0
}

extension [UInt8] {
  func unsigned64(at place: Int) -> UInt64 {
    (0..<8).reduce(0) { $0 | UInt64(self[place + $1]) << (8 * UInt64($1)) }
  }
}

extension TestClient {
  /// Says hello and takes the reply.
  @discardableResult
  func greet(credit: UInt32 = 1 << 20) throws -> ServerHello {
    var buffer = ByteBuffer()
    buffer.appendRequest(ClientHello(credit: credit, name: "test"), id: 1)
    let reply = try call(buffer.toArray())
    return try #require(unsafe ServerHello(body: reply.body.span.bytes), "\(reply)")
  }

  /// Sends a request and takes the next frame.
  func call(_ request: [UInt8]) throws -> Reply {
    try send(request)
    return try receive()
  }

  /// The frames of the answer of that id, to its last one, when nothing else is on its way.
  func receiveAnswer(_ id: UInt32) throws -> [Reply] {
    var frames: [Reply] = []
    repeat {
      frames.append(try receive())
      try #require(frames[frames.count - 1].id == id, "\(frames[frames.count - 1])")
    } while frames[frames.count - 1].more
    return frames
  }

  /// The server's figures, or those of the store under a handle.
  func figures(store: UInt16 = 0) throws -> [String: UInt64] {
    let reply = try call(Request.make(.stats, store: store, id: 0x5AA5))
    let figures = try #require(unsafe Figure.decode(reply.body.span.bytes))
    return Dictionary(uniqueKeysWithValues: figures.map { ($0.name, $0.value) })
  }

  /// Whether the connection still serves.
  func pings() throws -> Bool {
    let reply = try call(Request.make(.ping, store: 0, id: 0x1234))
    return reply.isDone && reply.id == 0x1234 && reply.body.isEmpty
  }
}
