import Platform
import Replication

/// Connects to a database when that is needed, and again after a failure. Used by one thread at a time, which waits for
/// the lock.
final class DatabaseSession: Sendable {
  private let address: DatabaseAddress
  private let schema: Schema
  private let connection = Lock<DatabaseConnection?>(nil)

  /// How long to wait for a connection, and for a reply, in milliseconds.
  private static let connectingTime: UInt64 = 3_000
  private static let replyTime: UInt64 = 10_000

  init(_ address: DatabaseAddress, _ schema: Schema) { (self.address, self.schema) = (address, schema) }

  /// Runs a statement in a transaction of its own.
  @discardableResult
  func run(
    _ statement: Statement, _ parameters: Parameter..., within time: UInt64 = replyTime
  ) throws(SharedLogError) -> Rows {
    try run([(statement, parameters)], within: time)[0]
  }

  /// Runs statements in one transaction.
  /// - Parameter time: How long the reply may take, in milliseconds.
  /// - Returns: What each has returned.
  /// - Throws: `unavailable`; whether they were executed is then unknown.
  func run(
    _ statements: [(Statement, [Parameter])], within time: UInt64 = replyTime
  ) throws(SharedLogError) -> [Rows] {
    try connection.withLock { (current) throws(SharedLogError) in
      let connection = try connect(&current)
      do throws(DatabaseError) {
        let rows = try connection.run(statements, deadline: monotonicMilliseconds() + time)
        // The server commits although the wait for the standby was canceled.
        if let warning = connection.warning { throw .broken("the database has warned: \(warning)") }
        return rows
      } catch {
        // Even if the database only refuses: after a failover, it may have become a standby.
        current = nil
        throw .unavailable("\(error)")
      }
    }
  }

  private func connect(_ current: inout DatabaseConnection?) throws(SharedLogError) -> DatabaseConnection {
    if let current { return current }
    let deadline = monotonicMilliseconds() + Self.connectingTime
    let connection = try DatabaseConnection(address.parameters, deadline: deadline)
    try schema.prepare(connection, deadline: deadline)
    current = connection
    return connection
  }
}
