import LarderServer
import Platform
import PostgresLog
import Replication
import Storage

/// The databases of stores that other servers can take over, and what this server is among them.
package struct ReplicationSettings: Sendable {
  /// A database with its name: `NAME=CONNECTION`.
  package struct NamedDatabase: Sendable {
    let name: DatabaseName
    let connection: String

    struct ParseError: Error, CustomStringConvertible {
      let description: String
    }

    /// - Throws: An error that says what is wrong. It doesn't show a password.
    init(_ text: String) throws {
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      guard parts.count == 2, let name = DatabaseName(parts[0]) else {
        throw ParseError(
          description: "it must be NAME=CONNECTION, as in main=postgresql://larder@db.example/larder; a name has up to "
            + "32 lowercase letters, digits and -, and begins with a letter")
      }
      do { _ = try DatabaseAddress(parts[1], applicationName: "larderd") } catch {
        throw ParseError(description: "\(name): \(error)")
      }
      (self.name, connection) = (name, parts[1])
    }
  }

  package var databases: [NamedDatabase] = []
  /// The server's name among those that use the databases; nil for the name of the machine.
  package var node: String?
  /// Where clients reach the server; nil for the first address that it listens on.
  package var address: String?
  /// The stores that the server follows, and may take over; none for all.
  package var stores: [StorePattern] = []
  /// How long the server may answer reads after its last heartbeat.
  package var lease = Duration.seconds(3)
  /// How many of the large values that are read from a database stay in memory, in bytes.
  package var valueCache = 64 << 20
  /// Whether a database without a synchronous standby is refused.
  package var requiresStandby = false

  /// Returns what keeps the stores; nil without databases.
  func makeReplication(listening addresses: [Address]) throws -> Replication? {
    guard !databases.isEmpty else { return nil }
    let node = node ?? machineName()
    let address = address ?? addresses.first.map(\.description) ?? ""
    return Replication(
      try databases.map { database in
        let log = PostgresLog(
          try DatabaseAddress(database.connection, applicationName: "larderd \(node)"), requiresStandby: requiresStandby
        )
        return Replication.Database(
          database.name, log, node: node, address: address, lease: lease.wholeMilliseconds, valueCache: valueCache)
      }, sharing: stores.isEmpty ? nil : stores)
  }
}
