import Platform

/// Decides what connections may do, and reports what they are refused: `Protocol/wire.md` §10. Used by any thread.
final class AccessControl: Sendable {
  private let currentPolicy = Lock(AccessPolicy.nobody)
  private let refusalLog: RefusalLog
  private let userNames = UserNames()

  /// What a client that no rule matches asks for with its hello.
  static let useServer = "use this server"

  init(_ reportRefusal: @escaping @Sendable (RefusalLog.Event) -> Void) {
    refusalLog = RefusalLog(reportRefusal)
  }

  /// The policy in force.
  var policy: AccessPolicy { currentPolicy.withLock { $0 } }

  func change(_ policy: AccessPolicy) { currentPolicy.withLock { $0 = policy } }

  /// What a connection may do under the policy in force.
  func grants(for connection: borrowing Connection) -> Grants {
    let policy = policy
    let peer = policy.isOpen ? nil : Socket.credentials(of: connection.descriptor)
    return policy.grants(peer, listener: connection.listener)
  }

  /// Reports that a connection was refused something.
  /// - Parameter action: what the client asked for, as it reads after "may not".
  /// - Returns: the message to the client.
  func refuse(_ action: String, to connection: borrowing Connection) -> String {
    let peer = Socket.credentials(of: connection.descriptor)
    let client = userNames.client(peer)
    refusalLog.report(
      Refusal(peer: peer, client: client, listener: policy.listeners[connection.listener], action: action))
    return "\(client) may not \(action)"
  }

  /// Reports how many refusals were not reported one by one, before the server stops.
  func reportSuppressedRefusals() { refusalLog.reportSuppressed() }
}
