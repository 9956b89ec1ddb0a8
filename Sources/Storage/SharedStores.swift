/// The stores that several servers share. Each of them is served by one server at a time.
package protocol SharedStores: AnyObject, Sendable {
  /// Finds out which stores there are, and who serves them. Takes over nothing; opening a store does. May wait for the
  /// network.
  /// - Parameter served: The stores that this server serves.
  func survey(serving served: Set<StoreName>) -> SharedStoreSurvey

  /// Tells the other servers that this one, whose stores are closed, serves no more.
  func leave()
}

/// What a server is to do about the stores that it shares with others.
package struct SharedStoreSurvey: Sendable {
  /// The stores that this server is to open, because nobody serves them.
  package var toOpen: [StoreDescription] = []
  /// The stores that are served elsewhere, or not for now, with who serves them or why nobody does.
  package var elsewhere: [StoreName: String] = [:]
  /// Why the survey is incomplete; nil if it is complete.
  package var failure: String?

  package init() {}
}
