import Platform
import Storage
import Wire

/// Runs the server's processing of HTTP on an arbitrary stream, without a socket. For fuzzing, this file is compiled as
/// part of the module LarderServer.
///
/// A run passes if nothing traps, the output consists of whole responses, nothing follows the end of the connection, the
/// same stream split in two gives responses with the same statuses, and a client that may only read changes nothing. The
/// first byte selects where the stream is split.
@_cdecl("fuzzHTTP")
public func fuzzHTTP(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let bytes = unsafe UnsafeBufferPointer(start: start, count: count).map { $0 | 0x20 }
  // Rights by a token replace those of the client.
  if bytes.firstRange(of: Array("authorization".utf8)) != nil { return 0 }
  let hasHeads = bytes.firstRange(of: Array("head".utf8)) != nil
  unsafe FuzzedStream.check(start, count, isRepeatable: isRepeatable) {
    HTTPStreams(permitting: $0).statuses(of: $1, splitAt: $2, hasHeads: hasHeads)
  }
  return 0
}

/// Whether a stream gets the same responses every time. What expires may be gone when its second part is executed.
private func isRepeatable(_ stream: RawSpan) -> Bool {
  stream.toArray().map { $0 | 0x20 }.firstRange(of: Array("expires".utf8)) == nil
}

/// A connection with its own server, in the same initial state every time.
private struct HTTPStreams: ~Copyable {
  private let server: ServerState
  private let grants: Grants
  private var connection: Connection
  private var executor: Executor
  private let session = HTTPSession()
  private var output = ReplyBuffer()

  init(permitting grants: Grants) {
    self.grants = grants
    var limits = ServerLimits()
    limits.maxFrameBytes = 1 << 16
    guard let name = try? StoreName("a") else { fatalError("no name") }
    server = ServerState(limits: limits, workerCount: 1, findThreadCount: 1)
    server.accessControl.change(FuzzedStream.policy)
    server.httpHosts.add(.unix(path: "/s"), alsoKnownAs: [])
    executor = Executor(server: server, metrics: server.workers[0], mailbox: FuzzedStream.mailbox)
    executor.beginWakeup(now: monotonicMilliseconds())
    connection = FuzzedStream.connect(session, to: server, now: executor.now)
    connection.admit(grants)
    guard let store = try? server.stores.create(name, .init(.memory)) else { fatalError("no store") }
    guard grants.onAll == .read else { return }
    let (key, value) = (Array("key".utf8), Array(#"{"n":1}"#.utf8))
    let isPut: Void? = store.access { map in
      unsafe try? map.put(key.span.bytes, value.span.bytes, kind: .single, expiry: 0, revision: 1, now: 0, in: nil)
    }
    if isPut == nil { fatalError("no entry") }
  }

  /// Returns the statuses of the responses to a stream.
  /// - Parameter hasHeads: Whether some requests may ask for heads, whose responses have no bodies.
  consuming func statuses(of stream: RawSpan, splitAt split: Int, hasHeads: Bool) -> [UInt8] {
    var statuses: [UInt8] = []
    var input = ByteBuffer()
    for part in [0..<split, split..<stream.byteCount] {
      input.append(stream.extracting(part))
      var (isAtEnd, rounds) = (false, 0)
      while !isAtEnd {
        let bytes = input.toArray()
        let consumed = unsafe session.process(
          bytes.span.bytes, of: &connection, prefetchEnd: 0, on: &executor, into: &output)
        executor.unlockStore()
        guard consumed >= 0, consumed <= bytes.count else { fatalError("more bytes were consumed than there are") }
        input.consume(consumed)
        var watchers = WatcherTable(FuzzedStream.mailbox)
        session.continueStreams(of: &connection, notifying: &watchers, on: &executor, into: &output)
        for index in connection.streams.indices.reversed() where connection.streams[index].remainder.isEmpty {
          connection.endStream(at: index)
        }
        rounds = consumed == 0 ? rounds + 1 : 0
        isAtEnd = !connection.executes || connection.waits.mustWait || (output.isEmpty && rounds > 3)
        statuses += takeStatuses(hasHeads: hasHeads)
      }
    }
    connection.endAllStreams()
    server.registry.remove(connection.figures)
    _ = FuzzedStream.mailbox.read()
    guard let store = server.stores.list().first(where: { $0.name.text == "a" }) else { return statuses }
    FuzzedStream.checkKeys(of: store, grants)
    if grants.onAll == .read, store.access({ $0.revisions.last }) != 1 {
      fatalError("a client that may only read has written")
    }
    return statuses
  }

  /// Clears the output, which must consist of whole responses.
  private mutating func takeStatuses(hasHeads: Bool) -> [UInt8] {
    output.copyAttachedValues()
    let bytes = output.bytes.toArray()
    output.reset(maxKeptBytes: 0)
    guard !hasHeads else { return [] }
    var (statuses, offset) = ([UInt8](), 0)
    while offset < bytes.count {
      let start = Array("HTTP/1.1 ".utf8)
      guard bytes[offset...].starts(with: start), let head = bytes[offset...].firstRange(of: [13, 10, 13, 10]) else {
        fatalError("no response at \(offset)")
      }
      statuses += bytes[offset + start.count..<offset + start.count + 3]
      let lines = String(decoding: bytes[offset..<head.lowerBound], as: UTF8.self).split(separator: "\r\n")
      offset = head.upperBound
      if lines.contains("Transfer-Encoding: chunked") {
        guard let end = bytes[offset...].firstRange(of: Array("0\r\n\r\n".utf8)) else {
          fatalError("a body without an end")
        }
        offset = end.upperBound
        continue
      }
      let prefix = "Content-Length: "
      guard let field = lines.first(where: { $0.hasPrefix(prefix) }) else { continue }
      guard let length = Int(field.dropFirst(prefix.count)), offset + length <= bytes.count else {
        fatalError("a body without an end")
      }
      offset += length
    }
    return statuses
  }
}
