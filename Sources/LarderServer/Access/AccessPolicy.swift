import Glibc
import Platform
import Storage
import Tokens
import Wire

/// Who may do what, for each of a server's listeners.
///
/// Without any rule, every client may do everything, unless there is a TLS listener that other machines can reach. With
/// one, or with such a listener, only the clients that a rule matches may do anything, on
/// all listeners; and root and the server's own user may do everything over Unix sockets, because they could read and
/// change its memory and files anyway.
struct AccessPolicy: Sendable {
  let listeners: [Listener]
  /// The rules that apply to each listener; nil if there are no rules at all.
  private let rules: [[AccessRule]]?
  private let owner: UInt32
  let certificates: CertificateStatus
  let tokens: TokenTable

  /// The policy of a server that doesn't listen yet.
  static let nobody = AccessPolicy()

  private init() { (listeners, rules, owner, certificates, tokens) = ([], [], 0, CertificateStatus(), TokenTable()) }

  /// - Throws: for a rule that applies to none of the listeners.
  init(
    _ rules: [AccessRule], listeners: [Listener], certificates: CertificateStatus = CertificateStatus(),
    tokens: TokenTable = TokenTable(), owner: UInt32 = geteuid()
  ) throws(AccessError) {
    for rule in rules {
      guard let name = rule.listener, !listeners.contains(where: rule.applies) else { continue }
      throw AccessError(rule, named: name, listeners)
    }
    self.listeners = listeners
    let isOpen = rules.isEmpty && !listeners.contains(where: \.isOpenToStrangers)
    self.rules = isOpen ? nil : listeners.map { listener in rules.filter { $0.applies(to: listener) } }
    self.owner = owner
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

  /// - Parameters:
  ///   - client: what is known of the client.
  ///   - listener: the number of the listener that accepted it.
  ///   - now: the time, in seconds since 1970.
  func grants(_ client: ClientIdentity, listener: Int, now: Int64) -> Grants {
    if let certificate = client.certificate, certificates.isRevoked(certificate) { return Grants() }
    guard let rules else { return .everything }
    if let user = client.credentials?.user, user == 0 || user == owner { return .everything }
    let tokenOwner = client.token.flatMap { tokens.principal($0, now: now) }
    var grants = Grants()
    for rule in rules[listener] where rule.matches(client, tokenOwner: tokenOwner) { grants.add(rule) }
    return grants
  }
}

/// The error for a rule whose listener doesn't exist, or can't have rules of its kind.
package struct AccessError: Error, Equatable, Sendable, CustomStringConvertible {
  package let description: String

  fileprivate init(_ rule: AccessRule, named name: String, _ listeners: [Listener]) {
    let exists = listeners.contains { $0.name == name || "\($0.address)" == name }
    let all = listeners.map(\.description).joined(separator: ", ")
    description =
      if !exists {
        "access: no listener is called '\(name)'; the listeners are \(all)"
      } else {
        switch listeners.first(where: { $0.name == name || "\($0.address)" == name })?.address {
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

/// What a connection may do. Owned by the connection.
struct Grants: Equatable, Sendable {
  /// The right to the server and to every store.
  private(set) var onAll: Right
  /// Rights to single stores, beyond that.
  private var onStores: [StoreName: Right]

  static let everything = Grants(onAll: .admin)

  init(onAll: Right = .nothing, onStores: [StoreName: Right] = [:]) {
    self.onAll = onAll
    self.onStores = onStores
  }

  var isNothing: Bool { onAll == .nothing && onStores.isEmpty }

  func right(on store: StoreName) -> Right { max(onAll, onStores[store] ?? .nothing) }

  mutating func add(_ rule: AccessRule) {
    if let store = rule.store {
      onStores[store] = max(rule.right, onStores[store] ?? .nothing)
    } else {
      onAll = max(rule.right, onAll)
    }
  }
}
