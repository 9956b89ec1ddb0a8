import Storage
import Wire

/// The stores that a connection has open, by handle: `Protocol/wire.md` §6.3. Handles begin at 1.
struct OpenStores {
  /// A store, and what the connection may do with it. An object, because every request looks at it and copies only the
  /// reference.
  final class Opened: Sendable {
    let store: Store
    /// The operations on entries that the connection may execute on it, whatever the keys.
    let permitted: OperationSet
    /// Those that it may execute on some keys.
    let permittedOnKeys: OperationSet
    /// A quick test that is passed only by keys on which it may execute all of these.
    let prefixTest: PrefixTest
    let rights: StoreRights
    /// How old what is read may be, in milliseconds; nil if it must be current.
    let maxStaleness: UInt32?
    /// What the server must hold to answer reads; nil if nothing.
    let lease: Lease?
    /// That of `lease`, which is compared for each request.
    let leaseIdentity: ObjectIdentifier?

    fileprivate init(_ store: Store, _ rights: StoreRights, maxStaleness: UInt32?) {
      (self.store, self.rights, self.maxStaleness) = (store, rights, maxStaleness)
      lease = store.lease ?? store.freshness?.lease(within: maxStaleness ?? 0)
      leaseIdentity = lease.map { ObjectIdentifier($0) }
      let (onEntries, onKeys) = (
        OperationSet.onEntries(permittedBy: rights), OperationSet.onKeys(permittedBy: rights)
      )
      permitted = store.freshness == nil ? onEntries : onEntries.reads
      permittedOnKeys = store.freshness == nil ? onKeys : onKeys.reads
      prefixTest = PrefixTest(rights.mainPrefix)
    }
  }

  private var stores: [Opened?] = []

  @inline(__always)
  subscript(handle: UInt16) -> Opened? {
    let index = Int(handle) &- 1
    return index >= 0 && index < stores.count ? stores[index] : nil
  }

  /// Opens a store under the handle that its name has already with the same staleness, or else under the lowest free one.
  /// - Parameter maxStaleness: How old what is read may be, in milliseconds; nil if it must be current.
  /// - Returns: nil if `limit` stores are open.
  mutating func open(_ store: Store, _ rights: StoreRights, maxStaleness: UInt32? = nil, limit: Int) -> UInt16? {
    let opened = Opened(store, rights, maxStaleness: maxStaleness)
    if let index = stores.firstIndex(where: { $0?.store.name == store.name && $0?.maxStaleness == maxStaleness }) {
      stores[index] = opened
      return UInt16(index + 1)
    }
    if let free = stores.firstIndex(where: { $0 == nil }) {
      stores[free] = opened
      return UInt16(free + 1)
    }
    guard stores.count < limit else { return nil }
    stores.append(opened)
    return UInt16(stores.count)
  }

  /// Frees an open handle.
  mutating func close(_ handle: UInt16) {
    stores[Int(handle) - 1] = nil
  }

  /// Permits exactly what the grants give.
  mutating func permit(_ grants: Grants) {
    for (index, opened) in stores.enumerated() {
      guard let opened else { continue }
      let store = opened.store
      stores[index] = Opened(store, grants.rights(to: store.name), maxStaleness: opened.maxStaleness)
    }
  }
}
