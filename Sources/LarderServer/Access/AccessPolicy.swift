import Glibc
import Platform

/// Who may do what, by each of a server's sockets.
///
/// Without any rule, whoever can connect may do everything. With one, only those may do anything whom a rule names, on all sockets; and root
/// and the server's own user everything, by Unix sockets, for they could read and change its memory and its files anyway.
struct AccessPolicy: Sendable {
  let listeners: [Listener]
  /// Those that hold for each socket; nil when there are none at all.
  private let rules: [[AccessRule]]?
  private let owner: UInt32

  /// Of a server that listens nowhere yet.
  static let nobody = AccessPolicy()

  private init() { (listeners, rules, owner) = ([], [], 0) }

  /// - Throws: for a rule that holds for no socket.
  init(_ rules: [AccessRule], listeners: [Listener], owner: UInt32 = geteuid()) throws(AccessError) {
    for rule in rules {
      guard let name = rule.listener, !listeners.contains(where: rule.holds) else { continue }
      throw AccessError(rule, named: name, listeners)
    }
    self.listeners = listeners
    self.rules = rules.isEmpty ? nil : listeners.map { listener in rules.filter { $0.holds(on: listener) } }
    self.owner = owner
  }

  /// Whether anybody may do everything, so that it doesn't matter who connects.
  var isOpen: Bool { rules == nil }

  /// Sockets that let nobody in, for no rule holds for them.
  var closedListeners: [Listener] {
    guard let rules else { return [] }
    return zip(listeners, rules).filter { !$0.isUnix && $1.isEmpty }.map(\.0)
  }

  /// - Parameters:
  ///   - peer: who connected; nil for a client of TCP.
  ///   - listener: the number of the socket.
  func grants(_ peer: Credentials?, listener: Int) -> Grants {
    guard let rules else { return .everything }
    if let peer, peer.user == 0 || peer.user == owner { return .everything }
    var grants = Grants()
    for rule in rules[listener] where rule.means(peer) { grants.add(rule) }
    return grants
  }
}

/// A rule for a socket that the server doesn't have, or that it can't be for.
package struct AccessError: Error, Equatable, Sendable, CustomStringConvertible {
  package let description: String

  fileprivate init(_ rule: AccessRule, named name: String, _ listeners: [Listener]) {
    let isThere = listeners.contains { $0.name == name || "\($0.address)" == name }
    let all = listeners.map(\.description).joined(separator: ", ")
    description =
      if !isThere {
        "access: nothing that is listened on is called '\(name)'; there is \(all)"
      } else if rule.subject == .tcp {
        "access: '\(name)' is a Unix socket, which no rule for tcp can be for"
      } else {
        "access: '\(name)' is TCP, which doesn't tell who connects: rules for it begin with tcp, as in tcp=read@\(name)"
      }
  }
}
