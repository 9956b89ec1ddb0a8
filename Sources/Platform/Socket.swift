import CLinux
import Glibc

/// Functions that create, connect and accept stream sockets. All sockets are non-blocking and closed on exec.
package enum Socket {
  // MARK: Bytes

  /// Receives bytes from a descriptor that the caller borrows: `recv(2)`. `moved(0)` is the end of the stream.
  @inline(__always)
  package static func receive(into buffer: UnsafeMutableRawBufferPointer, from number: Int32) -> Transfer {
    Transfer.of("recv") { unsafe receive_without_cancellation(number, buffer.baseAddress, buffer.count, 0) }
  }

  /// Sends bytes to a descriptor that the caller borrows: `send(2)`. Raises no signal if the peer is gone.
  @inline(__always)
  package static func send(_ bytes: UnsafeRawBufferPointer, to number: Int32) -> Transfer {
    Transfer.of("send") {
      unsafe send_without_cancellation(number, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
    }
  }

  // MARK: Connecting and accepting

  private static let flags = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)

  static func make(family: Int32) throws(SystemError) -> Descriptor {
    Descriptor(owning: try system("socket") { socket(family, flags, 0) })
  }

  static func set(_ option: Int32, level: Int32, to value: Int32, on number: Int32) throws(SystemError) {
    try system("setsockopt") {
      unsafe withUnsafePointer(to: value) {
        unsafe setsockopt(number, level, option, $0, socklen_t(MemoryLayout<Int32>.size))
      }
    }
  }

  static func option(_ option: Int32, of number: Int32) throws(SystemError) -> Int32 {
    var value: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    try system("getsockopt") { unsafe getsockopt(number, SOL_SOCKET, option, &value, &length) }
    return value
  }

  /// Sets the options of a TCP socket: it sends at once, and notices within minutes that a peer has vanished.
  private static func tune(_ socket: borrowing Descriptor, family: Int32) throws(SystemError) {
    guard family != AF_UNIX else { return }
    try set(TCP_NODELAY, level: Int32(IPPROTO_TCP), to: 1, on: socket.number)
    try set(SO_KEEPALIVE, level: SOL_SOCKET, to: 1, on: socket.number)
    try set(TCP_KEEPIDLE, level: Int32(IPPROTO_TCP), to: 60, on: socket.number)
    try set(TCP_KEEPINTVL, level: Int32(IPPROTO_TCP), to: 20, on: socket.number)
    try set(TCP_KEEPCNT, level: Int32(IPPROTO_TCP), to: 4, on: socket.number)
  }

  /// A connection that is established or in progress.
  package enum Connecting: ~Copyable {
    case connected(Descriptor)
    /// The socket becomes writable when the connection succeeds or fails; `connectionError` then says which.
    case pending(Descriptor)
  }

  /// Starts a connection to the first address that accepts one. Blocks only while it resolves a host name.
  /// - Parameter attempt: The index of the host's address to start with, modulo their number. A pending connection that
  ///   fails later leaves the other addresses untried, so the caller's next attempt starts with the next one.
  package static func connect(to address: Address, attempt: Int = 0) throws(ConnectError) -> Connecting {
    switch address {
    case .unix(let path):
      return try connect(to: SocketAddress(path: path), address)
    case .tcp(let host, let port), .tls(let host, let port):
      let candidates: [SocketAddress]
      do { candidates = try SocketAddress.resolve(host: host, port: port, forListening: false) } catch {
        throw ConnectError(address: address, reason: error.description)
      }
      var last = ConnectError(address: address, reason: "the host has no address")
      for offset in candidates.indices {
        let candidate = candidates[(attempt + offset) % candidates.count]
        do { return try connect(to: candidate, address) } catch { last = error }
      }
      throw last
    }
  }

  private static func connect(to target: SocketAddress, _ address: Address) throws(ConnectError) -> Connecting {
    do throws(SystemError) {
      let socket = try make(family: target.family)
      try tune(socket, family: target.family)
      let number = socket.number
      let result = unsafe target.withPointer { unsafe Glibc.connect(number, $0, $1) }
      if result == 0 { return .connected(socket) }
      let code = errno
      guard code == EINPROGRESS || code == EINTR else { throw SystemError("connect", errno: code) }
      return .pending(socket)
    } catch {
      throw ConnectError(address: address, reason: error.description, errno: error.errno)
    }
  }

  /// Returns the error of a pending connection that has failed; nil if it is established.
  package static func connectionError(of socket: borrowing Descriptor) -> SystemError? {
    var code: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    let result = unsafe getsockopt(socket.number, SOL_SOCKET, SO_ERROR, &code, &length)
    return result != 0 ? SystemError("getsockopt") : code != 0 ? SystemError("connect", errno: code) : nil
  }

  /// Accepts one connection from a listening socket's queue. Returns nil if the queue is empty.
  static func accept(from listener: borrowing Descriptor) throws(SystemError) -> Descriptor? {
    while true {
      let number = accept4(listener.number, nil, nil, Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue))
      if number >= 0 {
        let socket = Descriptor(owning: number)
        // This fails if the peer is gone already, which reading will report.
        if let family = try? SocketAddress(of: number).family { try? tune(socket, family: family) }
        return socket
      }
      switch errno {
      case EAGAIN: return nil
      // The connection ended before it was accepted; the next one may be intact. See accept(2), "Error handling".
      case EINTR, ECONNABORTED, EPROTO, ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH:
        continue
      case let code: throw SystemError("accept4", errno: code)
      }
    }
  }
}

/// The reason why a connection failed.
package struct ConnectError: Error, Equatable, Sendable, CustomStringConvertible {
  package let address: Address
  package let reason: String
  package let errno: Int32?

  init(address: Address, reason: String, errno: Int32? = nil) {
    self.address = address
    self.reason = reason
    self.errno = errno
  }

  package var description: String { "can't connect to \(address): \(reason)" }
}
