import Platform
import Synchronization

/// Who uses a part of what all clients share: a principal, a host that it connects from, and one of its connections.
struct Sharer: Hashable, Sendable {
  enum Principal: Hashable, Sendable {
    /// A client without any right so far, because it has yet to prove who it is.
    case stranger
    /// A client that has rights without having proved anything, such as every one of a server without access rules.
    case anonymous
    /// The user of a client on a Unix socket.
    case user(UInt32)
    /// The owner of a certificate or a token.
    case named(String)
  }

  let principal: Principal
  let host: Peer.Origin
  /// The connection's number among all that the server ever had.
  let connection: UInt64

  init(_ principal: Principal, host: Peer.Origin = .unknown, connection: UInt64) {
    (self.principal, self.host, self.connection) = (principal, host, connection)
  }

  /// A client of which no more is known than where it is.
  init(strangerAt peer: Peer, connection: UInt64) {
    self.init(.stranger, host: peer.origin, connection: connection)
  }

  /// A client with rights.
  /// - Parameter name: What it has proved to be called; nil if it has no name.
  init(_ peer: Peer, provedAs name: String?, connection: UInt64) {
    let principal: Principal =
      if let name {
        .named(name)
      } else if case .process(_, let user) = peer {
        .user(user)
      } else {
        .anonymous
      }
    self.init(principal, host: peer.origin, connection: connection)
  }

  /// The levels at which an amount is divided, from the whole to the connections.
  fileprivate enum Level: Hashable {
    case principal(Principal)
    case host(Peer.Origin)
    case connection(UInt64)
  }

  fileprivate static let levelCount = 3

  fileprivate func level(_ depth: Int) -> Level {
    switch depth {
    case 0: .principal(principal)
    case 1: .host(host)
    default: .connection(connection)
    }
  }
}

/// The sharer that a connection is, which changes when its client proves who it is.
final class ConnectionSharer: Sendable {
  private let sharer: Lock<Sharer>

  init(_ sharer: Sharer) { self.sharer = Lock(sharer) }

  var current: Sharer { sharer.withLock { $0 } }

  func change(to sharer: Sharer) { self.sharer.withLock { $0 = sharer } }
}

/// Divides a limited amount among the principals that want a part of it, a principal's part among its hosts, and a host's
/// among its connections.
///
/// Anyone may take what is free. Once nothing is, the one who has most loses: a request for more is refused if it comes
/// from there, and otherwise takes away the newest share of the principal that has most, or of the principal's own
/// host or connection that has most. So a client that has less than others always gets something, however much the others
/// want. Strangers lose to everyone else, however little they have.
///
/// Used by any thread.
final class FairShares: Sendable {
  /// What is taken by sharers that have some levels in common.
  private struct Use {
    var amount = 0
    /// By the next level.
    var parts: [Sharer.Level: Use] = [:]
    /// Those of a connection. The newest is the last one.
    var shares: [Share] = []

    var isEmpty: Bool { parts.isEmpty && shares.isEmpty }

    /// The newest share of whoever has most.
    var victim: Share? { shares.last ?? parts.values.max { $0.amount < $1.amount }?.victim }

    mutating func add(_ amount: Int, to share: Share, depth: Int = 0) {
      self.amount += amount
      guard depth < Sharer.levelCount else {
        if share.amount == 0 { shares.append(share) }
        share.setAmount(share.amount + amount)
        if share.amount == 0 { shares.removeAll { $0 === share } }
        return
      }
      let level = share.sharer.level(depth)
      parts[level, default: Use()].add(amount, to: share, depth: depth + 1)
      if parts[level]?.isEmpty == true { parts[level] = nil }
    }
  }

  private let all = Lock(Use())
  /// Whether the one who would then have as much as the one who has most is served, so that a new share replaces an old
  /// one. Otherwise, the old one stays.
  private let replacesEqual: Bool

  init(replacesEqual: Bool = false) { self.replacesEqual = replacesEqual }

  /// How much is taken.
  var amount: Int { all.withLock { $0.amount } }

  /// Takes a share.
  /// - Parameters:
  ///   - limit: How much all shares may have together.
  ///   - revoking: Whether others may lose something for it.
  ///   - revoke: Called at most once, by any thread, if the share is given to another client. The amount counts as free
  ///     then, so what it stands for must end soon.
  /// - Returns: nil if there is no room, and nobody has more.
  func take(
    _ amount: Int, for sharer: Sharer, limit: Int, revoking: Bool = true,
    onRevocation revoke: @escaping @Sendable () -> Void
  ) -> Share? {
    let share = emptyShare(for: sharer, onRevocation: revoke)
    return grow(share, by: amount, replacing: 0, limit: limit, revoking: revoking) ? share : nil
  }

