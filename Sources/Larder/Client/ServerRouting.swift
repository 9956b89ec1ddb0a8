import Platform

/// Which of a client's servers it asks about each store: the one that has last served it, or that another one has named.
///
/// A plain value; the client protects it with a lock.
struct ServerRouting: Sendable {
  private let addresses: [Address]
  /// The server to ask about everything that no other is known for.
  private var usual = 0
  /// The servers to ask about stores, by the numbers of the stores.
  private var servers: [UInt32: Int] = [:]

  init(_ addresses: [Address]) { self.addresses = addresses }

  /// Returns the server to ask.
  /// - Parameter store: The store's number; nil for requests that name none.
  func server(for store: UInt32?) -> Int { store.flatMap { servers[$0] } ?? usual }

  /// Begins to ask about a store at any server.
  mutating func begin(_ store: UInt32) { servers[store] = addresses.indices.randomElement() }

  /// Chooses another server after one has failed or refused, unless that has happened already.
  /// - Parameter named: The address that the server has named instead.
  mutating func leave(_ server: Int, for store: UInt32?, named: Address?) {
    guard self.server(for: store) == server else { return }
    let next = named.flatMap { addresses.firstIndex(of: $0) } ?? (server + 1) % addresses.count
    // What has failed for one store will for the others, if it is the server and not the store.
    if store == nil || named == nil, usual == server { usual = next }
    if let store { servers[store] = next }
  }
}

extension LarderError {
  /// Whether another server may do better.
  var concernsServer: Bool {
    switch kind {
    case .notLeader, .storeUnknown, .disconnected, .connectFailed, .shuttingDown, .serverTimedOut, .timedOut,
      .tooManyConnections:
      true
    default: false
    }
  }

  /// Whether the same request can be sent to another server.
  var isSafeElsewhere: Bool { isSafeToRetry || kind == .storeUnknown }

  /// The address of the server that serves the store, if the error names one: the last line of its message.
  var leaderAddress: Address? {
    guard kind == .notLeader, let line = message.split(separator: "\n").last else { return nil }
    return try? Address(String(line))
  }
}

extension ClientCore {
  /// The pauses, in milliseconds, before all servers are asked again.
  private static let pauses = 20...200

  /// Makes a call on one server after the other until one executes the request, it is not known whether one has, or the
  /// deadline has passed.
  /// - Parameter isLong: Whether later requests of the connection wait for the call.
  /// - Returns: The reply, and the connection that it came from.
  func replyOfAnyServer<Q: ServerRequest>(
    to request: Q, store: StoreReference?, deadline: CallDeadline, isLong: Bool
  ) async -> (reply: CallResult, connection: ServerConnection) {
    let target = store.map { RequestTarget.store($0.number) } ?? .server
    var deadline = deadline
    var failures = 0
    var serversWithoutStore: Set<Int> = []
    while true {
      let server = server(for: store)
      let connection = connection(to: server, isLong: isLong)
      let reply = await connection.reply(to: request, target, store: store, deadline: deadline)
      guard case .failed(let error, _) = reply, error.concernsServer, store != nil || error.kind != .storeUnknown else {
        return (reply, connection)
      }
      leave(server, for: store, named: error.leaderAddress)
      failures += 1
      deadline.refresh()
      if error.kind == .storeUnknown { serversWithoutStore.insert(server) }
      // A server that has not replied, or doesn't know yet, may have the store.
      let isOver = serversWithoutStore.count == serverCount
      guard error.isSafeElsewhere, !isOver, deadline.now < deadline.instant else { return (reply, connection) }
      guard failures % serverCount == 0 else { continue }
      let pause = min(Self.pauses.upperBound, Self.pauses.lowerBound * failures)
      // If the task is cancelled, the next attempt says so.
      try? await Task.sleep(for: .milliseconds(min(pause, Int(deadline.instant - deadline.now))))
      deadline.refresh()
    }
  }

  /// Asks all servers, one after the other.
  /// - Returns: The replies of those that execute the request.
  /// - Throws: The error of the last one if none does.
  func replies<Q: ServerRequest>(to request: Q, deadline: CallDeadline) async throws(LarderError) -> [CallResult] {
    var replies: [CallResult] = []
    var failure: LarderError?
    for server in 0..<serverCount {
      let reply = await connection(to: server).reply(to: request, .server, store: nil, deadline: deadline)
      if case .failed(let error, _) = reply { failure = error } else { replies.append(reply) }
    }
    if replies.isEmpty, let failure { throw failure }
    return replies
  }
}
