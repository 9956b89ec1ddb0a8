import Wire

/// A server that sends back what it reads. It receives Larder's requests, whose frames delimit themselves.
struct EchoTarget: Target {
  typealias Session = UInt16
  private let larder: LarderTarget

  init(store: String, valueSize: Int, keysPerRequest: Int) {
    larder = LarderTarget(store: store, valueSize: valueSize, keysPerRequest: keysPerRequest)
  }

  func handshake(_ connection: borrowing SetupConnection) throws -> UInt16 {
    let handshakeText = Array("larder-bench".utf8)
    let reply = try connection.exchange(handshakeText) {
      $0.byteCount >= handshakeText.count ? handshakeText.count : nil
    }
    guard reply == handshakeText else { throw BenchError("the server does not echo") }
    return 1
  }

  func template(for operation: LoadOperation) -> RequestTemplate? {
    switch operation {
    case .get, .put: larder.template(for: operation)
    case .getMany, .putMany, .apply, .page, .scan: nil
    }
  }

  @inline(__always)
  func stamp(_ output: inout ByteBuffer, at offset: Int, sequence: UInt32, session: UInt16) {
    larder.stamp(&output, at: offset, sequence: sequence, session: session)
  }

  @inline(__always)
  func scan(_ bytes: RawSpan, at offset: Int) -> TargetReplyScan {
    switch FrameScan(bytes, at: offset, maxLength: Int(Int32.max)) {
    case .invalid: .malformed
    case .partial(let size): .incomplete(atLeast: size)
    case .frame(let header): .reply(TargetReply(end: offset &+ header.frameSize, sequence: header.id &- 1))
    }
  }

  func value(in reply: RawSpan) -> [UInt8]? { nil }
}
