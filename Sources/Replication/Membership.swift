import Platform
import Storage

/// A node's life in a cluster: its beats, its lease, and what it has seen of the others.
///
/// - The lease begins when a beat is sent, and not when it is acknowledged, so it ends before any other node can have
///   waited for it.
/// - A node is declared dead only after the same beat was seen for its whole lease and a tenth of it, by one conditional
///   write. No clock is compared with another node's.
///
/// One thread at a time calls `beat`, and one the other functions.
package final class Membership: Sendable {
  private let log: any SharedLog
  package let name: String
  private let address: String
  /// How long the lease lasts after a beat, in milliseconds.
  package let leaseMilliseconds: UInt64
  private let clock: @Sendable () -> UInt64
  private let state = Lock(State())

  /// A life of the node.
  package struct Life: Sendable {
    package let node: Node
    package let lease: Lease
  }

  private struct State {
    var life: Life?
    var sightings: [Int64: Sighting] = [:]
  }

  /// The state in which another node was last seen, and since when.
  private struct Sighting {
    let state: NodeState
    let since: UInt64
  }

  package enum JoinError: Error, Equatable, CustomStringConvertible {
    case log(SharedLogError)
    /// The node of this name may still live. It is waited for.
    case waiting(name: String)
    /// Another process has the name.
    case nameTaken(String, address: String)

    /// Whether it passes by itself.
    var isTemporary: Bool { if case .nameTaken = self { false } else { true } }

    package var description: String {
      switch self {
      case .log(let error): "\(error)"
      case .waiting(let name): "waiting for the earlier lease of the node \(name) to expire"
      case .nameTaken(let name, let address):
        "another server is the node \(name), at \(address); set cluster.node to another name on one of them"
      }
    }
  }

  /// - Parameters:
  ///   - lease: In milliseconds.
  ///   - clock: The time in milliseconds, of a clock that includes the time that the machine sleeps.
  package init(
    _ name: String, address: String, lease: UInt64, in log: any SharedLog,
    clock: @escaping @Sendable () -> UInt64 = monotonicMilliseconds
  ) {
    (self.name, self.address, self.log, self.clock) = (name, address, log, clock)
    leaseMilliseconds = lease
  }

  /// The node's life; nil if it has not joined, or was declared dead.
  package var life: Life? { state.withLock { $0.life } }

  /// Makes the node join unless it has.
  package func join() throws(JoinError) {
    guard life == nil else { return }
    let obstacle: JoinError?
    do throws(SharedLogError) { obstacle = try tryToJoin() } catch { throw .log(error) }
    if let obstacle { throw obstacle }
  }

  /// - Returns: Why the node can't join yet; nil if it has joined.
  private func tryToJoin() throws(SharedLogError) -> JoinError? {
    let previous = try log.nodes().first { $0.name == name }
    if let previous, previous.isLive {
      let sighting = state.withLock { $0.sightings[previous.node.id] }
      if let sighting, sighting.state.node == previous.node, sighting.state.beat != previous.beat {
        return .nameTaken(name, address: previous.address)
      }
      guard isSilent(previous) else { return .waiting(name: name) }
    }
    let sent = clock()
    guard let node = try log.join(name, address: address, lease: leaseMilliseconds, after: previous) else {
      return .waiting(name: name)
    }
    let life = Life(node: node, lease: Lease())
    life.lease.extend(to: sent + leaseMilliseconds)
    state.withLock { $0.life = life }
    return nil
  }

  /// Extends the lease, or ends the node's life if it was declared dead.
  package func beat() throws(SharedLogError) {
    guard let life else { return }
    let sent = clock()
    if try log.beat(life.node) {
      life.lease.extend(to: sent + leaseMilliseconds)
    } else {
      life.lease.revoke()
      state.withLock { $0.life = nil }
    }
  }

  /// Ends the node's life in order. It leads nothing any more.
  package func leave() {
    guard let life else { return }
    life.lease.revoke()
    state.withLock { $0.life = nil }
    try? log.leave(life.node)
  }

  /// Looks at all nodes, declares dead those that have been silent for too long, and returns those that live.
  package func liveNodes() throws(SharedLogError) -> [Node: NodeState] {
    var live: [Node: NodeState] = [:]
    for state in try log.nodes() where state.isLive {
      if state.name != name, isSilent(state), try log.declareDead(state) { continue }
      live[state.node] = state
    }
    return live
  }

  /// Returns whether a node has been in this state for longer than its lease, as far as this one has seen.
  private func isSilent(_ node: NodeState) -> Bool {
    let now = clock()
    return state.withLock { state in
      guard let sighting = state.sightings[node.node.id], sighting.state == node else {
        state.sightings[node.node.id] = Sighting(state: node, since: now)
        return false
      }
      return now >= sighting.since + node.lease + node.lease / 10
    }
  }
}
