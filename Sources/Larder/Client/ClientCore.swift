// A client's call:
//
// 1. `RemoteStore`: `get` makes a `GetRequest` (`EntryRequests`) and a deadline (`Call`).
// 2. `ClientCore` finds the connection, of several servers with `ServerRouting`; `ServerConnection` retries what is safe to retry, and suspends the task as a caller.
// 3. `ConnectionState`, under the connection's lock: checks limits, finds the store's handle (`StoreHandles`), takes a
//    request id (`PendingTable`) and encodes the frame (`OutputQueue`). It returns what is to be done as one value,
//    `ConnectionActions`; `ServerConnection.perform` does it without the lock.
// 4. One thread writes for all: that of the first caller, and that of the reading task (see 5) for the calls that
//    follow. If there are several, they wait briefly so that one write serves all of them (`CallGathering`).
// 5. While calls come, a task reads the replies on the threads that run the callers (`TaskReading`), otherwise the
//    client's event loop (`ClientEventLoop`).
// 6. `Receiver` finds the caller by the request's id, decodes the reply (`CallResult`) and resumes the task.
// 7. If the client has observers (`ClientObserver`), `ServerConnection` tells its `ConnectionReporter` when the call begins
//    and ends.

import Platform
import Synchronization

/// What all copies of a client and its stores share. It closes the connections when the last copy is released.
final class ClientCore: Sendable {
  let configuration: LarderClient.Configuration
  /// For each server, those that calls are spread over, and then the one for calls that take long. Each connects with its
  /// first call.
  private let connections: [[ServerConnection]]
  private let routing: Lock<ServerRouting>
  private let eventLoop: ClientEventLoop
  private let nextConnection = Atomic<Int>(0)
  /// The numbers of the stores in connections. They are never removed.
  private let storeNumbers = Lock<[StoreIdentity: UInt32]>([:])

  /// What distinguishes the stores in connections.
  private struct StoreIdentity: Hashable {
    let name: String
    let maxStaleness: UInt32?
  }

  /// - Parameter servers: The addresses, each with what makes the layer of its connections' channels; nil for plain
  ///   connections.
  init(
    _ servers: [(address: Address, makeLayer: ChannelLayerFactory?)], _ configuration: LarderClient.Configuration
  ) throws(SystemError) {
    let eventLoop = try ClientEventLoop()
    self.eventLoop = eventLoop
    self.configuration = configuration
    routing = Lock(ServerRouting(servers.map(\.address)))
    let ofConnections = servers.count == 1 ? configuration : configuration.forOneOfSeveralServers
    var number = 0
    connections = servers.map { server in
      (0...configuration.connectionCount).map { _ in
        defer { number += 1 }
        return ServerConnection(
          number: number, address: server.address, configuration: ofConnections, makeLayer: server.makeLayer,
          eventLoop: eventLoop)
      }
    }
    eventLoop.serve(connections.flatMap { $0 })
  }

  deinit { close() }

  // MARK: Servers

  var serverCount: Int { connections.count }

  /// Returns the server to ask about a store, or anything else.
  func server(for store: StoreReference?) -> Int { routing.withLock { $0.server(for: store?.number) } }

  /// Chooses another server than one that has failed or refused.
  /// - Parameter named: The address that it has named.
  func leave(_ server: Int, for store: StoreReference?, named: Address?) {
    routing.withLock { $0.leave(server, for: store?.number, named: named) }
  }

  /// Returns the connection for the next call to a server.
  /// - Parameter isLong: Whether later requests of the connection wait for the call (`Protocol/wire.md` §8), and it may
  ///   take long. These have a connection of their own, so that the calls of other tasks don't wait.
  @inline(__always)
  func connection(to server: Int, isLong: Bool = false) -> ServerConnection {
    let connections = connections[server]
    let count = connections.count - 1
    if isLong { return connections[count] }
    guard count > 1 else { return connections[0] }
    let next = nextConnection.wrappingAdd(1, ordering: .relaxed).newValue
    return connections[Int(UInt(bitPattern: next) % UInt(count))]
  }

  /// Makes a call.
  /// - Returns: The reply, and the connection that it came from.
  @inline(__always)
  func reply<Q: ServerRequest>(
    to request: Q, store: StoreReference?, deadline: CallDeadline, isLong: Bool = false
  ) async -> (reply: CallResult, connection: ServerConnection) {
    guard connections.count == 1 else {
      return await replyOfAnyServer(to: request, store: store, deadline: deadline, isLong: isLong)
    }
    let connection = connection(to: 0, isLong: isLong)
    let target = store.map { RequestTarget.store($0.number) } ?? .server
    return (await connection.reply(to: request, target, store: store, deadline: deadline), connection)
  }

  /// The name in the server's latest hello, or nil before the first one.
  var serverName: String? { connections[server(for: nil)][0].serverName }

  // MARK: Stores

  /// Returns a store by its name.
  /// - Parameter maxStaleness: How old what is read may be, in milliseconds; nil if it must be current.
  func store(_ name: String, maxStaleness: UInt32? = nil) -> StoreReference {
    let identity = StoreIdentity(name: name, maxStaleness: maxStaleness)
    let (number, isNew) = storeNumbers.withLock { numbers in
      if let number = numbers[identity] { return (number, false) }
      // More than UInt32.max names do not fit in memory.
      let number = UInt32(numbers.count)
      numbers[identity] = number
      return (number, true)
    }
    // Every server may have it, so clients spread over them.
    if isNew, maxStaleness != nil { routing.withLock { $0.begin(number) } }
    return StoreReference(number: number, name: name, maxStaleness: maxStaleness)
  }

  func close() {
    for connection in connections.joined() { connection.close() }
    eventLoop.close()
  }

  func shutdown() async {
    for connection in connections.joined() { await connection.drain() }
    close()
  }
}
