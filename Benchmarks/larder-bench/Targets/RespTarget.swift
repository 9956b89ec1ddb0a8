import Wire

/// The RESP2 protocol of Redis and Valkey: https://redis.io/docs/latest/develop/reference/protocol-spec/.
struct RespTarget: Target {
  struct Session: Sendable, BitwiseCopyable {}

  private let valueSize: Int
  private let keysPerRequest: Int

  init(store: String, valueSize: Int, keysPerRequest: Int) {
    self.valueSize = valueSize
    self.keysPerRequest = keysPerRequest
  }

  func handshake(_ connection: borrowing SetupConnection) throws -> Session {
    let reply = try connection.exchange(Array("PING\r\n".utf8)) { bytes in
      switch scan(bytes, at: 0) {
      case .reply(let reply): reply.end
      case .incomplete: nil
      case .malformed: throw BenchError("the server does not speak RESP")
      }
    }
    let text = String(decoding: reply, as: UTF8.self)
    guard text == "+PONG\r\n" else { throw BenchError("the server refused the handshake: \(text)") }
    return Session()
  }

  func template(for operation: LoadOperation) -> RequestTemplate? {
    var request = RequestTemplate()
    switch operation {
    case .get:
      request.append("*2\r\n$3\r\nGET\r\n")
      appendKey(to: &request)
    case .put:
      request.append("*3\r\n$3\r\nSET\r\n")
      appendKey(to: &request)
      request.append("$\(valueSize)\r\n")
      request.bytes += BenchValue.bytes(size: valueSize)
      request.append("\r\n")
    case .getMany:
      request.append("*\(1 + keysPerRequest)\r\n$4\r\nMGET\r\n")
      for _ in 0..<keysPerRequest { appendKey(to: &request) }
    case .putMany, .apply, .page, .scan:
      return nil
    }
    return request
  }

  private func appendKey(to request: inout RequestTemplate) {
    request.append("$\(BenchKey.size)\r\n")
    request.appendKey()
    request.append("\r\n")
  }

  @inline(__always)
  func stamp(_ output: inout ByteBuffer, at offset: Int, sequence: UInt32, session: Session) {}

  @inline(__always)
  func scan(_ bytes: RawSpan, at offset: Int) -> TargetReplyScan {
    var reply = TargetReply(end: offset)
    var remaining = 1
    while remaining > 0 {
      guard reply.end < bytes.byteCount else { return .incomplete(atLeast: reply.end &- offset &+ 1) }
      let kind = bytes.byte(reply.end)
      let line = DecimalLine(bytes, at: reply.end &+ 1)
      switch line {
      case .incomplete: return .incomplete(atLeast: bytes.byteCount &- offset &+ 1)
      case .malformed: return .malformed
      case .line(let number, let end):
        reply.end = end
        remaining &-= 1
        switch kind {
        case UInt8(ascii: "$"):
          guard let number else { return .malformed }
          guard number >= 0 else {
            reply.misses &+= 1
            continue
          }
          let next = end &+ number &+ 2
          guard next <= bytes.byteCount else { return .incomplete(atLeast: next &- offset) }
          guard bytes.byte(next &- 2) == 13, bytes.byte(next &- 1) == 10 else { return .malformed }
          if number != valueSize { reply.failure = .unexpected }
          reply.entries &+= 1
          reply.end = next
        case UInt8(ascii: "+"), UInt8(ascii: ":"): break
        case UInt8(ascii: "-"): reply.failure = .refused
        case UInt8(ascii: "*"):
          guard let number, number <= 1 << 20 else { return .malformed }
          remaining &+= max(0, number)
        default: return .malformed
        }
      }
    }
    return .reply(reply)
  }

  func value(in reply: RawSpan) -> [UInt8]? {
    guard reply.byte(0) == UInt8(ascii: "$"), case .line(let size?, let end) = DecimalLine(reply, at: 1), size >= 0
    else { return nil }
    return reply.extracting(end..<end + size).toArray()
  }
}

/// A line that ends in CR LF, and the decimal number that it consists of, if any.
enum DecimalLine: Equatable {
  case line(number: Int?, end: Int)
  case incomplete
  /// Longer than any line of these protocols.
  case malformed

  static let maxLength = 4_096

  @inline(__always)
  init(_ bytes: RawSpan, at start: Int) {
    var offset = start
    var number = 0
    var isNumber = true
    let isNegative = offset < bytes.byteCount && bytes.byte(offset) == UInt8(ascii: "-")
    if isNegative { offset &+= 1 }
    let digits = offset
    while offset < bytes.byteCount {
      let byte = bytes.byte(offset)
      if byte == 13 {
        guard offset &+ 1 < bytes.byteCount else { break }
        guard bytes.byte(offset &+ 1) == 10 else {
          self = .malformed
          return
        }
        let isWhole = isNumber && offset > digits && offset &- digits <= 15
        self = .line(number: isWhole ? (isNegative ? -number : number) : nil, end: offset &+ 2)
        return
      }
      let digit = Int(byte &- 48)
      if digit > 9 { isNumber = false }
      number = number &* 10 &+ digit
      offset &+= 1
    }
    self = offset &- start > Self.maxLength ? .malformed : .incomplete
  }
}
