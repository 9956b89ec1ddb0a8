import Glibc
import Platform
import Storage
import Wire

/// Runs the server's processing of Redis's protocol on an arbitrary stream, without a socket. For fuzzing, this file is
/// compiled as part of the module LarderServer.
///
/// A run passes if nothing traps, the output consists of whole replies, nothing follows the end of the connection, the
/// same stream split in two gives the same replies, and a client that may only read changes nothing. The first byte
/// selects where the stream is split.
@_cdecl("fuzzRESP")
public func fuzzRESP(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  unsafe FuzzedStream.check(start, count, isRepeatable: isRepeatable) {
    RESPExchange(permitting: $0).replies(to: $1, splitAt: $2)
  }
  return 0
}

/// The words with which a reply depends on time or chance.
private let varyingWords: Set<String> = [
  "CLIENT", "EX", "EXAT", "EXPIRE", "EXPIREAT", "EXPIRETIME", "HELLO", "INFO", "PEXPIRE", "PEXPIREAT", "PEXPIRETIME",
  "PSETEX",
  "PTTL", "PUBLISH", "PX", "PXAT", "RANDOMKEY", "SCAN", "SETEX", "SLOWLOG", "TIME", "TTL",
]

/// Whether a stream gets the same replies every time. One with quotes may hide a word in them. A word can be anywhere,
/// because its length says where it ends, and not what follows it.
private func isRepeatable(_ stream: RawSpan) -> Bool {
  let bytes = stream.toArray()
  if bytes.contains(UInt8(ascii: "\"")) || bytes.contains(UInt8(ascii: "'")) { return false }
  let text = bytes.map { (0x61...0x7A).contains($0) ? $0 - 0x20 : $0 }
  return !varyingWords.contains { text.firstRange(of: Array($0.utf8)) != nil }
}

/// A connection with its own server, in the same initial state every time.
private struct RESPExchange: ~Copyable {
  private let server: ServerState
  private let grants: Grants
  private var connection: Connection
  private var executor: Executor
  private let session = RESPSession()
  private var output = ReplyBuffer()

  init(permitting grants: Grants) {
    self.grants = grants
    var limits = ServerLimits()
    limits.maxFrameBytes = 1 << 16
    guard let name = try? StoreName("a") else { fatalError("no name") }
    server = ServerState(limits: limits, workerCount: 1, findThreadCount: 1)
    server.accessControl.change(FuzzedStream.policy)
    executor = Executor(server: server, metrics: server.workers[0], mailbox: FuzzedStream.mailbox)
    executor.beginWakeup(now: monotonicMilliseconds())
    connection = FuzzedStream.connect(session, to: server, now: executor.now)
    connection.grants = grants
    guard let store = try? server.stores.create(name, .init(.memory)) else { fatalError("no store") }
    guard grants.onAll == .read else { return }
    let key = Array("key".utf8)
    let isPut: Void? = store.access { map in
      unsafe try? map.put(key.span.bytes, key.span.bytes, kind: .single, expiry: 0, revision: 1, now: 0, in: nil)
    }
    if isPut == nil { fatalError("no entry") }
  }

  consuming func replies(to stream: RawSpan, splitAt split: Int) -> [UInt8] {
    var replies: [UInt8] = []
    var input = ByteBuffer()
    for part in [0..<split, split..<stream.byteCount] {
      input.append(stream.extracting(part))
      var (isAtEnd, rounds) = (false, 0)
      while !isAtEnd {
        let bytes = input.toArray()
        var consumed = 0
        let prefetchEnd = unsafe session.prefetch(bytes.span.bytes, of: &connection, on: &executor)
        executor.prefetchRecords()
        unsafe consumed = session.process(
          bytes.span.bytes, of: &connection, prefetchEnd: prefetchEnd, on: &executor, into: &output)
        executor.unlockStore()
        guard consumed >= 0, consumed <= bytes.count else { fatalError("more bytes were consumed than there are") }
        input.consume(consumed)
        session.appendPushes(of: &connection, into: &output)
        rounds = consumed == 0 ? rounds + 1 : 0
        isAtEnd = !connection.executes || (output.isEmpty && rounds > 3)
        replies += takeOutput()
      }
    }
    server.registry.remove(connection.figures)
    _ = FuzzedStream.mailbox.read()
    guard let store = server.stores.list().first else { return replies }
    FuzzedStream.checkKeys(of: store, grants)
    if grants.onAll == .read, store.access({ $0.revisions.last }) != 1 {
      fatalError("a client that may only read has written")
    }
    return replies
  }

  /// Returns and clears the output, which must consist of whole replies.
  private mutating func takeOutput() -> [UInt8] {
    output.copyAttachedValues()
    let bytes = output.bytes.toArray()
    var offset = 0
    while offset < bytes.count { offset = Self.end(ofReplyAt: offset, in: bytes) }
    output.reset(maxKeptBytes: 0)
    return bytes
  }

  private static func end(ofReplyAt start: Int, in bytes: [UInt8]) -> Int {
    guard let lineEnd = bytes[start...].firstIndex(of: 0x0D), lineEnd + 1 < bytes.count, bytes[lineEnd + 1] == 0x0A
    else {
      fatalError("a reply without an end at \(start)")
    }
    let line = String(decoding: bytes[start + 1..<lineEnd], as: UTF8.self)
    var end = lineEnd + 2
    switch Character(UnicodeScalar(bytes[start])) {
    case "+", "-", ":", "_", ",", "#": return end
    case "$", "=":
      guard let count = Int(line), count >= -1 else { fatalError("an invalid length at \(start)") }
      if count == -1 { return end }
      guard end + count + 2 <= bytes.count, bytes[end + count] == 0x0D else {
        fatalError("a value without an end at \(start)")
      }
      return end + count + 2
    case "*", "~", ">", "%":
      guard let count = Int(line), count >= -1 else { fatalError("an invalid count at \(start)") }
      let elements = max(0, count) * (bytes[start] == UInt8(ascii: "%") ? 2 : 1)
      for _ in 0..<elements {
        guard end < bytes.count else { fatalError("an aggregate without an end at \(start)") }
        end = Self.end(ofReplyAt: end, in: bytes)
      }
      return end
    default: fatalError("no reply at \(start)")
    }
  }
}
