import Platform
import Storage
import Tokens
import Wire

/// A rule that grants a right to some clients. The grants of all rules add up; nothing takes away.
package struct AccessRule: Equatable, Sendable {
  package enum Subject: Equatable, Sendable {
    case user(UInt32)
    /// Processes with this group as their group or as a supplementary group.
    case group(UInt32)
    /// All clients of Unix sockets.
    case unix
    /// All clients of TCP sockets without TLS, which are anonymous.
    case tcp
    /// All clients of TLS sockets, whether they have shown a certificate or not.
    case tls
    /// The owner of a certificate (`PeerCertificate.principal`) or of a token, on any socket.
    case principal(String)
    /// The members of a role.
    case role(String)

    /// Whether the clients of a socket can be the subject. That depends on the members of a role.
    package func canConnect(to address: Address) -> Bool {
      switch (self, address) {
      case (.user, .unix), (.group, .unix), (.unix, .unix), (.tcp, .tcp), (.tls, .tls), (.principal, _), (.role, _):
        true
      default: false
      }
    }
  }

  package let subject: Subject
  package let right: Right
  /// The store that it grants the right to; nil for all stores and the server itself.
  package let store: StoreName?
  /// What the keys of the entries begin with that it grants the right to; empty for all of the store.
  package let keyPrefix: String
  /// The address or the name of the listeners that it applies to; nil for all.
  package let listener: String?

  /// - Precondition: With a prefix, there is a store, and the right isn't `admin`.
  package init(
    _ subject: Subject, _ right: Right, store: StoreName? = nil, keyPrefix: String = "", listener: String? = nil
  ) {
    precondition(keyPrefix.isEmpty || store != nil && right < .admin)
    self.subject = subject
    self.right = right
    self.store = store
    self.keyPrefix = keyPrefix
    self.listener = listener
  }
}

extension AccessRule.Subject {
  /// Whether it is a client of a listener that it can connect to. A role has members instead.
  /// - Parameter tokenOwner: The principal that has the client's token; nil if it has none.
  func matches(_ client: ClientIdentity, tokenOwner: String?) -> Bool {
    switch self {
    case .user(let id): client.credentials?.user == id
    case .group(let id): client.credentials?.isIn(id) ?? false
    case .principal(let name): client.certificate?.principal == name || tokenOwner == name
    case .unix, .tcp, .tls: true
    case .role: false
    }
  }
}

/// A named set of clients, so that they have their rules in common.
package struct AccessRole: Equatable, Sendable {
  package let name: String
  /// None of them is a role.
  package let members: [AccessRule.Subject]

  package init(_ name: String, _ members: [AccessRule.Subject]) {
    (self.name, self.members) = (name, members)
  }
}

extension AccessRule: CustomStringConvertible {
  /// The rule as in the configuration, except that users and groups are numbers.
  package var description: String {
    var text = "\(subject)=\(right)"
    if let store { text += ":\(store)" }
    if !keyPrefix.isEmpty {
      let escaped = keyPrefix.replacing("%", with: "%25").replacing("@", with: "%40").replacing("*", with: "%2A")
      text += "/\(escaped)*"
    }
    if let listener { text += "@\(listener)" }
    return text
  }
}

extension AccessRule.Subject: CustomStringConvertible {
  package var description: String {
    switch self {
    case .user(let id): "user:\(id)"
    case .group(let id): "group:\(id)"
    case .principal(let name): "principal:\(name)"
    case .role(let name): "role:\(name)"
    case .unix: "unix"
    case .tcp: "tcp"
    case .tls: "tls"
    }
  }
}

/// What the server knows of a client, from its connection.
struct ClientIdentity: Equatable, Sendable {
  /// That of a client on a Unix socket.
  var credentials: Credentials?
  /// That of a TLS client that has shown one.
  var certificate: PeerCertificate?
  /// That of a client that has shown a token.
  var token: TokenDigest?

  init(credentials: Credentials? = nil, certificate: PeerCertificate? = nil, token: TokenDigest? = nil) {
    (self.credentials, self.certificate, self.token) = (credentials, certificate, token)
  }

  init(of channel: borrowing ByteChannel, token: TokenDigest?) {
    (credentials, certificate) = (Socket.credentials(of: channel.socket), channel.peerCertificate)
    self.token = token
  }
}

/// A socket that the server listens on, as rules and the log name it.
package struct Listener: Equatable, Sendable, CustomStringConvertible {
  /// The service manager's name for an inherited socket; empty for others.
  package let name: String
  package let address: Address
  /// What its clients speak, as addresses of listeners begin; empty for Larder's own protocol.
  private let protocolName: String
  /// Whether only this machine can reach it.
  let isLocal: Bool

  package init(name: String = "", address: Address, speaking protocolName: String = "", isLocal: Bool = true) {
    (self.name, self.address, self.protocolName, self.isLocal) = (name, address, protocolName, isLocal)
  }

  /// The address with the protocol of its clients, as in the setting `listen`: `resp:127.0.0.1:6379`.
  package var location: String { ListenerAddress.text(address, protocolName) }

  /// Whether a rule that names a listener means this one.
  func isNamed(_ text: String) -> Bool { text == name || text == location || text == "\(address)" }

  /// Whether other machines can reach it, and are told apart by their certificates.
  var isOpenToStrangers: Bool { address.isEncrypted && !isLocal }

  var isUnix: Bool { if case .unix = address { true } else { false } }

  package var description: String { name.isEmpty ? location : "\(name) (\(location))" }
}
