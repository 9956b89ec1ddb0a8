import Platform

/// What a server is to do.
package struct ServerConfiguration: Sendable {
  /// A store that exists from the start.
  package struct NamedStore: Sendable {
    package let name: String
    package let engine: String

    package init(name: String, engine: String) {
      self.name = name
      self.engine = engine
    }
  }

  package var addresses: [Address]
  /// For the files of the Unix sockets among them.
  package var access = ListeningSocket.FileAccess()
  package var stores: [NamedStore] = []
  /// Event loops; each keeps a thread while it has connections.
  package var workers = 1
  package var limits = ServerLimits()

  package init(addresses: [Address]) {
    self.addresses = addresses
  }
}
