import Storage

/// The stores that a connection has open, by handle: `Protocol/wire.md` §6.3. Handles begin at 1.
struct OpenStores {
  private var stores: [Store?] = []

  @inline(__always)
  subscript(handle: UInt16) -> Store? {
    let index = Int(handle) &- 1
    return index >= 0 && index < stores.count ? stores[index] : nil
  }

  /// The handle that stands for a store of that name, if the connection has opened one.
  func handle(named name: StoreName) -> UInt16? {
    stores.firstIndex { $0?.name == name }.map { UInt16($0 + 1) }
  }

  /// Gives the store the handle that its name has, or the lowest free one; nil when `limit` stores are open.
  mutating func open(_ store: Store, limit: Int) -> UInt16? {
    if let handle = handle(named: store.name) {
      stores[Int(handle) - 1] = store
      return handle
    }
    if let free = stores.firstIndex(where: { $0 == nil }) {
      stores[free] = store
      return UInt16(free + 1)
    }
    guard stores.count < limit else { return nil }
    stores.append(store)
    return UInt16(stores.count)
  }

  /// Makes a handle that is open free.
  mutating func close(_ handle: UInt16) {
    stores[Int(handle) - 1] = nil
  }
}
