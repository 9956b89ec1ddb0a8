/// The protocol that the clients of a listener speak.
package struct ListenerProtocol: Sendable {
  /// What serves the requests of its connections.
  let session: any Session

  /// Larder's own protocol: `Protocol/wire.md`.
  package static let native = ListenerProtocol(NativeSession())

  init(_ session: any Session) { self.session = session }
}
