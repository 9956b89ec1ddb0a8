import Glibc
import Platform
import Wire

/// A blocking connection with one request at a time, for handshakes and for checks before a run.
struct SetupConnection: ~Copyable {
  let descriptor: Descriptor
  private let timeout: Duration

  /// - Parameter timeout: How long the server may be silent while a reply is due.
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
    try send(request)
    var reply = ByteBuffer()
    while true {
      if let end = try reply.withSpan(end) {
        reply.truncate(to: end)
        return reply.toArray()
      }
      try receive(into: &reply)
    }
  }

  private func send(_ request: [UInt8]) throws {
    var remaining = ByteBuffer()
    remaining.append(request)
    while !remaining.isEmpty {
      switch unsafe descriptor.send(remaining.bytes) {
      case .moved(let count): remaining.consume(count)
      case .wouldBlock: usleep(100)
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
