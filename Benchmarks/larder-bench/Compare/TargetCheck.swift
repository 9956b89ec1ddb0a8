import Platform
import Wire

/// A check that a server does the measured work: values are read back as written, and other keys are missing.
struct TargetCheck {
  private let address: Address
  private static let sizes = [1, 17, 100, 5_000, 60_000]
  private static let keysPerSize: UInt64 = 10

  init(address: Address) { self.address = address }

  func run(_ protocolName: TargetProtocol) throws {
    switch protocolName {
    case .larder: try check(LarderTarget.self)
    case .resp: try check(RespTarget.self)
    case .memcached: try check(MemcachedTarget.self)
    case .echo: try checkEcho()
    }
  }

  private func check<T: Target>(_ type: T.Type) throws {
    let connection = try SetupConnection(to: address)
    let session = try T(store: "bench", valueSize: 1, keysPerRequest: 1).handshake(connection)
    var random = Random(seed: 7)
    var written: [(key: UInt64, value: [UInt8])] = []
    for size in Self.sizes {
      let target = T(store: "bench", valueSize: size, keysPerRequest: 1)
      for _ in 0..<Self.keysPerSize {
        let key = BenchKey.limit - 1 - UInt64(written.count)
        let value = (0..<size).map { _ in UInt8(97 + random.below(26)) }
        let reply = try exchange(connection, target, .put, session, key: key, value: value).reply
        guard reply.failure == nil else { throw BenchError("a put was refused") }
        written.append((key, value))
      }
    }
    for (key, value) in written {
      let target = T(store: "bench", valueSize: value.count, keysPerRequest: 1)
      let reply = try exchange(connection, target, .get, session, key: key)
      guard unsafe target.value(in: reply.bytes.span.bytes) == value else {
        throw BenchError("the value of \(value.count) bytes differs from the one that was written")
      }
    }
    let target = T(store: "bench", valueSize: 1, keysPerRequest: 1)
    let missing = try exchange(connection, target, .get, session, key: BenchKey.limit / 2).reply
    guard missing.misses == 1, missing.failure == nil else { throw BenchError("a missing key was found") }
  }

  /// Returns whether the server returns a value of the given size for the key. It does not while it is still
  /// recovering.
  func canRead(_ key: UInt64, valueSize: Int, _ protocolName: TargetProtocol) -> Bool {
    switch protocolName {
    case .larder: canRead(key, LarderTarget(store: "bench", valueSize: valueSize, keysPerRequest: 1))
    case .resp: canRead(key, RespTarget(store: "bench", valueSize: valueSize, keysPerRequest: 1))
    case .memcached, .echo: false
    }
  }

  private func canRead(_ key: UInt64, _ target: some Target) -> Bool {
    guard let connection = try? SetupConnection(to: address), let session = try? target.handshake(connection),
      let reply = try? exchange(connection, target, .get, session, key: key).reply
    else { return false }
    return reply.entries == 1 && reply.failure == nil
  }

  private func checkEcho() throws {
    let connection = try SetupConnection(to: address)
    let target = EchoTarget(store: "bench", valueSize: 100, keysPerRequest: 1)
    let session = try target.handshake(connection)
    let reply = try exchange(connection, target, .put, session, key: 1)
    guard reply.bytes == reply.request else { throw BenchError("the echo differs from what was sent") }
  }

  private func exchange<T: Target>(
    _ connection: borrowing SetupConnection, _ target: T, _ operation: Operation, _ session: T.Session, key: UInt64,
    value: [UInt8]? = nil
  ) throws -> (request: [UInt8], bytes: [UInt8], reply: Reply) {
    guard var template = target.template(for: operation) else { throw BenchError("this protocol has no \(operation)") }
    if let value {
      guard let offset = template.bytes.lastOffset(of: BenchValue.bytes(size: value.count)) else {
        throw BenchError("the request contains no value")
      }
      template.bytes.replaceSubrange(offset..<offset + value.count, with: value)
    }
    var output = ByteBuffer()
    output.append(template.bytes)
    for offset in template.keyOffsets { BenchKey.patch(&output, at: offset, key) }
    target.stamp(&output, at: 0, sequence: 0, session: session)
    let request = output.toArray()
    var reply = Reply(end: 0)
    let bytes = try connection.exchange(request) { bytes in
      switch target.scan(bytes, at: 0) {
      case .reply(let whole):
        reply = whole
        return whole.end
      case .incomplete: return nil
      case .malformed: throw BenchError("the reply to \(operation) is malformed")
      }
    }
    return (request, bytes, reply)
  }
}

extension [UInt8] {
  /// Returns the offset of the last occurrence of `other`.
  fileprivate func lastOffset(of other: [UInt8]) -> Int? {
    guard count >= other.count else { return nil }
    return (0...count - other.count).reversed().first { self[$0..<$0 + other.count].elementsEqual(other) }
  }
}
