import Testing
import Wire

@testable import larder_bench

@Suite struct RequestTests {
  @Test func `Eight digits match the number`() {
    for number in Array(0...20_000) + [99_999, 100_000, 12_345_678, 90_000_009, 99_999_999] {
      let digits = unsafe withUnsafeBytes(of: BenchKey.eightDigits(UInt64(number)).littleEndian) { unsafe Array($0) }
      let text = String(number)
      #expect(digits == Array((String(repeating: "0", count: 8 - text.count) + text).utf8))
    }
  }

  @Test(arguments: [0, 7, 123_456_789_012, 999_999_999_999]) func `Keys are patched in place`(number: UInt64) {
    var buffer = ByteBuffer()
    buffer.append(BenchKey.bytes(1))
    BenchKey.patch(&buffer, at: BenchKey.digitsOffset, number)
    #expect(buffer.toArray() == BenchKey.bytes(number))
  }

  @Test func `Requests to Redis are RESP commands`() throws {
    let (get, put) = try (first("get", RespTarget.self), first("put", RespTarget.self))
    #expect(try get.wholeMatch(of: Regex(#"\*2\r\n\$3\r\nGET\r\n\$16\r\nkey:00000000000\d\r\n"#)) != nil)
    #expect(
      try put.wholeMatch(of: Regex(#"\*3\r\n\$3\r\nSET\r\n\$16\r\nkey:00000000000\d\r\n\$5\r\nabcde\r\n"#)) != nil)
    let many = try first("get-many:2", RespTarget.self)
    #expect(try many.wholeMatch(of: Regex(#"\*3\r\n\$4\r\nMGET\r\n(\$16\r\nkey:00000000000\d\r\n){2}"#)) != nil)
  }

  @Test func `Requests to memcached are text commands`() throws {
    #expect(try first("get", MemcachedTarget.self).wholeMatch(of: Regex(#"get key:00000000000\d\r\n"#)) != nil)
    #expect(
      try first("put", MemcachedTarget.self).wholeMatch(of: Regex(#"set key:00000000000\d 0 0 5\r\nabcde\r\n"#)) != nil)
    #expect(
      try first("get-many:3", MemcachedTarget.self).wholeMatch(of: Regex(#"get( key:00000000000\d){3}\r\n"#)) != nil)
  }

  @Test func `Requests to Larder are wire frames`() throws {
    let put = try bytes("put", LarderTarget.self, session: 513)
    guard case .frame(let header) = unsafe FrameScan(put.span.bytes, at: 0, maxLength: 4_096) else {
      Issue.record("no frame")
      return
    }
    #expect(header == FrameHeader(bodySize: 29, kind: Wire.Operation.put.rawValue, flags: 0, detail: 513, id: 1))
    let body = Array(put[header.body(at: 0)])
    let record = unsafe WriteRecord(body.span.bytes, at: 0)
    #expect(record?.end == body.count)
    #expect(record.map { Array(body[$0.value]) } == Array("abcde".utf8))

    let scan = try bytes("ycsb-e", LarderTarget.self, session: 1, count: 50)
    var offset = 0
    while offset < scan.count {
      guard case .frame(let header) = unsafe FrameScan(scan.span.bytes, at: offset, maxLength: 4_096) else {
        Issue.record("no frame")
        return
      }
      let body = Array(scan[header.body(at: offset)])
      if header.kind == Wire.Operation.page.rawValue {
        let request = unsafe ScanRequest(body.span.bytes, of: .page)
        #expect(request.map { (1...Int(Workload.scanLimit)).contains($0.limit) && $0.cursor?.count == 16 } == true)
      }
      offset += header.frameSize
    }
  }

  @Test func `An apply has the puts of a put-many, and as many checks of absent keys`() throws {
    let frames = try [
      bytes("put-many:2", LarderTarget.self, session: 7), bytes("apply:2", LarderTarget.self, session: 7),
    ]
    let bodies = try frames.map { frame in
      let header = try #require(frameHeader(of: frame))
      #expect(header.frameSize == frame.count && header.detail == 7)
      return Array(frame[header.body(at: 0)])
    }
    #expect(frames.map { $0[4] } == [Wire.Operation.putMany.rawValue, Wire.Operation.apply.rawValue])
    #expect(bodies.map { Int($0[0]) } == [2, 4])
    var offsets = (4, 4)
    for _ in 0..<2 {
      let (many, apply) = (bodies[0], bodies[1])
      guard let write = unsafe WriteRecord(many.span.bytes, at: offsets.0),
        let put = unsafe ApplyRecord(apply.span.bytes, at: offsets.1),
        let check = unsafe ApplyRecord(apply.span.bytes, at: put.end)
      else {
        Issue.record("a record is malformed")
        return
      }
      #expect(put.kind == .putSingle && put.value.count == write.value.count && put.flags == write.flags)
      #expect(check.kind == .check && check.flags == RecordFlags.ifAbsent)
      // Keys 10 to 19 are absent.
      #expect(String(decoding: apply[check.key], as: UTF8.self).hasPrefix("key:00000000001"))
      offsets = (write.end, check.end)
    }
    #expect(offsets == (bodies[0].count, bodies[1].count))
  }

  @Test func `In YCSB F, a write of the same key follows a read`() throws {
    let text = try first("ycsb-f", MemcachedTarget.self, count: 200)
    let lines = text.split(separator: "\r\n").filter { $0.hasPrefix("get") || $0.hasPrefix("set") }
    for (read, write) in zip(lines, lines.dropFirst()) where write.hasPrefix("set") {
      #expect(read.hasPrefix("get") && read.dropFirst(4).prefix(16) == write.dropFirst(4).prefix(16))
    }
    #expect(lines.contains { $0.hasPrefix("set") })
  }

  @Test func `A workload with an unsupported operation is refused`() throws {
    for workload in ["page", "ycsb-e", "put-many:2", "apply:2"] {
      #expect(throws: BenchError.self) { try first(workload, RespTarget.self) }
      #expect(throws: BenchError.self) { try first(workload, MemcachedTarget.self) }
    }
    #expect(throws: BenchError.self) { try first("get-many:3", EchoTarget.self) }
  }

  @Test(arguments: [
    "", "gets", "mixed", "mixed:101", "get-many:0", "get-many:x", "put-many:0", "apply", "ycsb-g", "get:1", "ycsb-a:1",
  ])
  func `An invalid workload is refused`(text: String) {
    #expect(throws: BenchError.self) { try Workload(text) }
  }

  @Test func `A mix has the given shares`() throws {
    let text = try first("mixed:75", MemcachedTarget.self, count: 10_000)
    let gets = text.split(separator: "\r\n").count { $0.hasPrefix("get") }
    #expect((7_200...7_800).contains(gets))
  }

  private func frameHeader(of frame: [UInt8]) -> FrameHeader? {
    guard case .frame(let header) = unsafe FrameScan(frame.span.bytes, at: 0, maxLength: 4_096) else { return nil }
    return header
  }

  private func first<T: Target>(
    _ workload: String, _ type: T.Type, count: Int = 1
  ) throws -> String where T.Session: DefaultInitializable {
    String(decoding: try bytes(workload, type, session: T.Session(), count: count), as: UTF8.self)
  }

  private func bytes<T: Target>(
    _ workload: String, _ type: T.Type, session: T.Session, count: Int = 1
  ) throws -> [UInt8] {
    let workload = try Workload(workload)
    let target = T(store: "bench", valueSize: 5, keysPerRequest: workload.keysPerRequest)
    var writer = try RequestWriter(
      target, workload, keys: KeyChooser(workload.distribution, keys: 10, seed: 3), keyCount: 10)
    var output = ByteBuffer()
    var followUp: UInt64?
    for sequence in 0..<count {
      writer.append(to: &output, sequence: UInt32(sequence), session: session, followUp: &followUp)
    }
    return output.toArray()
  }
}

/// A session without state.
private protocol DefaultInitializable { init() }
extension RespTarget.Session: DefaultInitializable {}
extension MemcachedTarget.Session: DefaultInitializable {}
extension EchoTarget.Session: DefaultInitializable {}
