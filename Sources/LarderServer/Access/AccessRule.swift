import Platform
import Storage
import Wire

/// A rule that grants a right to some clients. The grants of all rules add up; nothing takes away.
package struct AccessRule: Equatable, Sendable {
  package enum Subject: Equatable, Sendable {
    case user(UInt32)
    /// Processes with this group as their group or as a supplementary group.
    case group(UInt32)
    /// All clients of Unix sockets.
    case unix
    /// All TCP clients, which are anonymous.
    case tcp
  }

  package let subject: Subject
  package let right: Right
  /// The store that it grants the right to; nil for all stores and the server itself.
  package let store: StoreName?
  /// The address or the name of the listeners that it applies to; nil for all.
  package let listener: String?

  package init(_ subject: Subject, _ right: Right, store: StoreName? = nil, listener: String? = nil) {
    self.subject = subject
    self.right = right
    self.store = store
    self.listener = listener
  }

  func applies(to listener: Listener) -> Bool {
    guard (subject == .tcp) != listener.isUnix else { return false }
    return self.listener.map { $0 == listener.name || $0 == "\(listener.address)" } ?? true
  }

  /// Whether a client is its subject.
  /// - Parameter peer: the client; nil for a TCP client.
  func matches(_ peer: Credentials?) -> Bool {
    switch (subject, peer) {
    case (.user(let id), let peer?): peer.user == id
    case (.group(let id), let peer?): peer.isIn(id)
    case (.unix, .some), (.tcp, nil): true
    default: false
    }
  }
}

/// A socket that the server listens on, as rules and the log name it.
package struct Listener: Equatable, Sendable, CustomStringConvertible {
  /// The service manager's name for an inherited socket; empty for others.
  package let name: String
  package let address: Address

  package init(name: String = "", address: Address) {
    self.name = name
    self.address = address
  }

  var isUnix: Bool { if case .unix = address { true } else { false } }

  package var description: String { name.isEmpty ? "\(address)" : "\(name) (\(address))" }
}
