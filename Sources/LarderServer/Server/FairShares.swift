import Platform
import Synchronization

/// Who uses a part of what all clients share: a principal, and one of its connections.
struct Sharer: Hashable, Sendable {
  /// The user of a client on a Unix socket. All others are one principal, because nothing tells them apart.
  enum Principal: Hashable, Sendable {
    case user(UInt32)
    case anonymous
  }

  let principal: Principal
  /// The connection's number among all that the server ever had.
  let connection: UInt64

  init(_ principal: Principal, connection: UInt64) {
    self.principal = principal
    self.connection = connection
  }

  init(_ peer: Peer, connection: UInt64) {
    if case .process(_, let user) = peer {
      self.init(.user(user), connection: connection)
    } else {
      self.init(.anonymous, connection: connection)
    }
  }
}

/// Divides a limited amount among the principals that want a part of it, and a principal's part among its connections.
///
/// Anyone may take what is free. Once nothing is, the one who has most loses: a request for more is refused if it comes
/// from there, and otherwise takes away the newest share of the principal that has most, or of the principal's own
/// connection that has most. So a client that has less than others always gets something, however much the others want.
///
/// Used by any thread.
final class FairShares: Sendable {
  /// What one connection has.
  private struct Use {
    var amount = 0
    /// The newest share is the last one.
    var shares: [Share] = []
  }

  private struct PrincipalUse {
    var amount = 0
    var connections: [UInt64: Use] = [:]
  }

  private struct Table {
    var amount = 0
    var principals: [Sharer.Principal: PrincipalUse] = [:]
  }

  private let table = Lock(Table())
  /// Whether the one who would then have as much as the one who has most is served, so that a new share replaces an old
  /// one. Otherwise, the old one stays.
  private let replacesEqual: Bool

  init(replacesEqual: Bool = false) { self.replacesEqual = replacesEqual }

  /// How much is taken.
  var amount: Int { table.withLock { $0.amount } }

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
    let (isGrown, revoked) = table.withLock { table -> (Bool, [Share]) in
      guard !share.isRevoked else { return (false, []) }
      var revoked: [Share] = []
      while table.amount + amount > limit {
        guard revoking, let victim = victim(of: share.sharer, wanting: amount - replaced, in: table) else {
          return (false, revoked)
        }
        remove(victim, from: &table)
        victim.markRevoked()
        revoked.append(victim)
      }
      add(amount, to: share, in: &table)
      return (true, revoked)
    }
    for share in revoked { share.revoke() }
    return isGrown
  }

  /// Makes a share smaller.
  fileprivate func shrink(_ share: Share, by amount: Int) {
    table.withLock { table in if !share.isRevoked { add(-amount, to: share, in: &table) } }
  }

  fileprivate func release(_ share: Share) { table.withLock { remove(share, from: &$0) } }

  /// Whether a user of so much, who wants more, is served rather than another one who has `most`.
  private func precedes(_ amount: Int, _ most: Int) -> Bool { amount < most || replacesEqual && amount == most }

  /// Returns the share to take away for a connection that wants more; nil if nobody has more.
  private func victim(of sharer: Sharer, wanting amount: Int, in table: Table) -> Share? {
    let own = table.principals[sharer.principal]
    if let other = table.principals.max(by: { $0.value.amount < $1.value.amount }), other.key != sharer.principal,
      precedes((own?.amount ?? 0) + amount, other.value.amount)
    {
      return other.value.connections.values.max { $0.amount < $1.amount }?.shares.last
    }
    guard let own else { return nil }
    let use = own.connections[sharer.connection]?.amount ?? 0
    guard let other = own.connections.max(by: { $0.value.amount < $1.value.amount }), other.key != sharer.connection,
      precedes(use + amount, other.value.amount)
    else { return nil }
    return other.value.shares.last
  }

  private func add(_ amount: Int, to share: Share, in table: inout Table) {
    let sharer = share.sharer
    table.amount += amount
    table.principals[sharer.principal, default: PrincipalUse()].amount += amount
    table.principals[sharer.principal]?.connections[sharer.connection, default: Use()].amount += amount
    if share.amount == 0 { table.principals[sharer.principal]?.connections[sharer.connection]?.shares.append(share) }
    share.setAmount(share.amount + amount)
    if share.amount == 0 { forget(share, in: &table) }
  }

  private func remove(_ share: Share, from table: inout Table) {
    if share.amount > 0 { add(-share.amount, to: share, in: &table) }
  }

  /// Removes a share that has nothing any more, and its owner if it was the last one.
  private func forget(_ share: Share, in table: inout Table) {
    let sharer = share.sharer
    table.principals[sharer.principal]?.connections[sharer.connection]?.shares.removeAll { $0 === share }
    guard table.principals[sharer.principal]?.connections[sharer.connection]?.shares.isEmpty == true else { return }
    table.principals[sharer.principal]?.connections[sharer.connection] = nil
    if table.principals[sharer.principal]?.connections.isEmpty == true { table.principals[sharer.principal] = nil }
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
