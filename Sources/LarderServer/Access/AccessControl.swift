import Dispatch
import Documents
import Glibc
import Platform
import Storage
import Tokens

/// Decides what connections may do, and reports what they are refused: `Protocol/wire.md` §10. Used by any thread.
final class AccessControl: Sendable {
  private let currentPolicy = Lock(AccessPolicy.nobody)
  private let refusalLog: RefusalLog
  private let userNames = UserNames()
  private let throttle = Lock(AuthenticationThrottle())
  private let consoleSessions = ConsoleSessions()
  /// When tokens were last accepted, in seconds since 1970.
  private let tokenUses = Lock<[TokenDigest: Int64]>([:])
  /// Where refusals are reported, because a log may keep its writer waiting.
  private let reports = DispatchQueue(label: "larder.refusals")

  /// What a client that no rule matches asks for with its hello.
  static let useServer = "use this server"

  /// Where events are written; nil for nowhere.
  private let audit: AuditTrail?
  private let clientEvents: ClientEvents?
  /// Whether clients that are let in are among the events.
  private let auditsAuthentications: Bool

  init(_ reportRefusal: @escaping @Sendable (RefusalLog.Event) -> Void, _ auditing: AuditSettings = AuditSettings()) {
    let audit = auditing.write.map { AuditTrail($0) }
    (self.audit, auditsAuthentications) = (audit, auditing.includesAuthentications)
    clientEvents = audit.map(ClientEvents.init)
    refusalLog = RefusalLog { [reports] event in
      reports.async { reportRefusal(event) }
      if let audit { for event in event.auditEvents { audit.record(event) } }
    }
  }

  /// The policy in force.
  var policy: AccessPolicy { currentPolicy.withLock { $0 } }

  /// Changes the policy, and ends the consoles of clients that it leaves without rights, for good: they don't come back
  /// with the line of a revoked token.
  func change(_ policy: AccessPolicy) {
    currentPolicy.withLock { $0 = policy }
    consoleSessions.end { !Self.isPermitted($0, policy) }
  }

  /// Whether a client may have a console.
  private static func isPermitted(_ owner: ConsoleSession.Owner, _ policy: AccessPolicy) -> Bool {
    if let token = owner.identity.token, policy.tokens.record(token) == nil { return false }
    return !policy.grants(owner.identity, listener: owner.listener, now: Int64(time(nil))).isNothing
  }

  /// What a connection may do under the policy in force.
  func grants(for connection: borrowing Connection) -> Grants {
    let policy = policy
    if policy.isOpen { return .everything }
    if let session = connection.consoleSession, session.isOver(now: monotonicMilliseconds()) { return Grants() }
    let owner = owner(of: connection)
    return policy.grants(owner.identity, listener: owner.listener, now: Int64(time(nil)))
  }

  /// Whose rights a connection has.
  private func owner(of connection: borrowing Connection) -> ConsoleSession.Owner {
    connection.consoleSession?.owner
      ?? ConsoleSession.Owner(
        identity: ClientIdentity(of: connection.channel, token: connection.accessToken), listener: connection.listener,
        peer: connection.figures.peer)
  }

  /// Reports that a connection was refused something, once the name of its user is known.
  /// - Parameters:
  ///   - action: what the client asked for, as it reads after "may not".
  ///   - answered: called when the name is known, if the result is nil.
  /// - Returns: the message to the client; nil if the name has to be found out first.
  func refuse(
    _ action: String, to connection: borrowing Connection, answered: @escaping @Sendable () -> Void
  ) -> String? {
    if case .process(_, let user) = connection.figures.peer, userNames.ask(for: user, answered) { return nil }
    return refuse(action, to: connection)
  }

  /// Waits no longer for the name of a connection's user.
  func giveUpOnName(of connection: borrowing Connection) {
    if case .process(_, let user) = connection.figures.peer { userNames.giveUp(on: user) }
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
    let client = auditClient(of: connection)
    let name = name(of: client)
    refusalLog.report(Refusal(client: client, clientName: name, action: action, reason: nil))
    return "\(name) may not \(action)"
  }

  private func name(of client: AuditClient) -> String {
    if let principal = client.principal { return "principal \(principal)" }
    if case .process(_, let user) = client.peer { return userNames.client(user) }
    return client.listener.address.isEncrypted ? "a TLS client" : "a TCP client"
  }

  // MARK: The audit

  /// Whether there is an audit, so that events are worth making.
  var isAudited: Bool { audit != nil }

  var auditFigures: AuditTrail.Figures { audit?.figures ?? AuditTrail.Figures() }

  /// Who the client of a connection is. Makes no system call.
  func auditClient(of connection: borrowing Connection) -> AuditClient {
    let policy = policy
    func client(_ listener: Int, _ peer: Peer, _ token: TokenDigest?, _ certificate: PeerCertificate?) -> AuditClient {
      AuditClient(
        listener: policy.listeners[listener], peer: peer, connection: connection.figures.number,
        tokenOwner: token.flatMap(policy.tokens.record)?.name, certificate: certificate)
    }
    if let owner = connection.consoleSession?.owner {
      return client(owner.listener, owner.peer, owner.identity.token, owner.identity.certificate)
    }
    return client(
      connection.listener, connection.figures.peer, connection.accessToken, connection.channel.peerCertificate)
  }

  func record(_ event: AuditEvent) { clientEvents?.record(event) }

  /// Records that a client has rights from now on.
  func didAdmit(_ connection: borrowing Connection) {
    guard audit != nil, auditsAuthentications, !policy.isOpen else { return }
    record(AuditEvent(.authenticated, auditClient(of: connection)))
  }

