import Wire

extension LarderClient {
  /// Asks the server for a sign of life.
  public func ping() async throws(LarderError) {
    _ = try await core.connection.call(PingRequest(), time: time)
  }

  /// The server's figures by their names, which end in their units where they have one.
  public func stats() async throws(LarderError) -> [String: UInt64] {
    try figures(await core.connection.call(StatsRequest(), time: time))
  }

  /// The latest times at which the server took long, the latest first.
  public func slowLog() async throws(LarderError) -> [SlowLogEntry] {
    let body = try await core.connection.call(SlowLogRequest(), time: time).body
    guard let entries = unsafe SlowWakeUp.decode(body.span.bytes) else { throw .malformedReply }
    return entries.map { SlowLogEntry($0) }
  }

  /// The connections that ask for the most, those with the most requests a second first.
  /// - Parameter most: how many at most; the server tells of no more than 256.
  public func busiestConnections(atMost most: Int = 256) async throws(LarderError) -> [ConnectionDescription] {
    let request = ConnectionsRequest(most: UInt32(clamping: most))
    let body = try await core.connection.call(request, time: time).body
    guard let connections = unsafe BusyConnection.decode(body.span.bytes) else { throw .malformedReply }
    return connections.map { ConnectionDescription($0) }
  }

  /// The server's stores, by their names.
  public func stores() async throws(LarderError) -> [StoreDescription] {
    let body = try await core.connection.call(StoreListRequest(), time: time).body
    guard let stores = unsafe ListedStore.decode(body.span.bytes) else { throw .malformedReply }
    return stores.map { StoreDescription(name: $0.name, specification: $0.specification, entries: $0.entries) }
  }

  /// Makes a store.
  /// - Parameters:
  ///   - name: 1 to 128 ASCII letters, digits, `.`, `_` and `-`, the first of them a letter, a digit or `_`.
  ///   - engine: what keeps it: `memory`, perhaps with a limit beyond which entries are evicted, as in `memory?limit=256MiB`; or `log` or
  ///     `directory`, perhaps with their durability, as in `log?durability=interval:1s`. Theirs survive the server's end, and take a server
  ///     that has a data directory.
  /// - Throws: `storeExists` when there is one of that name.
  public func createStore(_ name: String, engine: String = "memory") async throws(LarderError) {
    guard name.utf8.count <= 128 else {
      throw LarderError(.illegalArgument, outcome: .rejected, "a store's name has at most 128 bytes")
    }
    let creation = StoreCreation(name: name, specification: engine)
    _ = try await core.connection.call(StoreCreateRequest(creation: creation), time: time)
  }

  /// Drops a store and all its entries, for everyone.
  /// - Throws: `storeUnknown` when there is none of that name.
  public func dropStore(_ name: String) async throws(LarderError) {
    _ = try await core.connection.call(StoreDropRequest(name: name), time: time)
  }
}

/// A store in the server's list.
public struct StoreDescription: Hashable, Sendable {
  public let name: String
  /// What makes another such store, given to `createStore` as its engine: such as `memory` or `log?durability=always`.
  public let specification: String
  public let entries: UInt64

  /// What keeps it, such as `log`.
  public var engine: String { String(specification.prefix { $0 != "?" }) }

  /// What is promised of a write that was answered: `always`, `none`, or `interval:` and a time; nil for a store that nothing survives.
  public var durability: String? { option("durability") }

  /// What its entries may take in memory, as in `256MiB`; nil when there is no limit.
  public var limit: String? { option("limit") }

  private func option(_ name: String) -> String? {
    guard let range = specification.firstRange(of: "?\(name)=") else { return nil }
    return String(specification[range.upperBound...])
  }
}

/// The figures of a stats reply.
func figures(_ reply: Reply) throws(LarderError) -> [String: UInt64] {
  guard let figures = unsafe Figure.decode(reply.body.span.bytes) else { throw .malformedReply }
  return Dictionary(figures.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
}
