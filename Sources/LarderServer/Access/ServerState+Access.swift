import Platform

extension ServerState {
  /// What a connection may do by the rules as they are now.
  func grants(_ connection: borrowing Connection) -> Grants {
    let policy = access
    let peer = policy.isOpen ? nil : Socket.credentials(of: connection.descriptor)
    return policy.grants(peer, listener: connection.listener)
  }

  /// Notes that a connection asked for what it may not do.
  /// - Parameter action: what that is, behind "may not".
  /// - Returns: what the client is told.
  func refuse(_ action: String, _ connection: borrowing Connection) -> String {
    let peer = Socket.credentials(of: connection.descriptor)
    let client = userNames.client(peer)
    refusals.note(
      Refusal(peer: peer, client: client, listener: access.listeners[connection.listener], action: action))
    return "\(client) may not \(action)"
  }
}
