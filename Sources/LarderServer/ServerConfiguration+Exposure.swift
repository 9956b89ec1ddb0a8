import Platform

/// An address that other machines reach, on a server that has not been told to take that risk.
package struct ExposureError: Error, Equatable, Sendable, CustomStringConvertible {
  package let address: Address
  package var description: String {
    """
    \(address) can be reached from other machines, and TCP has neither encryption nor authentication: listen on a loopback address, \
    or say --insecure-tcp if everyone who can reach it may read and change everything
    """
  }
}

extension ServerConfiguration {
  /// Listens on an address, by the socket that was kept if there is one. That one is owned then, and nobody's to take up again.
  mutating func open(_ address: Address) throws -> ListeningSocket {
    if let index = kept.firstIndex(where: { $0.address == address }) {
      let listener = try ListeningSocket.resume(kept.remove(at: index).socket, at: address, access: access)
      try check(listener)
      return listener
    }
    let listener = try ListeningSocket.open(address, access: access, removesFile: keep == nil)
    try check(listener)
    keep?(listener.descriptor.number, listener.keptName)
    return listener
  }

  /// Takes over a socket that was passed.
  func adopt(_ socket: InheritedSocket) throws -> ListeningSocket {
    let listener = try ListeningSocket.adopt(socket)
    try check(listener)
    return listener
  }

  /// Looks at the address that was really bound, for a name says little.
  private func check(_ listener: borrowing ListeningSocket) throws(ExposureError) {
    guard listener.isLocal || allowsInsecureTCP else { throw ExposureError(address: listener.address) }
  }
}
