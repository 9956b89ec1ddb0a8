import Wire

/// memcached's text protocol: https://github.com/memcached/memcached/blob/master/doc/protocol.txt.
struct MemcachedTarget: Target {
  struct Session: Sendable, BitwiseCopyable {}

  private let valueSize: Int
  private let keysPerRequest: Int

  init(store: String, valueSize: Int, keysPerRequest: Int) {
    self.valueSize = valueSize
    self.keysPerRequest = keysPerRequest
  }

  func handshake(_ connection: borrowing SetupConnection) throws -> Session {
    let reply = try connection.exchange(Array("version\r\n".utf8)) { bytes in
      switch MemcachedLine(bytes, at: 0) {
      case .line(_, let end): end
      case .incomplete: nil
      case .malformed: throw BenchError("the server does not speak memcached's protocol")
      }
    }
    guard reply.starts(with: "VERSION ".utf8) else {
      throw BenchError("the server does not speak memcached's protocol")
    }
    return Session()
  }

  func template(for operation: LoadOperation) -> RequestTemplate? {
    var request = RequestTemplate()
    switch operation {
    case .get: appendGet(of: 1, to: &request)
    case .getMany: appendGet(of: keysPerRequest, to: &request)
    case .put:
      request.append("set ")
      request.appendKey()
      request.append(" 0 0 \(valueSize)\r\n")
      request.bytes += BenchValue.bytes(size: valueSize)
      request.append("\r\n")
    case .putMany, .apply, .page, .scan:
      return nil
    }
    return request
  }

  private func appendGet(of keys: Int, to request: inout RequestTemplate) {
    request.append("get")
    for _ in 0..<keys {
      request.append(" ")
      request.appendKey()
    }
    request.append("\r\n")
  }

  @inline(__always)
  func stamp(_ output: inout ByteBuffer, at offset: Int, sequence: UInt32, session: Session) {}

  /// Scans for a reply. The reply to a get is any number of values, followed by `END`; it leaves out missing keys. (No
  /// workload contains both get and get-many.)
  @inline(__always)
  func scan(_ bytes: RawSpan, at offset: Int) -> TargetReplyScan {
    var reply = TargetReply(end: offset)
    while true {
      switch MemcachedLine(bytes, at: reply.end) {
      case .incomplete: return .incomplete(atLeast: bytes.byteCount &- offset &+ 1)
      case .malformed: return .malformed
      case .line(let kind, let end):
        reply.end = end
        switch kind {
        case .value(let size):
          let next = end &+ size &+ 2
          guard next <= bytes.byteCount else { return .incomplete(atLeast: next &- offset) }
          guard bytes.byte(next &- 2) == 13, bytes.byte(next &- 1) == 10 else { return .malformed }
          if size != valueSize { reply.failure = .unexpected }
          reply.entries &+= 1
          reply.end = next
          continue
        case .end: reply.misses = Int32(truncatingIfNeeded: keysPerRequest) &- reply.entries
        case .stored: break
        case .error: reply.failure = .refused
        }
        return .reply(reply)
      }
    }
  }

  func value(in reply: RawSpan) -> [UInt8]? {
    guard case .line(.value(let size), let end) = MemcachedLine(reply, at: 0) else { return nil }
    return reply.extracting(end..<end + size).toArray()
  }
}

/// A line of a memcached reply.
enum MemcachedLine: Equatable {
  case line(Kind, end: Int)
  case incomplete
  case malformed

  enum Kind: Equatable {
    /// `VALUE key flags size`, followed by `size` bytes and CR LF.
    case value(size: Int)
    case end
    case stored
    /// Any other line, such as `ERROR`, `NOT_STORED` or `SERVER_ERROR out of memory`.
    case error
  }

  @inline(__always)
  init(_ bytes: RawSpan, at start: Int) {
    var offset = start
    // The number after the last space, which is the size in a `VALUE` line.
    var number = 0
    while offset < bytes.byteCount {
      let byte = bytes.byte(offset)
      if byte == 13 {
        guard offset &+ 1 < bytes.byteCount else { break }
        let isLine = bytes.byte(offset &+ 1) == 10 && offset > start &+ 1
        self = isLine ? .line(Self.kind(bytes, at: start, number), end: offset &+ 2) : .malformed
        return
      }
      number = byte == 32 ? 0 : number &* 10 &+ Int(byte &- 48)
      offset &+= 1
    }
    self = offset &- start > DecimalLine.maxLength ? .malformed : .incomplete
  }

  /// Returns the kind of a line, which its first two letters determine.
  @inline(__always)
  private static func kind(_ bytes: RawSpan, at start: Int, _ number: Int) -> Kind {
    switch (bytes.byte(start), bytes.byte(start &+ 1)) {
    case (UInt8(ascii: "V"), UInt8(ascii: "A")): number >= 0 && number <= 1 << 30 ? .value(size: number) : .error
    case (UInt8(ascii: "E"), UInt8(ascii: "N")): .end
    case (UInt8(ascii: "S"), UInt8(ascii: "T")): .stored
    default: .error
    }
  }
}
