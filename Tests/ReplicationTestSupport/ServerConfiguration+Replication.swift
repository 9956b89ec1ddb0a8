import LarderServer
import Replication
import Storage

extension ServerConfiguration {
  /// Lets the server share replicated stores with the other servers of a log.
  /// - Parameters:
  ///   - node: The server's name.
  ///   - lease: How long it may answer reads after a beat, in milliseconds.
  package mutating func shareStores(in log: SimulatedLog, as node: String = "node", lease: UInt64 = 60_000) {
    guard let name = DatabaseName("main") else { preconditionFailure("the name is valid") }
    let database = Replication.Database(
      name, log, node: node, address: addresses.first.map { "\($0)" } ?? "", lease: lease)
    let replication = Replication([database])
    engines = .builtIn + [replication.engine]
    sharedStores = replication
  }
}
