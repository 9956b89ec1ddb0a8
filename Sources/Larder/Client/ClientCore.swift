// A client's call:
//
// 1. `RemoteStore`: `get` makes a `GetRequest` (`EntryRequests`) and a deadline (`Call`).
// 2. `ClientCore` finds the connection; `ServerConnection` retries what is safe to retry, and suspends the task as a caller.
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
  /// Those that calls are spread over, and then the one for calls that take long. Each connects with its first call.
  private let connections: [ServerConnection]
  private let eventLoop: ClientEventLoop
  private let nextConnection = Atomic<Int>(0)
  /// The numbers of the stores in connections, by the stores' names. Names are never removed.
  private let storeNumbers = Lock<[String: UInt32]>([:])

  /// - Parameter makeLayer: Makes the layer of each connection's channel; nil for plain connections.
  init(
    _ address: Address, _ configuration: LarderClient.Configuration, makeLayer: ChannelLayerFactory? = nil
  ) throws(SystemError) {
    let eventLoop = try ClientEventLoop()
    self.eventLoop = eventLoop
    self.configuration = configuration
    connections = (0...configuration.connectionCount).map {
      ServerConnection(
        number: $0, address: address, configuration: configuration, makeLayer: makeLayer, eventLoop: eventLoop)
    }
    eventLoop.serve(connections)
  }

  deinit { close() }

  /// The connection for the next call.
  var connection: ServerConnection {
    let count = connections.count - 1
    guard count > 1 else { return connections[0] }
    let next = nextConnection.wrappingAdd(1, ordering: .relaxed).newValue
    return connections[Int(UInt(bitPattern: next) % UInt(count))]
  }

  /// The connection for calls that later requests of their connection wait for (`Protocol/wire.md` §8), and that may
  /// take long. So the calls of other tasks don't wait.
  var connectionForLongCalls: ServerConnection { connections[connections.count - 1] }

  /// The name in the server's latest hello, or nil before the first one.
  var serverName: String? { connections[0].serverName }

  /// Returns a store by its name.
  func store(_ name: String) -> StoreReference {
    let number = storeNumbers.withLock { numbers in
      if let number = numbers[name] { return number }
      // More than UInt32.max names do not fit in memory.
      let number = UInt32(numbers.count)
      numbers[name] = number
      return number
    }
    return StoreReference(number: number, name: name)
  }

  func close() {
    for connection in connections { connection.close() }
    eventLoop.close()
  }

  func shutdown() async {
    for connection in connections { await connection.drain() }
    close()
  }
}
