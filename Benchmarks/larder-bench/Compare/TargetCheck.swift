import Platform
import Wire

/// Makes sure that a server does the work that it is measured by: what was written is read back equal, and what was not is missing.
struct TargetCheck {
  let address: Address
  private static let sizes = [1, 17, 100, 5_000, 60_000]
  private static let keysOfEachSize: UInt64 = 10

  func run(_ protocolName: TargetProtocol) throws {
    switch protocolName {
    case .larder: try check(LarderTarget.self)
    case .resp: try check(RespTarget.self)
    case .memcached: try check(MemcachedTarget.self)
    case .echo: try checkEcho()
    }
  }

  private func check<T: Target>(_ type: T.Type) throws {
    let line = try SetupLine(to: address)
    let session = try T(store: "bench", valueSize: 1, keysInGetMany: 1).greet(line)
    var random = Random(seed: 7)
    var written: [(key: UInt64, value: [UInt8])] = []
    for size in Self.sizes {
      let target = T(store: "bench", valueSize: size, keysInGetMany: 1)
      for _ in 0..<Self.keysOfEachSize {
        let key = BenchKey.limit - 1 - UInt64(written.count)
        let value = (0..<size).map { _ in UInt8(97 + random.below(26)) }
        let reply = try ask(line, target, .put, session, key: key, value: value).reply
        guard reply.fault == nil else { throw BenchError("a put was refused") }
        written.append((key, value))
      }
    }
    for (key, value) in written {
      let target = T(store: "bench", valueSize: value.count, keysInGetMany: 1)
      let answer = try ask(line, target, .get, session, key: key)
      guard unsafe target.value(in: answer.bytes.span.bytes) == value else {
        throw BenchError("the value of \(value.count) bytes that came back is not the one that was written")
      }
    }
    let target = T(store: "bench", valueSize: 1, keysInGetMany: 1)
    let missing = try ask(line, target, .get, session, key: BenchKey.limit / 2).reply
    guard missing.misses == 1, missing.fault == nil else { throw BenchError("a missing key was found") }
  }

  /// Whether a value of that size is found under a key; it is not while the server is still reading what it kept.
  func finds(_ key: UInt64, valueSize: Int, _ protocolName: TargetProtocol) -> Bool {
    switch protocolName {
    case .larder: finds(key, LarderTarget(store: "bench", valueSize: valueSize, keysInGetMany: 1))
    case .resp: finds(key, RespTarget(store: "bench", valueSize: valueSize, keysInGetMany: 1))
    case .memcached, .echo: false
    }
  }

  private func finds(_ key: UInt64, _ target: some Target) -> Bool {
    guard let line = try? SetupLine(to: address), let session = try? target.greet(line),
      let reply = try? ask(line, target, .get, session, key: key).reply
    else { return false }
    return reply.entries == 1 && reply.fault == nil
  }

  private func checkEcho() throws {
    let line = try SetupLine(to: address)
    let target = EchoTarget(store: "bench", valueSize: 100, keysInGetMany: 1)
    let session = try target.greet(line)
    let answer = try ask(line, target, .put, session, key: 1)
    guard answer.bytes == answer.request else { throw BenchError("the echo is not what was sent") }
  }

  private func ask<T: Target>(
    _ line: borrowing SetupLine, _ target: T, _ operation: Operation, _ session: T.Session, key: UInt64,
    value: [UInt8]? = nil
  ) throws -> (request: [UInt8], bytes: [UInt8], reply: Reply) {
    guard var template = target.template(for: operation) else { throw BenchError("there is no \(operation)") }
    if let value {
      guard let place = template.bytes.lastPlace(of: BenchValue.bytes(size: value.count)) else {
        throw BenchError("the request has no value")
      }
      template.bytes.replaceSubrange(place..<place + value.count, with: value)
    }
    var output = ByteBuffer()
    output.append(template.bytes)
    for place in template.keyPlaces { BenchKey.patch(&output, at: place, key) }
    target.stamp(&output, at: 0, sequence: 0, session: session)
    let request = output.toArray()
    var reply = Reply(end: 0)
    let bytes = try line.ask(request) { bytes in
      switch target.scan(bytes, at: 0) {
      case .reply(let whole):
        reply = whole
        return whole.end
      case .incomplete: return nil
      case .malformed: throw BenchError("a reply to \(operation) can't be understood")
      }
    }
    return (request, bytes, reply)
  }
}

extension [UInt8] {
  /// Where the last occurrence of `other` begins.
  fileprivate func lastPlace(of other: [UInt8]) -> Int? {
    guard count >= other.count else { return nil }
    return (0...count - other.count).reversed().first { self[$0..<$0 + other.count].elementsEqual(other) }
  }
}
