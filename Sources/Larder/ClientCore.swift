import Platform
import Synchronization

/// What all copies of a client share. The last one to let go of it closes it.
final class ClientCore: Sendable {
  let configuration: LarderClient.Configuration
  let connections: [Connection]
  private let loop: IOLoop
  private let turn = Atomic<Int>(0)
  /// Stores by name, each with the number that connections know it by.
  private let stores = Lock<[String: UInt16]>([:])

  init(_ address: Address, _ configuration: LarderClient.Configuration) throws(SystemError) {
    let loop = try IOLoop()
    self.loop = loop
    self.configuration = configuration
    connections = (0..<configuration.connectionCount).map {
      Connection(number: $0, address: address, configuration: configuration, loop: loop)
    }
    loop.serve(connections)
  }

  deinit { close() }

  /// The connection for the next call.
  var connection: Connection {
    guard connections.count > 1 else { return connections[0] }
    let turn = turn.wrappingAdd(1, ordering: .relaxed).newValue
    return connections[Int(UInt(bitPattern: turn) % UInt(connections.count))]
  }

  func close() {
    for connection in connections { connection.close() }
    loop.close()
  }

  func shutdown() async {
    for connection in connections { await connection.finish() }
    close()
  }

  /// - Precondition: fewer than 65,536 names.
  func store(_ name: String) -> StoreReference {
    let number = stores.withLock { stores in
      if let number = stores[name] { return number }
      let number = UInt16(stores.count)
      stores[name] = number
      return number
    }
    return StoreReference(number: number, name: name)
  }
}
