import Platform
import Synchronization

/// The number of connections, and of those of each user, host and principal. Used by any thread.
final class ConnectionCount: Sendable {
  private let counts = Lock(Counts())
  private let acceptedTotal = Atomic<UInt64>(0)
  private let refusedTotal = Atomic<UInt64>(0)

  private struct Counts {
    var all = 0
    var byOrigin: [Peer.Origin: Int] = [:]
    var byPrincipal: [String: Int] = [:]
  }

  /// Why a connection is refused.
  enum Refusal: Equatable {
    /// The server has too many.
    case tooMany
    /// Its user or host has too many.
    case tooManyOfOrigin
  }

  /// Counts an accepted connection.
  /// - Returns: nil, or why it is refused; it is counted as refused then.
  func add(from origin: Peer.Origin, _ limits: borrowing ServerLimits) -> Refusal? {
    acceptedTotal.add(1, ordering: .relaxed)
    let (limit, originLimit) = (limits.connections, limits.connectionsOfClient)
    let refusal: Refusal? = counts.withLock { counts in
      if counts.all >= limit { return .tooMany }
      let count = counts.byOrigin[origin, default: 0]
      if count >= originLimit { return .tooManyOfOrigin }
      counts.all += 1
      counts.byOrigin[origin] = count + 1
      return nil
    }
    if refusal != nil { refusedTotal.add(1, ordering: .relaxed) }
    return refusal
  }

  func remove(from origin: Peer.Origin) {
    counts.withLock { counts in
      counts.all -= 1
      let count = counts.byOrigin[origin, default: 1]
      counts.byOrigin[origin] = count > 1 ? count - 1 : nil
    }
  }

  /// Counts a connection as one of a principal's.
  /// - Returns: What keeps it counted; nil if the principal has too many, and it is counted as refused then.
  func add(of principal: String, _ limits: borrowing ServerLimits) -> PrincipalShare? {
    let limit = limits.connectionsOfClient
    let isAdded = counts.withLock { counts in
      let count = counts.byPrincipal[principal, default: 0]
      guard count < limit else { return false }
      counts.byPrincipal[principal] = count + 1
      return true
    }
    if isAdded { return PrincipalShare(principal, of: self) }
    refusedTotal.add(1, ordering: .relaxed)
    return nil
  }

  fileprivate func remove(of principal: String) {
    counts.withLock { counts in
      let count = counts.byPrincipal[principal, default: 1]
      counts.byPrincipal[principal] = count > 1 ? count - 1 : nil
    }
  }

  var open: UInt64 { UInt64(counts.withLock { $0.all }) }
  /// All connections that were ever accepted, including those that were refused at once.
  var accepted: UInt64 { acceptedTotal.load(ordering: .relaxed) }
  var refused: UInt64 { refusedTotal.load(ordering: .relaxed) }
}

/// A connection of a principal, which counts until this is released.
final class PrincipalShare: Sendable {
  private let principal: String
  private let count: ConnectionCount

  fileprivate init(_ principal: String, of count: ConnectionCount) { (self.principal, self.count) = (principal, count) }

  deinit { count.remove(of: principal) }
}
