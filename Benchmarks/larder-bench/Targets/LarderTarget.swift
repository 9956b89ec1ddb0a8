import Wire

/// Larder's protocol: `Protocol/wire.md`.
struct LarderTarget: Target {
  /// The connection's handle of the store.
  typealias Session = UInt16

  private let store: String
  private let valueSize: Int
  private let keysPerRequest: Int
  /// The maximum credit, so that reply streams never wait.
  private static let credit = UInt32(Int32.max)
  private static let idOffset = 8
  private static let storeOffset = 6
  private static let maxFrameSize = Int(Int32.max)

  init(store: String, valueSize: Int, keysPerRequest: Int) {
    self.store = store
    self.valueSize = valueSize
    self.keysPerRequest = keysPerRequest
  }

  func handshake(_ connection: borrowing SetupConnection) throws -> UInt16 {
    try handshake(connection, credit: Self.credit)
  }

  /// - Parameter credit: How many bytes of each reply stream the server may send.
  func handshake(_ connection: borrowing SetupConnection, credit: UInt32) throws -> UInt16 {
    _ = try call(connection, unless: nil) {
      $0.appendRequest(ClientHello(credit: credit, name: "larder-bench"), id: 1)
    }
    if let opened = try open(connection, unless: .storeUnknown) { return try handle(opened) }
    _ = try call(connection, unless: .storeExists) {
      let start = $0.beginRequest(.storeCreate, id: 1)
      $0.append(NamedStoreRequest(name: store, argument: "memory"))
      $0.endFrame(start)
    }
    return try handle(open(connection, unless: nil) ?? [])
  }

  private func open(_ connection: borrowing SetupConnection, unless expected: ErrorCode?) throws -> [UInt8]? {
    try call(connection, unless: expected) {
      let start = $0.beginRequest(.storeOpen, id: 1)
      $0.append(store)
      $0.endFrame(start)
    }
  }

  private func handle(_ body: [UInt8]) throws -> UInt16 {
    guard let opened = unsafe OpenedStore(body.span.bytes) else {
      throw BenchError("the server's reply contains no handle")
    }
    return opened.handle
  }

