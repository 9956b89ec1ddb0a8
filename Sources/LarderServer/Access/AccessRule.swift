import Platform
import Storage

/// Says that somebody may do something. What all rules say adds up; nothing takes away.
package struct AccessRule: Equatable, Sendable {
  package enum Subject: Equatable, Sendable {
    case user(UInt32)
    /// Whose processes have it as their group or as one of their supplementary groups.
    case group(UInt32)
    /// Whoever connects to a Unix socket.
    case unix
    /// Whoever connects by TCP, which tells of nobody who he is.
    case tcp
  }

  package let subject: Subject
  package let right: Right
  /// Nil for all stores and the server itself.
  package let store: StoreName?
  /// The address or the name of the sockets that it holds for; nil for all.
  package let listener: String?

  package init(_ subject: Subject, _ right: Right, store: StoreName? = nil, listener: String? = nil) {
    self.subject = subject
    self.right = right
    self.store = store
    self.listener = listener
  }

  func holds(on listener: Listener) -> Bool {
    guard (subject == .tcp) != listener.isUnix else { return false }
    return self.listener.map { $0 == listener.name || $0 == "\(listener.address)" } ?? true
  }

  /// - Parameter peer: nil for a client of TCP.
  func means(_ peer: Credentials?) -> Bool {
    switch (subject, peer) {
    case (.user(let id), let peer?): peer.user == id
    case (.group(let id), let peer?): peer.isIn(id)
    case (.unix, .some), (.tcp, nil): true
    default: false
    }
  }
}

/// A socket that is listened on, as rules and the log name it.
package struct Listener: Equatable, Sendable, CustomStringConvertible {
  /// What the service manager calls a socket that it passed; empty for others.
  package let name: String
  package let address: Address

  package init(name: String = "", address: Address) {
    self.name = name
    self.address = address
  }

  var isUnix: Bool { if case .unix = address { true } else { false } }

  package var description: String { name.isEmpty ? "\(address)" : "\(name) (\(address))" }
}
