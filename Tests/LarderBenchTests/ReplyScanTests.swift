import Testing
import Wire

@testable import larder_bench

@Suite struct ReplyScanTests {
  private static let value = String(decoding: BenchValue.bytes(size: 10), as: UTF8.self)

  /// RESP replies with their numbers of entries and misses, and their failures.
  @Test(
    arguments: [
      ("+OK\r\n", 0, 0, nil), ("$10\r\n\(value)\r\n", 1, 0, nil), ("$-1\r\n", 0, 1, nil), (":12\r\n", 0, 0, nil),
      ("-ERR unknown command\r\n", 0, 0, .refused), ("$3\r\nabc\r\n", 1, 0, .unexpected),
      ("*3\r\n$10\r\n\(value)\r\n$-1\r\n$10\r\n\(value)\r\n", 2, 1, nil), ("*0\r\n", 0, 0, nil),
    ] as [(String, Int32, Int32, TargetReply.Failure?)])
  func `RESP replies are found at any split`(text: String, entries: Int32, misses: Int32, failure: TargetReply.Failure?)
  {
    let target = RespTarget(store: "", valueSize: 10, keysPerRequest: 1)
    check(Array(text.utf8), target, entries, misses, failure)
  }

  @Test(
    arguments: [
      ("STORED\r\n", 0, 0, nil), ("VALUE key:000000000001 0 10\r\n\(value)\r\nEND\r\n", 1, 0, nil),
      ("END\r\n", 0, 1, nil),
      ("SERVER_ERROR out of memory storing object\r\n", 0, 0, .refused), ("ERROR\r\n", 0, 0, .refused),
      ("VALUE k 0 3\r\nabc\r\nEND\r\n", 1, 0, .unexpected), ("NOT_STORED\r\n", 0, 0, .refused),
    ] as [(String, Int32, Int32, TargetReply.Failure?)])
  func `memcached replies are found at any split`(
    text: String, entries: Int32, misses: Int32, failure: TargetReply.Failure?
  ) {
    let target = MemcachedTarget(store: "", valueSize: 10, keysPerRequest: 1)
    check(Array(text.utf8), target, entries, misses, failure)
  }

  @Test func `Values that memcached leaves out of a reply are misses`() {
    let target = MemcachedTarget(store: "", valueSize: 10, keysPerRequest: 5)
    let text = "VALUE a 0 10\r\n\(Self.value)\r\nVALUE b 0 10\r\n\(Self.value)\r\nEND\r\n"
    check(Array(text.utf8), target, 2, 3, nil)
  }

  @Test(arguments: ["X\r\n", "$10\r\n\(value)..", "*x\r\n"])
  func `Invalid RESP is malformed`(text: String) {
    let target = RespTarget(store: "", valueSize: 10, keysPerRequest: 1)
    #expect(unsafe target.scan(Array(text.utf8).span.bytes, at: 0) == .malformed)
  }

  @Test func `Larder replies are found at any split`() {
    let target = LarderTarget(store: "", valueSize: 10, keysPerRequest: 1)
    check(frame { $0.appendReply(id: 8, number: 5) }, target, 0, 0, nil, sequence: 7)
    check(entries(id: 1, sizes: [10], missing: 0), target, 1, 0, nil, sequence: 0)
    check(entries(id: 2, sizes: [10, 10, 10], missing: 2), target, 3, 2, nil, sequence: 1)
    check(entries(id: 3, sizes: [10, 11], missing: 0), target, 2, 0, .unexpected, sequence: 2)
    check(frame { $0.appendError(.notFound, id: 4) }, target, 0, 1, nil, sequence: 3)
    check(frame { $0.appendError(.storeFull, id: 5, message: "full") }, target, 0, 0, .refused, sequence: 4)
  }

  @Test func `A reply stream is one reply`() {
    let target = LarderTarget(store: "", valueSize: 10, keysPerRequest: 1)
    let part = frame {
      let start = $0.beginReply(id: 9, more: true)
      $0.endFrame(start)
    }
    guard case .reply(let reply) = unsafe target.scan(part.span.bytes, at: 0) else {
      Issue.record("no reply")
      return
    }
    #expect(!reply.isLast)
  }

  @Test func `A notice closes the connection`() {
    let target = LarderTarget(store: "", valueSize: 10, keysPerRequest: 1)
    let notice = frame { $0.appendError(.shuttingDown, id: 0) }
    #expect(unsafe target.scan(notice.span.bytes, at: 0) == .malformed)
  }

  /// Checks that every prefix of a reply is incomplete and requires no more bytes than the reply has, and that the
  /// whole reply is found at any offset, with others after it.
  private func check<T: Target>(
    _ bytes: [UInt8], _ target: T, _ entries: Int32, _ misses: Int32, _ failure: TargetReply.Failure?,
    sequence: UInt32? = nil
  ) {
    for count in 0..<bytes.count {
      let prefix = Array(bytes[..<count])
      guard case .incomplete(let size) = unsafe target.scan(prefix.span.bytes, at: 0) else {
        Issue.record("\(count) bytes were accepted as a reply")
        return
      }
      #expect(size > count && size <= bytes.count)
    }
    let stream = [0, 0, 0] + bytes + bytes
    for offset in [3, 3 + bytes.count] {
      var expected = TargetReply(
        end: offset + bytes.count, sequence: sequence, entries: entries, misses: misses, failure: failure)
      expected.isLast = true
      #expect(unsafe target.scan(stream.span.bytes, at: offset) == .reply(expected))
    }
  }

  private func frame(_ make: (inout ByteBuffer) -> Void) -> [UInt8] {
    var buffer = ByteBuffer()
    make(&buffer)
    return buffer.toArray()
  }

  private func entries(id: UInt32, sizes: [Int], missing: Int) -> [UInt8] {
    frame { buffer in
      let start = buffer.beginReply(id: id)
      for size in sizes {
        let value = BenchValue.bytes(size: size)
        unsafe value.withUnsafeBytes { bytes in
          unsafe buffer.appendEntry(
            kind: .single, revision: 1, key: UnsafeRawBufferPointer(start: nil, count: 0), value: bytes)
        }
      }
      for _ in 0..<missing { buffer.appendMissingEntry() }
      buffer.endFrame(start)
    }
  }
}
