import Wire

/// A server that sends back what it reads. It gets Larder's requests, which say themselves where they end.
struct EchoTarget: Target {
  typealias Session = UInt16
  private let larder: LarderTarget

  init(store: String, valueSize: Int, keysInGetMany: Int) {
    larder = LarderTarget(store: store, valueSize: valueSize, keysInGetMany: keysInGetMany)
  }

  func greet(_ line: borrowing SetupLine) throws -> UInt16 {
    let greeting = Array("larder-bench".utf8)
    let answer = try line.ask(greeting) { $0.byteCount >= greeting.count ? greeting.count : nil }
    guard answer == greeting else { throw BenchError("the server does not echo") }
    return 1
  }

  func template(for operation: Operation) -> RequestTemplate? {
    switch operation {
    case .get, .put: larder.template(for: operation)
    case .getMany, .page, .scan: nil
    }
  }

  @inline(__always)
  func stamp(_ output: inout ByteBuffer, at place: Int, sequence: UInt32, session: UInt16) {
    larder.stamp(&output, at: place, sequence: sequence, session: session)
  }

  @inline(__always)
  func scan(_ bytes: RawSpan, at place: Int) -> ReplyScan {
    switch FrameScan(bytes, at: place, largest: Int(Int32.max)) {
    case .invalid: .malformed
    case .partial(let size): .incomplete(atLeast: size)
    case .frame(let header): .reply(Reply(end: place &+ header.frameSize, sequence: header.id &- 1))
    }
  }

  func value(in reply: RawSpan) -> [UInt8]? { nil }
}
