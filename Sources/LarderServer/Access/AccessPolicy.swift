import Platform
import Storage
import Tokens
import Wire

/// Who may do what, for each of a server's listeners.
///
/// Without any rule, every client may do everything, unless there is a TLS listener that other machines can reach. With
/// one, or with such a listener, only the clients that a rule matches may do anything, on all listeners. That goes for
/// root and the server's own user, too.
struct AccessPolicy: Sendable {
  let listeners: [Listener]
  /// The rules that apply to each listener; nil if there are no rules at all.
  private let rules: [[AppliedRule]]?
  let certificates: CertificateStatus
  let tokens: TokenTable

  /// The policy of a server that doesn't listen yet.
  static let nobody = AccessPolicy()

  private init() { (listeners, rules, certificates, tokens) = ([], [], CertificateStatus(), TokenTable()) }

  /// - Throws: for a rule that applies to none of the listeners, or whose role there isn't.
  init(
    _ rules: [AccessRule], roles: [AccessRole] = [], listeners: [Listener],
    certificates: CertificateStatus = CertificateStatus(), tokens: TokenTable = TokenTable()
  ) throws(AccessError) {
    let subjects = try rules.map { rule throws(AccessError) in try rule.subjects(roles) }
    let applied = listeners.map { listener in
      rules.indices.compactMap { AppliedRule(rules[$0], number: $0 + 1, subjects[$0], to: listener) }
    }
    for rule in rules {
      guard let name = rule.listener, !applied.contains(where: { $0.contains { $0.rule == rule } }) else { continue }
      throw AccessError(rule, named: name, listeners)
    }
    self.listeners = listeners
    let isOpen = rules.isEmpty && !listeners.contains(where: \.isOpenToStrangers)
    self.rules = isOpen ? nil : applied
    self.certificates = certificates
    self.tokens = tokens
  }

  /// Whether every client may do everything, so that it doesn't matter who connects.
  var isOpen: Bool { rules == nil && certificates.revoked.isEmpty }

  /// The listeners that admit nobody, because no rule applies to them.
  var closedListeners: [Listener] {
    guard let rules else { return [] }
    return zip(listeners, rules).filter { !$0.isUnix && $1.isEmpty }.map(\.0)
  }

  /// The listeners on which every user of the machine may do everything, although no file's mode protects them.
  var unprotectedListeners: [Listener] {
    guard rules == nil else { return [] }
    return listeners.filter { $0.isLocal && !$0.isUnix }
  }

  /// - Parameters:
  ///   - client: what is known of the client.
  ///   - listener: the number of the listener that accepted it.
  ///   - now: the time, in seconds since 1970.
  func grants(_ client: ClientIdentity, listener: Int, now: Int64) -> Grants {
    if let certificate = client.certificate, certificates.isRevoked(certificate) { return Grants() }
    guard let rules else { return .everything }
    let tokenOwner = client.token.flatMap { tokens.principal($0, now: now) }
    var grants = Grants()
    for rule in rules[listener] where rule.matches(client, tokenOwner: tokenOwner) { grants.add(rule.rule) }
    return grants
  }

  /// Returns what would happen if a client asked something, on each listener that it can connect to.
  func decisions(on question: RightsQuestion) -> [RightsDecision] {
    listeners.enumerated().compactMap { index, listener in
      guard question.canBeAsked(on: listener.address) else { return nil }
      guard let rules else { return RightsDecision(listener: listener, isPermitted: true) }
      let rule = rules[index].first { rule in
        rule.matches(question.client, tokenOwner: question.principal) && question.isPermitted(by: Grants(rule.rule))
      }
      // A client that no rule matches may not even use an operation that needs no right.
      return RightsDecision(listener: listener, isPermitted: rule != nil, rule: rule.map { ($0.number, $0.rule) })
    }
  }
}

/// A rule that applies to a listener.
private struct AppliedRule {
  let rule: AccessRule
  /// The position of the rule among all, from 1.
  let number: Int
  /// The subject of the rule, or those members of the role that is, as far as they can connect to the listener.
  private let subjects: [AccessRule.Subject]

  /// - Parameter subjects: Whom the rule is for.
  /// - Returns: Nil for a rule that doesn't apply to the listener.
  init?(_ rule: AccessRule, number: Int, _ subjects: [AccessRule.Subject], to listener: Listener) {
    if let name = rule.listener, !listener.isNamed(name) { return nil }
    (self.rule, self.number, self.subjects) = (rule, number, subjects.filter { $0.canConnect(to: listener.address) })
    if self.subjects.isEmpty { return nil }
  }

  /// Whether a client of the listener is its subject.
  /// - Parameter tokenOwner: The principal that has the client's token; nil if it has none.
  func matches(_ client: ClientIdentity, tokenOwner: String?) -> Bool {
    subjects.contains { $0.matches(client, tokenOwner: tokenOwner) }
  }
}

/// The error for a rule whose role or listener doesn't exist, or can't have rules of its kind.
package struct AccessError: Error, Equatable, Sendable, CustomStringConvertible {
  package let description: String

  fileprivate init(noRole name: String, _ roles: [AccessRole]) {
    description =
      "access: there is no role '\(name)'; "
      + (roles.isEmpty ? "roles has none" : "roles has \(roles.map(\.name).joined(separator: ", "))")
  }

  fileprivate init(_ rule: AccessRule, named name: String, _ listeners: [Listener]) {
    let meant = listeners.first { $0.isNamed(name) }
    let all = listeners.map(\.description).joined(separator: ", ")
    description =
      if meant == nil {
        "access: no listener is called '\(name)'; the listeners are \(all)"
      } else {
        switch meant?.address {
        case .tcp:
          "access: '\(name)' is TCP: its rules begin with principal or tcp, as in tcp=read@\(name)"
        case .tls:
          "access: '\(name)' is TLS: its rules begin with principal or tls, as in principal:web=read@\(name)"
        default:
          "access: '\(name)' is a Unix socket: its rules begin with user, group, principal or unix, as in unix=read@\(name)"
        }
      }
  }
}

extension AccessRule {
  /// Its subject, or the members of the role that is.
  fileprivate func subjects(_ roles: [AccessRole]) throws(AccessError) -> [Subject] {
    guard case .role(let name) = subject else { return [subject] }
    guard let role = roles.first(where: { $0.name == name }) else { throw AccessError(noRole: name, roles) }
    return role.members
  }
}
