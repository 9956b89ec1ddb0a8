import Platform

/// An address to listen on, and what its clients speak: `unix:PATH`, `tcp:HOST:PORT` and `tls:HOST:PORT` for Larder's own
/// protocol, `resp+unix:PATH`, `resp:HOST:PORT` and, with TLS, `resps:HOST:PORT` for that of Redis.
package struct ListenerAddress: Sendable {
  package let address: Address
  package let spoken: ListenerProtocol

  private static let prefix = "resp"

  package init(_ text: String) throws(AddressError) {
    if text.hasPrefix(Self.prefix + "+") {
      (address, spoken) = (try Address(String(text.dropFirst(Self.prefix.count + 1))), .resp)
    } else if text.hasPrefix(Self.prefix + ":") {
      (address, spoken) = (try Address("tcp:" + text.dropFirst(Self.prefix.count + 1)), .resp)
    } else if text.hasPrefix(Self.prefix + "s:") {
      (address, spoken) = (try Address("tls:" + text.dropFirst(Self.prefix.count + 2)), .resp)
    } else {
      (address, spoken) = (try Address(text), .native)
    }
  }

  init(_ address: Address, _ spoken: ListenerProtocol) { (self.address, self.spoken) = (address, spoken) }
}

extension ServerConfiguration {
  /// The addresses to listen on, with the protocols of their clients.
  package var listeners: [ListenerAddress] {
    get { addresses.map { ListenerAddress($0, protocols[$0] ?? .native) } }
    set {
      addresses = newValue.map(\.address)
      protocols = Dictionary(newValue.map { ($0.address, $0.spoken) }) { first, _ in first }
    }
  }
}

extension InheritedSocket {
  /// Whether the connections of an inherited socket are encrypted, which its name says.
  var isEncrypted: Bool { name == "tls" || name == "resps" }
}

extension ListenerProtocol {
  /// What the clients of an inherited socket speak, which the name of the socket says.
  init(ofSocketNamed name: String) { self = name == "resp" || name == "resps" ? .resp : .native }
}
