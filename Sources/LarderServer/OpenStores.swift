import Storage

/// The stores that a connection has open, by handle: `Protocol/wire.md` §6.3. Handles begin at 1.
struct OpenStores {
  struct Opened {
    var store: Store
    /// Which operations on entries the connection may do with it.
    var permitted: OperationSet
  }

  private var stores: [Opened?] = []

  @inline(__always)
  subscript(handle: UInt16) -> Opened? {
    let index = Int(handle) &- 1
    return index >= 0 && index < stores.count ? stores[index] : nil
  }

  /// The handle that stands for a store of that name, if the connection has opened one.
  func handle(named name: StoreName) -> UInt16? {
    stores.firstIndex { $0?.store.name == name }.map { UInt16($0 + 1) }
  }

  /// Gives the store the handle that its name has, or the lowest free one; nil when `limit` stores are open.
  mutating func open(_ store: Store, permitting right: Right, limit: Int) -> UInt16? {
    let opened = Opened(store: store, permitted: OperationSet(right))
    if let handle = handle(named: store.name) {
      stores[Int(handle) - 1] = opened
      return handle
    }
    if let free = stores.firstIndex(where: { $0 == nil }) {
      stores[free] = opened
      return UInt16(free + 1)
    }
    guard stores.count < limit else { return nil }
    stores.append(opened)
    return UInt16(stores.count)
  }

  /// Makes a handle that is open free.
  mutating func close(_ handle: UInt16) {
    stores[Int(handle) - 1] = nil
  }

  /// Has the connection do no more and no less with its stores than this.
  mutating func permit(_ grants: Grants) {
    for (index, opened) in stores.enumerated() {
      guard let store = opened?.store else { continue }
      stores[index]?.permitted = OperationSet(grants.right(on: store.name))
    }
  }
}
