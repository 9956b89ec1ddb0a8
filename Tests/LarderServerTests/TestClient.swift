import Glibc
import Platform
import Wire

/// A connection that blocks, without any cleverness: bytes out, frames in. Used by one thread at a time.
final class TestClient {
  private let number: Int32
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

  /// - Parameter receiveBytes: the size of the socket's receive buffer, where it matters.
  init(_ address: Address, receiveBytes: Int32? = nil) throws {
    number = try Self.connect(address, receiveBytes)
    var limit = timeval(tv_sec: 10, tv_usec: 0)
    unsafe setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(number) }

  private static func connect(_ address: Address, _ receiveBytes: Int32?) throws -> Int32 {
    let isUnix = if case .unix = address { true } else { false }
    let number = socket(isUnix ? AF_UNIX : AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    if var receiveBytes {
      unsafe setsockopt(number, SOL_SOCKET, SO_RCVBUF, &receiveBytes, socklen_t(MemoryLayout<Int32>.size))
    }
    var result: Int32
    switch address {
    case .unix(let path):
      var target = sockaddr_un()
      target.sun_family = sa_family_t(AF_UNIX)
      unsafe withUnsafeMutableBytes(of: &target.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
      result = unsafe withUnsafeBytes(of: &target) {
        unsafe Glibc.connect(
          number, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    case .tcp(_, let port):
      var target = sockaddr_in()
      target.sin_family = sa_family_t(AF_INET)
      target.sin_port = port.bigEndian
      target.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      result = unsafe withUnsafeBytes(of: &target) {
        unsafe Glibc.connect(
          number, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else {
      let code = errno
      close(number)
      throw Failure.connecting(code)
    }
    return number
  }

  // MARK: Sending

  func send(_ bytes: [UInt8]) throws {
    var sent = 0
    while sent < bytes.count {
      let count = unsafe bytes.withUnsafeBytes {
        unsafe Glibc.send(number, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw Failure.sending(errno) }
      sent += count
    }
  }

  /// Sends what the socket takes at once.
  /// - Returns: how many bytes those are.
  func sendAtOnce(_ bytes: [UInt8]) -> Int {
    max(
      0,
      unsafe bytes.withUnsafeBytes {
        unsafe Glibc.send(number, $0.baseAddress, bytes.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
      })
  }

  func endSending() { shutdown(number, Int32(SHUT_WR)) }

  // MARK: Receiving

  /// The next frame.
  func receive(within seconds: Double = 5) throws -> Reply {
    let deadline = monotonicMilliseconds() + UInt64(seconds * 1_000)
    while true {
      if let reply = try next() { return reply }
      if hasEnded { throw Failure.ended(inFrame: received.count > 0) }
      try fill(before: deadline)
    }
  }

  /// Whether the stream ends here, with no byte left, within the time.
  func endsHere(within seconds: Double = 5) throws -> Bool {
    let deadline = monotonicMilliseconds() + UInt64(seconds * 1_000)
    while !hasEnded, received.count == 0 { try fill(before: deadline) }
    return hasEnded && received.count == 0
  }

  /// Whether nothing comes for so long.
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
    let scan = received.withSpan { FrameScan($0, at: 0, largest: 1 << 26) }
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
    var watched = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
    guard now < deadline, unsafe poll(&watched, 1, Int32(deadline - now)) > 0 else { throw Failure.timedOut }
    let number = number
    let count = unsafe received.fill(1 << 16) { room in
      let count = unsafe recv(number, room.baseAddress, room.count, 0)
      return (max(0, count), count)
    }
    // Behind a notice a reset is the end too.
    if count <= 0 { hasEnded = true }
  }
}
