import Glibc
import Platform
import Testing
import Wire

/// A simple blocking connection that sends bytes and receives frames. One thread at a time may use it.
final class TestClient {
  private let descriptor: Int32
  private var received = ByteBuffer()
  private var hasEnded = false

  enum Failure: Error, Equatable {
    case connecting(Int32)
    case sending(Int32)
    case timedOut
    /// The stream ended, between frames or inside one.
    case ended(inFrame: Bool)
    case invalidLength(UInt32)
  }

  /// Connects to a server.
  ///
  /// - Parameter receiveBytes: The size of the socket's receive buffer, or `nil` for the system's default.
  init(_ address: Address, receiveBytes: Int32? = nil) throws {
    descriptor = try Self.connect(address, receiveBytes)
    var limit = timeval(tv_sec: 10, tv_usec: 0)
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(descriptor) }

  private static func connect(_ address: Address, _ receiveBytes: Int32?) throws -> Int32 {
    let isUnix = if case .unix = address { true } else { false }
    let descriptor = socket(isUnix ? AF_UNIX : AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    if var receiveBytes {
      unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBytes, socklen_t(MemoryLayout<Int32>.size))
    }
    var result: Int32
    switch address {
    case .unix(let path):
      var target = sockaddr_un()
      target.sun_family = sa_family_t(AF_UNIX)
      unsafe withUnsafeMutableBytes(of: &target.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
      result = unsafe withUnsafeBytes(of: &target) {
        unsafe Glibc.connect(
          descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    case .tcp(_, let port), .tls(_, let port):
      var target = sockaddr_in()
      target.sin_family = sa_family_t(AF_INET)
      target.sin_port = port.bigEndian
      target.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      result = unsafe withUnsafeBytes(of: &target) {
        unsafe Glibc.connect(
          descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else {
      let code = errno
      close(descriptor)
      throw Failure.connecting(code)
    }
    return descriptor
  }

  // MARK: Sending

  func send(_ bytes: [UInt8]) throws {
    var sent = 0
    while sent < bytes.count {
      let count = unsafe bytes.withUnsafeBytes {
        unsafe Glibc.send(descriptor, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw Failure.sending(errno) }
      sent += count
    }
  }

  /// Sends as many bytes as the socket accepts without blocking.
  ///
  /// - Returns: The number of bytes sent.
  func sendWithoutBlocking(_ bytes: [UInt8]) -> Int {
    max(
      0,
      unsafe bytes.withUnsafeBytes {
        unsafe Glibc.send(descriptor, $0.baseAddress, bytes.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
      })
  }

  func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  // MARK: Receiving

  /// Returns the next frame.
  func receive(within seconds: Double = 30) throws -> Reply {
    let deadline = monotonicMilliseconds() + UInt64(seconds * 1_000)
    while true {
      if let reply = try next() { return reply }
      if hasEnded { throw Failure.ended(inFrame: received.count > 0) }
      try fill(before: deadline)
    }
  }

  /// Returns the next bytes, whatever they are.
  func receive(byteCount: Int, within seconds: Double = 30) throws -> [UInt8] {
    let deadline = monotonicMilliseconds() + UInt64(seconds * 1_000)
    while received.count < byteCount {
      if hasEnded { throw Failure.ended(inFrame: received.count > 0) }
      try fill(before: deadline)
    }
    let bytes = received.withSpan { $0.extracting(0..<byteCount).toArray() }
    received.consume(byteCount)
    return bytes
  }

  /// Returns whether the server closes the connection within the given time without sending anything else.
  func isClosed(within seconds: Double = 30) throws -> Bool {
    let deadline = monotonicMilliseconds() + UInt64(seconds * 1_000)
    while !hasEnded, received.count == 0 { try fill(before: deadline) }
    return hasEnded && received.count == 0
  }

  /// Returns whether the server sends nothing for the given time.
  func isSilent(for seconds: Double) -> Bool {
    do {
      let deadline = monotonicMilliseconds() + UInt64(seconds * 1_000)
      try fill(before: deadline)
      return false
    } catch {
      return received.count == 0
    }
  }

  private func next() throws -> Reply? {
    let scan = received.withSpan { FrameScan($0, at: 0, maxLength: 1 << 26) }
    switch scan {
    case .partial: return nil
    case .invalid(let length): throw Failure.invalidLength(length)
    case .frame(let header):
      let body = received.withSpan { $0.extracting(header.body(at: 0)).toArray() }
      received.consume(header.frameSize)
      return Reply(header, body)
    }
  }

  private func fill(before deadline: UInt64) throws {
    let now = monotonicMilliseconds()
    var watched = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard now < deadline, unsafe poll(&watched, 1, Int32(deadline - now)) > 0 else { throw Failure.timedOut }
    let descriptor = descriptor
    let count = unsafe received.fill(1 << 16) { room in
      let count = unsafe recv(descriptor, room.baseAddress, room.count, 0)
      return (max(0, count), count)
    }
    // After a notice, a reset ends the connection, too.
    if count <= 0 { hasEnded = true }
  }
}

extension TestClient {
  /// Sends the hello and returns the reply.
  @discardableResult
  func handshake(credit: UInt32 = 1 << 20, token: String = "") throws -> ServerHello {
    var buffer = ByteBuffer()
    let features = token.isEmpty ? 0 : Features.tokens
    buffer.appendRequest(ClientHello(features: features, credit: credit, name: "test", token: token), id: 1)
    let reply = try call(buffer.toArray())
    return try #require(unsafe ServerHello(body: reply.body.span.bytes), "\(reply)")
  }

  /// Sends a request and returns the next frame.
  func call(_ request: [UInt8]) throws -> Reply {
    try send(request)
    return try receive()
  }

  /// Returns the frames of the reply stream with the given id, up to its last one. No other reply may be on its way.
  func receiveReplyStream(_ id: UInt32) throws -> [Reply] {
    var frames: [Reply] = []
    repeat {
      frames.append(try receive())
      try #require(frames[frames.count - 1].id == id, "\(frames[frames.count - 1])")
    } while frames[frames.count - 1].more
    return frames
  }

  /// Returns the figures of the server, or of the store with the given handle.
  func figures(store: UInt16 = 0) throws -> [String: UInt64] {
    let reply = try call(Request.make(.stats, store: store, id: 0x5AA5))
    let figures = try #require(unsafe Figure.decode(reply.body.span.bytes))
    return Dictionary(uniqueKeysWithValues: figures.map { ($0.name, $0.value) })
  }

  /// Returns whether the server replies to a ping.
  func pings() throws -> Bool {
    let reply = try call(Request.make(.ping, store: 0, id: 0x1234))
    return reply.isDone && reply.id == 0x1234 && reply.body.isEmpty
  }
}

/// Puts entries `key0`, `key1`, … with values of `size` bytes.
func putEntries(_ client: TestClient, _ count: Int, size: Int = 40_000) throws {
  for index in 0..<count {
    let value = [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: size)
    try #require(try client.call(Request.put("key\(index)", value, id: 0xF000)).isDone)
  }
}
