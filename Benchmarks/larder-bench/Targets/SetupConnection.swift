import Glibc
import Platform
import Wire

/// A blocking connection with one request at a time, for handshakes and for checks before a run.
struct SetupConnection: ~Copyable {
  let descriptor: Descriptor
  private let timeout: Duration

  /// - Parameter timeout: How long the server may be silent while a reply is due, or accept no bytes.
  init(to address: Address, timeout: Duration = .seconds(5)) throws {
    self.timeout = timeout
    switch try Socket.connect(to: address) {
    case .connected(let socket): descriptor = socket
    case .pending(let socket):
      let poll = try Poll()
      try poll.add(socket.number, .writing, token: 0)
      var events = Poll.Events(capacity: 1)
      guard poll.wait(timeoutMilliseconds: 5_000, into: &events) == 1 else {
        throw BenchError("can't connect to \(address): no reply within 5 seconds")
      }
      if let error = Socket.connectionError(of: socket) { throw BenchError("can't connect to \(address): \(error)") }
      descriptor = socket
    }
  }

  consuming func release() -> Descriptor { descriptor }

  /// Sends a request and returns its reply.
  /// - Parameter end: Returns the size of the reply, or nil if the received bytes are incomplete.
  func exchange(_ request: [UInt8], end: (RawSpan) throws -> Int?) throws -> [UInt8] {
    var reply = ByteBuffer()
    try exchange(request, into: &reply, end: end)
    return reply.toArray()
  }

  /// Sends a request and receives its reply into a buffer, whose memory is reused.
  func exchange(_ request: [UInt8], into reply: inout ByteBuffer, end: (RawSpan) throws -> Int?) throws {
    try send(request)
    reply.removeAll()
    while true {
      if let end = try reply.withSpan(end) { return reply.truncate(to: end) }
      try receive(into: &reply)
    }
  }

  /// - Throws: `BenchError` if the connection is lost, or the server accepts no bytes for as long as the timeout.
  func send(_ request: [UInt8]) throws {
    var sent = 0
    var deadline = Clocks.now() + timeout.nanoseconds
    while sent < request.count {
      let transfer = unsafe request.withUnsafeBytes {
        unsafe descriptor.send(UnsafeRawBufferPointer(rebasing: $0[sent...]))
      }
      switch transfer {
      case .moved(let count):
        sent += count
        deadline = Clocks.now() + timeout.nanoseconds
      case .wouldBlock:
        guard Clocks.now() < deadline else { throw BenchError("the server accepts no more bytes") }
        usleep(100)
      case .failed(let error): throw BenchError("the connection was lost: \(error)")
      }
    }
  }

  private func receive(into reply: inout ByteBuffer) throws {
    guard descriptor.waitUntilReadable(microseconds: Int(timeout.seconds * 1e6)) else {
      throw BenchError("the server does not reply")
    }
    let transfer = unsafe reply.fill(65_536) { room -> (written: Int, result: Transfer) in
      let transfer = unsafe descriptor.receive(into: room)
      if case .moved(let count) = transfer { return (count, transfer) }
      return (0, transfer)
    }
    switch transfer {
    case .moved(0): throw BenchError("the server closed the connection")
    case .failed(let error): throw BenchError("the connection was lost: \(error)")
    case .moved, .wouldBlock: break
    }
  }
}

/// An error that ends a run, with a message for the user.
struct BenchError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
