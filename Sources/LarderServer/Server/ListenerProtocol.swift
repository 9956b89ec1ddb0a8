import Platform

/// What the clients of a listener speak: a protocol, and perhaps a layer below it, such as encryption.
package struct ListenerProtocol: Sendable {
  /// What serves the requests of its connections.
  let session: any Session
  private let layer: ChannelLayerFactory?

  /// Larder's own protocol: `Protocol/wire.md`.
  package static let native = ListenerProtocol(NativeSession())

  /// That of Redis: versions 2 and 3 of RESP.
  package static let resp = ListenerProtocol(RESPSession())

  /// - Parameter layer: Makes the layer of each connection; nil for bytes that are on the socket as they are.
  init(_ session: any Session, over layer: ChannelLayerFactory? = nil) {
    (self.session, self.layer) = (session, layer)
  }

  var hasLayer: Bool { layer != nil }

  /// Makes the layer of a connection; nil if there is none.
  func makeLayer() -> (any ChannelLayer)? { layer?() }
}