  /// Records that a client has deleted all entries of a store.
  func didEmpty(_ store: StoreName, _ connection: borrowing Connection) {
    guard audit != nil else { return }
    record(AuditEvent(.storeEmptied, auditClient(of: connection), store: store.text))
  }

  // MARK: Questions about rights

  /// Returns what is known of a client and what it may do, as JSON: `Protocol/wire.md` §6.14.
  func describeRights(of connection: borrowing Connection) -> JSONValue {
    let (client, policy) = (owner(of: connection).identity, policy)
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

  /// Returns the tokens that are accepted, and when each was last used, as JSON: `Protocol/wire.md` §6.14.
  func describeTokens() -> JSONValue {
    let uses = tokenUses.withLock { $0 }
    return .array(
      policy.tokens.sorted.map { record in
        var json: JSONValue = ["name": .string(record.name), "created": .integer(record.created)]
        json["expires"] = record.expiry.map { .integer($0) }
        json["lastUsed"] = uses[record.digest].map { .integer($0) }
        return json
      })
  }

  // MARK: Consoles

  /// Returns the secret of a link by which a browser gets the rights of a connection; nil if every client has all rights.
  func makeConsoleLink(for connection: borrowing Connection) -> AccessToken? {
    policy.isOpen ? nil : consoleSessions.makeLink(for: owner(of: connection))
  }

  /// Begins the session of a link.
  /// - Returns: The token of the session.
  func openConsole(
    _ link: String, of connection: borrowing Connection
  ) throws(AuthenticationError) -> AccessToken {
    if acceptsSecrets(from: connection), let link = AccessToken(link),
      let token = consoleSessions.open(link, isPermitted: { Self.isPermitted($0, policy) })
    {
      return token
    }
    throw didFail(connection)
  }

  /// Returns the session of a token; nil if it is none, or over.
  func consoleSession(_ token: String, of connection: borrowing Connection) -> ConsoleSession? {
    guard acceptsSecrets(from: connection) else { return nil }
    return AccessToken(token).flatMap(consoleSessions.session)
  }

  func endConsoleSession(_ token: String) { AccessToken(token).map(consoleSessions.end) }

  // MARK: Tokens

  /// Whether nobody else can read what a connection sends.
  private func acceptsSecrets(from connection: borrowing Connection) -> Bool {
    let listener = policy.listeners[connection.listener]
    if case .tcp = listener.address { return listener.isLocal }
    return true
  }

  /// Checks the token of a client. A right one is accepted whatever others have shown.
  func authenticate(
    _ text: String, of connection: borrowing Connection
  ) throws(AuthenticationError) -> TokenDigest {
    let policy = policy
    let reason: String
    if !acceptsSecrets(from: connection) {
      reason = "tokens are not accepted without TLS from other machines, which can read it now: revoke it"
    } else if let digest = AccessToken(text)?.digest, let record = policy.tokens.record(digest) {
      let now = Int64(time(nil))
      if !record.isExpired(at: now) {
        tokenUses.withLock { $0[digest] = now }
        return digest
      }
      reason = "the token of \(record.name) has expired"
    } else {
      reason = AccessToken(text) == nil ? "the token is malformed" : "there is no such token"
    }
    let (client, peer) = (auditClient(of: connection), connection.figures.peer)
    refusalLog.report(Refusal(client: client, clientName: "\(peer)", action: "authenticate", reason: reason))
    throw didFail(connection)
  }

  /// Counts a failed attempt, and returns the reason that the client learns.
  private func didFail(_ connection: borrowing Connection) -> AuthenticationError {
    let (origin, now) = (connection.figures.peer.origin, monotonicMilliseconds())
    let pause = throttle.withLock { $0.didFail(origin, now: now) }
    return pause == 0 ? .invalidToken : .tooManyAttempts(milliseconds: pause)
  }

  /// Reports that a connection was not established.
  /// - Parameter listener: The number of the listener that accepted it.
  func refuseHandshake(with peer: Peer, listener: Int, _ reason: String) {
    let client = AuditClient(listener: policy.listeners[listener], peer: peer)
    refusalLog.report(Refusal(client: client, clientName: "\(peer)", action: "connect", reason: reason))
  }

  /// Reports how many refusals were not reported one by one, and waits for the audit, before the server stops.
  func finish() {
    refusalLog.reportSuppressed()
    clientEvents?.finish()
    reports.sync {}
    audit?.finish()
  }
}

/// What is audited, and how it is written.
package struct AuditSettings: Sendable {
  /// Writes events, on a thread of its own that may wait; nil for no audit.
  package var write: (@Sendable ([AuditEvent]) -> Void)?
  /// Whether clients that are let in are among the events.
  package var includesAuthentications = false

  package init() {}
}

extension RefusalLog.Event {
  /// The event as the audit has it: one event for each user or host whose refusals were suppressed.
  fileprivate var auditEvents: [AuditEvent] {
    switch self {
    case .refused(let refusal):
      let kind = refusal.reason == nil ? AuditEvent.Kind.refused : .authenticationFailed
      return [AuditEvent(kind, refusal.client, reason: refusal.reason ?? refusal.action)]
    case .suppressed(let count, let counts):
      let rest = count - counts.values.reduce(0, +)
      return counts.sorted { $0.value > $1.value }.map {
        AuditEvent(.refused, reason: "further ones of \($0.key)", count: $0.value)
      }
        + (rest > 0 ? [AuditEvent(.refused, reason: "further ones", count: rest)] : [])
    }
  }
}
