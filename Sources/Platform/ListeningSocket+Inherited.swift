import CLinux
import Glibc

/// The number of a descriptor that another process has passed to this one, and the name that it goes by there. Whoever adopts it owns it.
package struct InheritedSocket: Hashable, Sendable {
  package let name: String
  package let descriptor: Int32

  package init(name: String, descriptor: Int32) {
    self.name = name
    self.descriptor = descriptor
  }
}

/// A descriptor that was passed to this process and can't be served, and why.
package struct InheritedSocketError: Error, Equatable, Sendable, CustomStringConvertible {
  package let socket: InheritedSocket
  package let reason: String
  package var description: String {
    "can't use the passed descriptor \(socket.descriptor) (\"\(socket.name)\"): \(reason)"
  }
}

extension ListeningSocket {
  /// Takes over a socket that listens already. Its file, if it has one, stays when it closes: it belongs to whoever made it.
  /// - Throws: when it is anything but a listening stream socket of a family that is served. It stays open then.
  package static func adopt(_ inherited: InheritedSocket) throws(InheritedSocketError) -> ListeningSocket {
    let address = try prepare(inherited)
    return ListeningSocket(Descriptor(owning: inherited.descriptor), address: address)
  }

  /// Makes a descriptor that was passed fit to be served.
  /// - Returns: where it listens.
  static func prepare(_ inherited: InheritedSocket) throws(InheritedSocketError) -> Address {
    let number = inherited.descriptor
    do {
      guard try Socket.option(SO_TYPE, of: number) == Int32(SOCK_STREAM.rawValue) else {
        throw Unfit(reason: "it is not a stream socket")
      }
      guard try Socket.option(SO_ACCEPTCONN, of: number) != 0 else {
        throw Unfit(reason: "it doesn't listen")
      }
      guard let address = try SocketAddress(of: number).address else {
        throw Unfit(reason: "it is neither a Unix socket nor a TCP one")
      }
      try system("fcntl") { fcntl(number, F_SETFD, FD_CLOEXEC) }
      let flags = try system("fcntl") { fcntl(number, F_GETFL) }
      try system("fcntl") { fcntl(number, F_SETFL, flags | O_NONBLOCK) }
      return address
    } catch {
      throw InheritedSocketError(socket: inherited, reason: "\(error)")
    }
  }

  private struct Unfit: Error, CustomStringConvertible {
    let reason: String
    var description: String { reason }
  }
}