  /// Makes a share of nothing, which can grow.
  func emptyShare(for sharer: Sharer, onRevocation revoke: @escaping @Sendable () -> Void) -> Share {
    Share(self, sharer, revoke)
  }

  /// Makes a share larger.
  /// - Returns: false if there is no room, and nobody has more, or the share has been revoked.
  fileprivate func grow(_ share: Share, by amount: Int, replacing replaced: Int, limit: Int, revoking: Bool) -> Bool {
    let (isGrown, revoked) = all.withLock { all -> (Bool, [Share]) in
      guard !share.isRevoked else { return (false, []) }
      var revoked: [Share] = []
      while all.amount + amount > limit {
        guard revoking, let victim = victim(of: share.sharer, wanting: amount - replaced, in: all) else {
          return (false, revoked)
        }
        remove(victim, from: &all)
        victim.markRevoked()
        revoked.append(victim)
      }
      if amount != 0 { all.add(amount, to: share) }
      return (true, revoked)
    }
    for share in revoked { share.revoke() }
    return isGrown
  }

  /// Makes a share smaller.
  fileprivate func shrink(_ share: Share, by amount: Int) {
    all.withLock { all in if !share.isRevoked, amount != 0 { all.add(-amount, to: share) } }
  }

  fileprivate func release(_ share: Share) { all.withLock { remove(share, from: &$0) } }

  /// Whether a user of so much, who wants more, is served rather than another one who has `most`.
  private func precedes(_ amount: Int, _ most: Int) -> Bool { amount < most || replacesEqual && amount == most }

  /// Returns the share to take away for a connection that wants more; nil if nobody has more.
  private func victim(of sharer: Sharer, wanting amount: Int, in all: Use) -> Share? {
    var use = all
    for depth in 0..<Sharer.levelCount {
      let level = sharer.level(depth)
      let own = use.parts[level]
      if depth == 0, sharer.principal != .stranger {
        if let strangers = use.parts[.principal(.stranger)] { return strangers.victim }
      }
      if depth > 0 || sharer.principal != .stranger,
        let other = use.parts.max(by: { $0.value.amount < $1.value.amount }), other.key != level,
        precedes((own?.amount ?? 0) + amount, other.value.amount)
      {
        return other.value.victim
      }
      guard let own else { return nil }
      use = own
    }
    return nil
  }

  private func remove(_ share: Share, from all: inout Use) {
    if share.amount > 0 { all.add(-share.amount, to: share) }
  }
}

/// A part of what `FairShares` divides. It is released with `release`, which its owner must call.
///
/// Safe because the amount is changed only under the lock of its `FairShares`.
final class Share: @unchecked Sendable {
  let sharer: Sharer
  private let shares: FairShares
  private let onRevocation: @Sendable () -> Void
  private let revoked = Atomic(false)
  fileprivate private(set) var amount = 0

  fileprivate init(_ shares: FairShares, _ sharer: Sharer, _ onRevocation: @escaping @Sendable () -> Void) {
    self.shares = shares
    self.sharer = sharer
    self.onRevocation = onRevocation
  }

  /// Whether another client has got it, so that what it stands for must end.
  var isRevoked: Bool { revoked.load(ordering: .acquiring) }

  /// Makes the share larger.
  /// - Parameters:
  ///   - replaced: How much of the share is given back right afterward, because the addition replaces it.
  ///   - limit: How much all shares may have together.
  ///   - revoking: Whether others may lose something for it.
  /// - Returns: false if there is no room, and nobody has more, or the share has been revoked.
  func grow(by amount: Int, replacing replaced: Int = 0, limit: Int, revoking: Bool = true) -> Bool {
    shares.grow(self, by: amount, replacing: replaced, limit: limit, revoking: revoking)
  }

  func shrink(by amount: Int) { shares.shrink(self, by: amount) }

  /// Gives everything back. Further calls have no effect.
  func release() { shares.release(self) }

  fileprivate func setAmount(_ amount: Int) { self.amount = amount }
  fileprivate func markRevoked() { revoked.store(true, ordering: .releasing) }
  fileprivate func revoke() { onRevocation() }
}
