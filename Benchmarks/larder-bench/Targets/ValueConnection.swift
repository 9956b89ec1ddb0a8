import Platform
import Wire

/// A request to put or get one value.
struct ValueRequest<T: Target> {
  fileprivate let target: T
  let bytes: [UInt8]
}

/// A blocking connection that puts and gets one value at a time. Used by one thread.
struct ValueConnection<T: Target>: ~Copyable {
  private let connection: SetupConnection
  private let store: String
  private let session: T.Session
  /// The latest reply, in memory that is reused.
  private var reply = ByteBuffer()

  /// - Parameter timeout: How long the server may be silent while a reply is due.
  init(to address: Address, store: String = "bench", timeout: Duration = .seconds(5)) throws {
    let connection = try SetupConnection(to: address, timeout: timeout)
    session = try T(store: store, valueSize: 1, keysPerRequest: 1).handshake(connection)
    self.store = store
    self.connection = connection
  }

  func putRequest(_ value: [UInt8], at key: UInt64) throws -> ValueRequest<T> {
    try request(.put, key, valueSize: value.count) { template in
      guard let offset = template.bytes.lastOffset(of: BenchValue.bytes(size: value.count)) else {
        throw BenchError("the request contains no value")
      }
      template.bytes.replaceSubrange(offset..<offset + value.count, with: value)
    }
  }

  /// - Parameter valueSize: The size that the value must have, in bytes.
  func getRequest(_ key: UInt64, valueSize: Int) throws -> ValueRequest<T> {
    try request(.get, key, valueSize: valueSize) { _ in }
  }

  private func request(
    _ operation: LoadOperation, _ key: UInt64, valueSize: Int, edit: (inout RequestTemplate) throws -> Void
  ) throws -> ValueRequest<T> {
    let target = T(store: store, valueSize: valueSize, keysPerRequest: 1)
    guard var template = target.template(for: operation) else { throw BenchError("this protocol has no \(operation)") }
    try edit(&template)
    var output = ByteBuffer()
    output.append(template.bytes)
    for offset in template.keyOffsets { BenchKey.patch(&output, at: offset, key) }
    target.stamp(&output, at: 0, sequence: 0, session: session)
    return ValueRequest(target: target, bytes: output.toArray())
  }

  /// Sends a request and waits for its reply.
  /// - Throws: `BenchError` if the server refuses the request, or returns a value of another size.
  mutating func exchange(_ request: ValueRequest<T>) throws -> TargetReply {
    var scanned = TargetReply(end: 0)
    try connection.exchange(request.bytes, into: &reply) { bytes in
      switch request.target.scan(bytes, at: 0) {
      case .reply(let whole):
        scanned = whole
        return whole.end
      case .incomplete: return nil
      case .malformed: throw BenchError("a reply is malformed")
      }
    }
    switch scanned.failure {
    case nil: return scanned
    case .refused: throw BenchError("a request was refused")
    case .unexpected: throw BenchError("a reply does not match its request")
    }
  }

  /// The bytes of the latest reply.
  var replyBytes: [UInt8] { reply.toArray() }

  mutating func put(_ value: [UInt8], at key: UInt64) throws { _ = try exchange(putRequest(value, at: key)) }

  /// Returns a value, or nil if the key is missing.
  mutating func get(_ key: UInt64, valueSize: Int) throws -> [UInt8]? {
    let request = try getRequest(key, valueSize: valueSize)
    guard try exchange(request).entries == 1 else { return nil }
    return reply.withSpan { request.target.value(in: $0) }
  }

  /// Sends a get whose value must exist. Doesn't copy the value.
  mutating func check(_ get: ValueRequest<T>) throws {
    guard try exchange(get).entries == 1 else { throw BenchError("a key is missing") }
  }
}

extension [UInt8] {
  /// Returns the offset of the last occurrence of `other`.
  fileprivate func lastOffset(of other: [UInt8]) -> Int? {
    guard count >= other.count else { return nil }
    return (0...count - other.count).reversed().first { self[$0..<$0 + other.count].elementsEqual(other) }
  }
}
