import Documents

/// The stores that several servers share. Each of them is served by one server at a time.
package protocol SharedStores: AnyObject, Sendable {
  /// Finds out which stores there are, and who serves them. Takes over nothing; opening a store does. May wait for the
  /// network.
  /// - Parameters:
  ///   - served: The stores that this server serves.
  ///   - budgets: What all stores may use together.
  func survey(serving served: Set<StoreName>, within budgets: StoreBudgets) -> SharedStoreSurvey

  /// Returns what this server has of a store that another one serves; nil if it doesn't follow the store.
  func followedStore(_ name: StoreName) -> Store?

  /// Chooses the server that is to serve a store when this one closes it.
  /// - Parameter node: The name of that server.
  /// - Returns: Where the store will be.
  /// - Throws: `invalidOption` if there is no such server, or it doesn't live.
  func chooseSuccessor(of store: StoreName, _ node: String) throws(StorageError) -> StoreElsewhere

  /// Tells the other servers that this one, whose stores are closed, serves no more.
  func leave()
}

/// Why a server doesn't serve a store that it shares with others.
package struct StoreElsewhere: Hashable, Sendable {
  /// Who serves it, or why nobody does.
  package let reason: String
  /// Where the clients of the server that serves it connect; nil if that is unknown.
  package let address: String?

  /// Whether it isn't known yet if there is such a store.
  package let isUnknown: Bool

  package init(_ reason: String, address: String? = nil, isUnknown: Bool = false) {
    (self.reason, self.address, self.isUnknown) = (reason, address, isUnknown)
  }
}

/// What a server is to do about the stores that it shares with others.
package struct SharedStoreSurvey: Sendable {
  /// The stores that this server is to open, because nobody serves them.
  package var toOpen: [StoreDescription] = []
  /// The stores that are served elsewhere, or not for now.
  package var elsewhere: [StoreName: StoreElsewhere] = [:]
  /// Whether all stores are known: each database has been asked at least once. Until then, any name may be taken.
  package var knowsAllStores = true
  /// The stores that this server can't follow, and why.
  package var followFailures: [StoreName: String] = [:]
  /// The servers and their stores, an object for each database: `Protocol/wire.md` §6.15.
  package var report: [JSONValue] = []
  /// Why a database could not be asked, or this server can't serve its stores yet; nil if neither is so.
  package var failure: String?

  package init() {}
}
