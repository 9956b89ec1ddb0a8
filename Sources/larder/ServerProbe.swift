import Glibc
import Larder
import Platform

/// Finds out whether another program than larderd listens at an address, if no larderd replies there.
///
/// Most servers wait silently for the rest of a request when they get a hello of Larder's protocol, so a command would
/// wait for its whole timeout. The probe asks on a connection of its own, in a way that other servers reply to.
enum ServerProbe {
  /// How long a larderd may take to reply to the hello before the probe begins.
  private static let patience = Duration.milliseconds(300)
  private static let timeoutMilliseconds: Int32 = 500
  /// An HTTP server replies with a status, and Redis with an error about the number of arguments.
  private static let question = "GET / HTTP/1.0\r\n\r\n"

  private static let found = Lock<String?>(nil)

  /// Begins to watch whether a client gets a connection. Closes the client if another program listens at the address.
  static func watch(_ client: LarderClient, at address: Address) {
    // A server with TLS doesn't talk to strangers.
    if address.isEncrypted { return }
    Task.detached {
      try? await Task.sleep(for: patience)
      guard client.serverName == nil, let server = server(at: address) else { return }
      found.withLock { $0 = "\(address) is \(server), and not larderd" }
      client.close()
    }
  }

  /// The failure of a command whose client the probe has closed; nil if it has closed none.
  static var failure: CommandFailure? {
    found.withLock { $0 }.map {
      CommandFailure(.unreachable, "\($0); set the address of larderd with --server or LARDER_SERVER")
    }
  }

  /// Returns what listens at an address; nil if that is larderd, or not known.
  private static func server(at address: Address) -> String? {
    guard let socket = try? socket(Socket.connect(to: address)) else { return nil }
    guard wait(for: POLLOUT, on: socket), Socket.connectionError(of: socket) == nil else { return nil }
    var question = question
    question.withUTF8 { _ = unsafe Glibc.send(socket.number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    guard wait(for: POLLIN, on: socket) else { return nil }
    var reply = [UInt8](repeating: 0, count: 64)
    let count = unsafe reply.withUnsafeMutableBytes { unsafe Glibc.recv(socket.number, $0.baseAddress, $0.count, 0) }
    guard count > 0 else { return nil }
    return unsafe ForeignProtocol.server(sending: reply.span.extracting(..<count).bytes)
  }

  private static func socket(_ connection: consuming Socket.Connecting) -> Descriptor {
    switch consume connection {
    case .connected(let socket): return socket
    case .pending(let socket): return socket
    }
  }

  private static func wait(for event: Int32, on socket: borrowing Descriptor) -> Bool {
    var descriptor = pollfd(fd: socket.number, events: Int16(event), revents: 0)
    return unsafe poll(&descriptor, 1, timeoutMilliseconds) > 0
  }
}
