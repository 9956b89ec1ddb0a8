import Platform

/// An address to listen on, and what its clients speak: `unix:PATH`, `tcp:HOST:PORT` and `tls:HOST:PORT` for Larder's own
/// protocol, `resp+unix:PATH`, `resp:HOST:PORT` and, with TLS, `resps:HOST:PORT` for that of Redis, and `http+unix:PATH`,
/// `http:HOST:PORT` and `https:HOST:PORT` for HTTP.
package struct ListenerAddress: Sendable {
  package let address: Address
  package let spoken: ListenerProtocol

  private static let protocols: [ListenerProtocol] = [.resp, .http]

  package init(_ text: String) throws(AddressError) {
    for spoken in Self.protocols {
      let name = spoken.name
      let forms = [("+", ""), (":", "tcp:"), ("s:", "tls:")]
      guard let (form, kind) = forms.first(where: { text.hasPrefix(name + $0.0) }) else { continue }
      (address, self.spoken) = (try Address(kind + text.dropFirst(name.count + form.count)), spoken)
      return
    }
    (address, spoken) = (try Address(text), .native)
  }

  init(_ address: Address, _ spoken: ListenerProtocol) { (self.address, self.spoken) = (address, spoken) }

  /// Returns the text of an address.
  /// - Parameter protocolName: What its clients speak; empty for Larder's own protocol.
  static func text(_ address: Address, _ protocolName: String) -> String {
    if protocolName.isEmpty { return "\(address)" }
    return switch address {
    case .unix: "\(protocolName)+\(address)"
    case .tcp: protocolName + "\(address)".dropFirst("tcp".count)
    case .tls: protocolName + "s" + "\(address)".dropFirst("tls".count)
    }
  }
}

extension ListenerAddress: CustomStringConvertible {
  package var description: String { Self.text(address, spoken.name) }
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

extension ServerConfiguration {
  /// Whether any listener is for HTTP.
  package var servesHTTP: Bool {
    protocols.values.contains(where: \.isHTTP)
      || sockets.contains { ListenerProtocol(ofSocketNamed: $0.name).isHTTP }
  }
}

extension InheritedSocket {
  /// Whether the connections of an inherited socket are encrypted, which its name says.
  var isEncrypted: Bool { name == "tls" || name == "resps" || name == "https" }
}

extension ListenerProtocol {
  /// What the clients of an inherited socket speak, which the name of the socket says.
  init(ofSocketNamed name: String) {
    self =
      switch name {
      case "resp", "resps": .resp
      case "http", "https": .http
      default: .native
      }
  }
}
