import Platform

/// What the clients of a listener speak: a protocol, and perhaps a layer below it, such as encryption.
package struct ListenerProtocol: Sendable {
  /// What serves the requests of its connections.
  let session: any Session
  /// The name with which addresses of its listeners begin; empty for Larder's own protocol.
  let name: String
  /// The name that TLS clients give the protocol (ALPN); nil if it has none.
  package let applicationName: String?
  private let layer: ChannelLayerFactory?

  /// Larder's own protocol: `Protocol/wire.md`.
  package static let native = ListenerProtocol(NativeSession(), applicationName: "larder/1")

  /// That of Redis: versions 2 and 3 of RESP.
  package static let resp = ListenerProtocol(RESPSession(), name: "resp", applicationName: "redis")

  /// HTTP/1.1: `Protocol/http.yaml`.
  package static let http = ListenerProtocol(HTTPSession(), name: "http", applicationName: "http/1.1")

  /// - Parameter layer: Makes the layer of each connection; nil for bytes that are on the socket as they are.
  init(
    _ session: any Session, name: String = "", applicationName: String? = nil, over layer: ChannelLayerFactory? = nil
  ) {
    (self.session, self.name, self.applicationName, self.layer) = (session, name, applicationName, layer)
  }

  var hasLayer: Bool { layer != nil }
  var isHTTP: Bool { session is HTTPSession }

  /// Whether TLS clients must name the protocol. Those of other protocols may name none, but no others only: so nobody can
  /// make a browser send to one server what is meant for another.
  package var mustBeNamed: Bool { session is NativeSession }

  /// Makes the channel of a connection; nil without memory for its layer.
  func makeChannel(over socket: consuming Descriptor) -> ByteChannel? {
    guard let makeLayer = layer else { return ByteChannel(socket) }
    guard let layer = makeLayer() else { return nil }
    return ByteChannel(socket, layer: layer)
  }

  /// The same protocol over a layer.
  func over(_ layer: @escaping ChannelLayerFactory) -> ListenerProtocol {
    ListenerProtocol(session, name: name, applicationName: applicationName, over: layer)
  }
}
