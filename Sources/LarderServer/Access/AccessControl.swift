import Dispatch
import Documents
import Glibc
import Platform
import Tokens

/// Decides what connections may do, and reports what they are refused: `Protocol/wire.md` §10. Used by any thread.
final class AccessControl: Sendable {
  private let currentPolicy = Lock(AccessPolicy.nobody)
  private let refusalLog: RefusalLog
  private let userNames = UserNames()
  private let throttle = Lock(AuthenticationThrottle())
  /// Where refusals are reported, because a log may keep its writer waiting.
  private let reports = DispatchQueue(label: "larder.refusals")

  /// What a client that no rule matches asks for with its hello.
  static let useServer = "use this server"

  init(_ reportRefusal: @escaping @Sendable (RefusalLog.Event) -> Void) {
    refusalLog = RefusalLog { [reports] event in reports.async { reportRefusal(event) } }
  }

  /// The policy in force.
  var policy: AccessPolicy { currentPolicy.withLock { $0 } }

  func change(_ policy: AccessPolicy) { currentPolicy.withLock { $0 = policy } }

  /// What a connection may do under the policy in force.
  func grants(for connection: borrowing Connection) -> Grants {
    let policy = policy
    if policy.isOpen { return .everything }
    return policy.grants(
      ClientIdentity(of: connection.channel, token: connection.accessToken), listener: connection.listener,
      now: Int64(time(nil)))
  }

  /// Reports that a connection was refused something, once the name of its user is known.
  /// - Parameters:
  ///   - action: what the client asked for, as it reads after "may not".
  ///   - answered: called when the name is known, if the result is nil.
  /// - Returns: the message to the client; nil if the name has to be found out first.
  func refuse(
    _ action: String, to connection: borrowing Connection, answered: @escaping @Sendable () -> Void
  ) -> String? {
    if let peer = Socket.credentials(of: connection.channel.socket), userNames.ask(for: peer.user, answered) {
      return nil
    }
    return refuse(action, to: connection)
  }

  /// Waits no longer for the name of a connection's user.
  func giveUpOnName(of connection: borrowing Connection) {
    if let peer = Socket.credentials(of: connection.channel.socket) { userNames.giveUp(on: peer.user) }
  }

  /// Finds out the names of users for messages, as far as that takes no longer than `timeout`. Not for workers.
  func findNames(of users: Set<UInt32>, timeout: DispatchTimeInterval) {
    let answers = DispatchGroup()
    for user in users {
      answers.enter()
      if !userNames.ask(for: user, { answers.leave() }) { answers.leave() }
    }
    _ = answers.wait(timeout: .now() + timeout)
  }

  /// Reports that a connection was refused something, with its user's name if that is known.
  /// - Parameter action: what the client asked for, as it reads after "may not".
  /// - Returns: the message to the client.
  func refuse(_ action: String, to connection: borrowing Connection) -> String {
    let identity = ClientIdentity(of: connection.channel, token: connection.accessToken)
    let peer = identity.credentials
    let listener = policy.listeners[connection.listener]
    let client = describe(identity, of: listener)
    refusalLog.report(
      Refusal(
        peer: peer, origin: Socket.peer(of: connection.channel.socket).origin, client: client,
        listener: listener, action: action, reason: nil))
    return "\(client) may not \(action)"
  }

  private func describe(_ client: ClientIdentity, of listener: Listener) -> String {
    if let token = client.token, let record = policy.tokens.record(token) { return "principal \(record.name)" }
    if let certificate = client.certificate { return "principal \(certificate.principal)" }
    if let peer = client.credentials { return userNames.client(peer) }
    return listener.address.isEncrypted ? "a TLS client" : "a TCP client"
  }

  // MARK: Questions about rights

  /// Returns what is known of a client and what it may do, as JSON: `Protocol/wire.md` §6.14.
  func describeRights(of connection: borrowing Connection) -> JSONValue {
    let (client, policy) = (ClientIdentity(of: connection.channel, token: connection.accessToken), policy)
    var json: JSONValue = [:]
    if let record = client.token.flatMap(policy.tokens.record) {
      json["principal"] = .string(record.name)
      json["proof"] = "token"
      if let expiry = record.expiry { json["expires"] = .integer(expiry) }
    } else if let certificate = client.certificate {
      json["principal"] = .string(certificate.principal)
      json["proof"] = "certificate"
    }
    if let peer = client.credentials {
      json["user"] = .integer(Int64(peer.user))
      let groups = [peer.group] + peer.supplementaryGroups.filter { $0 != peer.group }
      json["groups"] = .array(groups.map { .integer(Int64($0)) })
    }
    json["rights"] = connection.grants.json
    return json
  }

  // MARK: Tokens

  /// What every client learns whose token is not accepted.
  static let invalidToken = "the token is not accepted"

  /// Checks the token of a client.
  /// - Returns: The digest of the token; nil if it is not accepted.
  func authenticate(_ text: String, of connection: borrowing Connection) -> TokenDigest? {
    let peer = Socket.peer(of: connection.channel.socket)
    let now = monotonicMilliseconds()
    let policy = policy
    let reason: String
    if !throttle.withLock({ $0.permits(peer.origin, now: now) }) {
      reason = "too many attempts with other tokens"
    } else if case .tcp = policy.listeners[connection.listener].address,
      !policy.listeners[connection.listener].isLocal
    {
      reason = "tokens are not accepted without TLS from other machines, which can read it now: revoke it"
    } else if let digest = AccessToken(text)?.digest, let record = policy.tokens.record(digest) {
      if !record.isExpired(at: Int64(time(nil))) {
        throttle.withLock { $0.didSucceed(peer.origin) }
        return digest
      }
      reason = "the token of \(record.name) has expired"
    } else {
      reason = AccessToken(text) == nil ? "the token is malformed" : "there is no such token"
    }
    throttle.withLock { $0.didFail(peer.origin, now: now) }
    refusalLog.report(
      Refusal(
        peer: Socket.credentials(of: connection.channel.socket), origin: peer.origin, client: "\(peer)",
        listener: policy.listeners[connection.listener], action: "authenticate", reason: reason))
    return nil
  }

  /// Reports that a connection was not established.
  /// - Parameter listener: The number of the listener that accepted it.
  func refuseHandshake(with peer: Peer, listener: Int, _ reason: String) {
    refusalLog.report(
      Refusal(
        peer: nil, origin: peer.origin, client: "\(peer)", listener: policy.listeners[listener], action: "connect",
        reason: reason))
  }

  /// Reports how many refusals were not reported one by one, before the server stops.
  func reportSuppressedRefusals() {
    refusalLog.reportSuppressed()
    reports.sync {}
  }
}