  /// Returns the store's stats.
  func figures(_ connection: borrowing SetupConnection, _ session: UInt16) throws -> [String: UInt64] {
    let body = try call(connection, unless: nil) { $0.appendRequest(.stats, store: session, id: 1) } ?? []
    guard let figures = unsafe Figure.decode(body.span.bytes) else { throw BenchError("the stats are malformed") }
    return Dictionary(figures.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
  }

  /// Requests all entries and reads the first frame of the reply. Ignores frames of other replies.
  func startAll(_ connection: borrowing SetupConnection, _ session: UInt16, id: UInt32) throws {
    var request = ByteBuffer()
    let start = request.beginRequest(.all, store: session, id: id)
    request.append([UInt8](repeating: 0, count: 8))
    request.endFrame(start)
    _ = try connection.exchange(request.toArray()) { bytes in
      var (offset, hasStarted) = (0, false)
      while case .frame(let header) = FrameScan(bytes, at: offset, maxLength: Self.maxFrameSize) {
        offset += header.frameSize
        guard header.id == id else { continue }
        guard header.kind == Outcome.done.rawValue else { throw BenchError("the server refused to send all entries") }
        hasStarted = true
      }
      return hasStarted && offset == bytes.byteCount ? offset : nil
    }
  }

  /// Sends a request and returns the body of its reply, or nil for the error `expected`.
  private func call(
    _ connection: borrowing SetupConnection, unless expected: ErrorCode?, _ make: (inout ByteBuffer) -> Void
  ) throws -> [UInt8]? {
    var request = ByteBuffer()
    make(&request)
    let frame = try connection.exchange(request.toArray()) { bytes in
      switch FrameScan(bytes, at: 0, maxLength: Self.maxFrameSize) {
      case .frame(let header): header.frameSize
      case .partial: nil
      case .invalid: throw BenchError("the server does not speak Larder's protocol")
      }
    }
    let (outcome, code) = (frame[4], UInt16(frame[6]) | UInt16(frame[7]) << 8)
    guard outcome != Outcome.done.rawValue else { return Array(frame[Frame.headerSize...]) }
    if let expected, code == expected.rawValue { return nil }
    let message = String(decoding: frame[Frame.headerSize...], as: UTF8.self)
    throw BenchError("the server refused the handshake: \(message) (code \(code))")
  }

  func template(for operation: LoadOperation) -> RequestTemplate? {
    var request = RequestTemplate(Array(repeating: 0, count: Frame.headerSize))
    switch operation {
    case .get:
      request.bytes[4] = Wire.Operation.get.rawValue
      request.appendKey()
    case .put:
      request.bytes[4] = Wire.Operation.put.rawValue
      appendPut(to: &request)
    case .getMany:
      request.bytes[4] = Wire.Operation.getMany.rawValue
      request.bytes += littleEndian(UInt32(keysPerRequest))
      for _ in 0..<keysPerRequest {
        request.bytes += [UInt8(BenchKey.size), 0]
        request.appendKey()
      }
    case .putMany:
      request.bytes[4] = Wire.Operation.putMany.rawValue
      request.bytes += littleEndian(UInt32(keysPerRequest))
      for _ in 0..<keysPerRequest { appendPut(to: &request) }
    case .apply:
      request.bytes[4] = Wire.Operation.apply.rawValue
      request.bytes += littleEndian(UInt32(2 * keysPerRequest))
      for _ in 0..<keysPerRequest {
        // A put has the form of a write record.
        appendPut(to: &request)
        request.bytes += [ApplyRecord.Kind.check.rawValue, RecordFlags.ifAbsent, UInt8(BenchKey.size), 0, 0, 0, 0, 0]
        request.appendAbsentKey()
      }
    case .page:
      request.bytes[4] = Wire.Operation.page.rawValue
      request.bytes += Array(repeating: 0, count: 8) + littleEndian(UInt32(Workload.pageLimit))
      request.pageOffsetField = request.bytes.count
      request.bytes += Array(repeating: 0, count: 8)
    case .scan:
      request.bytes[4] = Wire.Operation.page.rawValue
      request.bytes += [ScanRequest.cursor, 0, 0, 0, UInt8(BenchKey.size), 0, 0, 0]
      request.pageLimitField = request.bytes.count
      request.bytes += Array(repeating: 0, count: 4 + 8)
      request.appendKey()
    }
    request.bytes.replaceSubrange(0..<4, with: littleEndian(UInt32(request.bytes.count - Frame.lengthSize)))
    return request
  }

  private func appendPut(to request: inout RequestTemplate) {
    request.bytes += [ValueKind.single.rawValue, 0, UInt8(BenchKey.size), 0] + littleEndian(UInt32(valueSize))
    request.appendKey()
    request.bytes += BenchValue.bytes(size: valueSize)
  }

  @inline(__always)
  func stamp(_ output: inout ByteBuffer, at offset: Int, sequence: UInt32, session: UInt16) {
    output.replace(at: offset &+ Self.storeOffset, with: session)
    // Request IDs start at 1.
    output.replace(at: offset &+ Self.idOffset, with: sequence &+ 1)
  }

  @inline(__always)
  func scan(_ bytes: RawSpan, at offset: Int) -> TargetReplyScan {
    switch FrameScan(bytes, at: offset, maxLength: Self.maxFrameSize) {
    case .invalid: return .malformed
    case .partial(let size): return .incomplete(atLeast: size)
    case .frame(let header):
      var reply = TargetReply(end: offset &+ header.frameSize, sequence: header.id &- 1)
      reply.isLast = header.flags & Frame.more == 0
      // A notice, after which the server closes the connection.
      if header.id == 0 { return .malformed }
      if header.kind != Outcome.done.rawValue {
        if header.detail == ErrorCode.notFound.rawValue { reply.misses = 1 } else { reply.failure = .refused }
      } else if header.bodySize != 8 {
        // A body of 8 bytes is a revision; all others contain entries of at least 16 bytes.
        readEntries(bytes, header.body(at: offset), into: &reply)
      }
      return .reply(reply)
    }
  }

  @inline(__always)
  private func readEntries(_ bytes: RawSpan, _ body: Range<Int>, into reply: inout TargetReply) {
    var offset = body.lowerBound
    while offset < body.upperBound {
      guard let record = EntryRecord(bytes, at: offset) else {
        reply.failure = .unexpected
        return
      }
      if record.kind == nil {
        reply.misses &+= 1
      } else {
        reply.entries &+= 1
        if record.value.count != valueSize { reply.failure = .unexpected }
      }
      offset = record.end
    }
    if offset != body.upperBound { reply.failure = .unexpected }
  }

  func value(in reply: RawSpan) -> [UInt8]? {
    guard reply.byte(4) == Outcome.done.rawValue, let record = EntryRecord(reply, at: Frame.headerSize) else {
      return nil
    }
    return reply.extracting(record.value).toArray()
  }
}

/// Returns the bytes of a number, least significant first.
func littleEndian(_ number: UInt32) -> [UInt8] {
  (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
}
