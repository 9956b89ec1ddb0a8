import CPostgreSQL
import Glibc

/// A connection to PostgreSQL, with prepared statements. Used by one thread.
@safe
final class PostgresConnection {
  private let connection: OpaquePointer

  /// - Parameter address: A URI, or the parameters of libpq.
  init(_ address: String) throws {
    guard let connection = unsafe PQconnectdb(address) else { throw BenchError("the system has no memory") }
    unsafe self.connection = connection
    guard unsafe PQstatus(connection) == CONNECTION_OK else { throw BenchError("PostgreSQL: \(message)") }
  }

  deinit { unsafe PQfinish(connection) }

  private var message: String { unsafe String(cString: PQerrorMessage(connection)) }

  /// The process that serves the connection.
  var process: Int32 { unsafe PQbackendPID(connection) }

  /// The server's version, such as 15.14.
  var version: String {
    unsafe PQparameterStatus(connection, "server_version").map { unsafe String(cString: $0) } ?? "?"
  }

  /// Runs statements without parameters.
  func execute(_ sql: String) throws { _ = unsafe try take(PQexec(connection, sql)) }

  /// - Parameter name: What `run` calls the statement.
  func prepare(_ name: String, _ sql: String) throws {
    _ = unsafe try take(PQprepare(connection, name, sql, 0, nil))
  }

  /// Runs a prepared statement, and reads all that it returns.
  /// - Returns: The number of rows that it has returned or changed.
  func run(_ name: String, _ parameters: [String]) throws -> Int {
    let values = unsafe parameters.map { unsafe strdup($0) }
    defer { for index in unsafe values.indices { unsafe free(values[index]) } }
    let pointers: [UnsafePointer<CChar>?] = unsafe values.map { unsafe UnsafePointer($0) }
    return unsafe try take(PQexecPrepared(connection, name, Int32(parameters.count), pointers, nil, nil, 0))
  }

  /// Copies rows into a table. They have no characters that the format of texts escapes, but backslashes.
  func copy(_ rows: [(key: String, text: [UInt8])], into table: String) throws {
    _ = unsafe try take(PQexec(connection, "COPY \(table) FROM STDIN"))
    for row in rows {
      var line = Array(row.key.utf8) + [UInt8(ascii: "\t")]
      for byte in row.text { line += byte == UInt8(ascii: "\\") ? [byte, byte] : [byte] }
      line.append(UInt8(ascii: "\n"))
      let isPut = unsafe line.withUnsafeBytes { bytes in
        unsafe PQputCopyData(connection, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count))
      }
      guard isPut == 1 else { throw BenchError("PostgreSQL: \(message)") }
    }
    guard unsafe PQputCopyEnd(connection, nil) == 1 else { throw BenchError("PostgreSQL: \(message)") }
    while let result = unsafe PQgetResult(connection) { _ = unsafe try take(result) }
  }

  private func take(_ result: OpaquePointer?) throws -> Int {
    defer { unsafe PQclear(result) }
    switch unsafe PQresultStatus(result) {
    case PGRES_TUPLES_OK:
      let (rows, columns) = unsafe (PQntuples(result), PQnfields(result))
      for row in 0..<rows { for column in 0..<columns { unsafe keep(PQgetvalue(result, row, column)) } }
      return Int(rows)
    case PGRES_COMMAND_OK: return unsafe Int(String(cString: PQcmdTuples(result))) ?? 0
    case PGRES_COPY_IN: return 0
    default: throw BenchError("PostgreSQL: \(message)")
    }
  }
}
