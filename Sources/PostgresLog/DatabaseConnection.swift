import CPostgreSQL
import Glibc
import Platform
import Replication

/// A connection to PostgreSQL, used by one thread at a time. No call waits longer than until its deadline; afterward the
/// connection can't be used any more, because the outcome is unknown.
///
/// Statements that run together are one transaction, which is committed when they have all succeeded.
@safe
final class DatabaseConnection {
  private let connection: OpaquePointer
  private var prepared: Set<Statement> = []
  /// Set by libpq when the server sends a warning.
  private let notices = Notices()

  /// The last warning. The server commits although it warns that a standby may not have the transaction.
  private final class Notices {
    var warning: String?
  }

  /// Connects.
  /// - Parameters:
  ///   - parameters: The names and values of libpq's parameters.
  ///   - deadline: In milliseconds of the clock of `monotonicMilliseconds`.
  init(_ parameters: [(name: String, value: String)], deadline: UInt64) throws(SharedLogError) {
    let started = unsafe Self.withCStrings(parameters.map(\.name)) { names in
      unsafe Self.withCStrings(parameters.map(\.value)) { values in unsafe PQconnectStartParams(names, values, 1) }
    }
    guard let started = unsafe started else { fatalError("out of memory") }
    unsafe connection = started
    unsafe PQsetNoticeReceiver(
      connection,
      { notices, result in
        guard let notices = unsafe notices, let severity = unsafe PQresultErrorField(result, Int32(UInt8(ascii: "V"))),
          unsafe String(cString: severity) == "WARNING"
        else { return }
        let message = unsafe PQresultErrorField(result, Int32(UInt8(ascii: "M"))).map { unsafe String(cString: $0) }
        unsafe Unmanaged<Notices>.fromOpaque(notices).takeUnretainedValue().warning = message ?? ""
      }, Unmanaged.passUnretained(notices).toOpaque())
    var polling = PGRES_POLLING_WRITING
    while polling != PGRES_POLLING_OK {
      guard unsafe PQstatus(connection) != CONNECTION_BAD, polling != PGRES_POLLING_FAILED else {
        throw .unavailable("no connection: \(message)")
      }
      try wait(forInput: polling == PGRES_POLLING_READING, until: deadline)
      polling = unsafe PQconnectPoll(connection)
    }
    guard unsafe PQsetnonblocking(connection, 1) == 0, unsafe PQenterPipelineMode(connection) == 1 else {
      throw .unavailable("no connection: \(message)")
    }
  }

  deinit { unsafe PQfinish(connection) }

  /// The warning of the last `run`; nil if there was none.
  var warning: String? { notices.warning }

  /// Runs statements in one transaction.
  /// - Returns: What each has returned.
  func run(_ statements: [(Statement, [Parameter])], deadline: UInt64) throws(DatabaseError) -> [Rows] {
    notices.warning = nil
    // For each command that was sent, whether it returns what a statement has.
    var expected: [Bool] = []
    for (statement, parameters) in statements {
      if prepared.insert(statement).inserted {
        try check(unsafe PQsendPrepare(connection, statement.name, statement.sql, 0, nil))
        expected.append(false)
      }
      try send(statement, parameters)
      expected.append(true)
    }
    try check(unsafe PQpipelineSync(connection))
    return try receive(expected, deadline: deadline)
  }

  private func send(_ statement: Statement, _ parameters: [Parameter]) throws(DatabaseError) {
    let values = parameters.map(\.binary)
    let bytes = values.flatMap { $0 ?? [] }
    let sent = unsafe bytes.withUnsafeBufferPointer { buffer in
      // Not nil, even if it is empty: nil is NULL.
      let base = unsafe UnsafeRawPointer(buffer.baseAddress)?.assumingMemoryBound(to: CChar.self)
      var offset = 0
      let pointers: [UnsafePointer<CChar>?] = unsafe values.map { value in
        guard let value else { return nil }
        defer { offset += value.count }
        return unsafe value.isEmpty ? Self.empty : base.map { unsafe $0 + offset }
      }
      let lengths = values.map { Int32($0?.count ?? 0) }
      let formats = [Int32](repeating: 1, count: values.count)
      return unsafe PQsendQueryPrepared(
        connection, statement.name, Int32(values.count), pointers, lengths, formats, 1)
    }
    try check(sent)
  }

  nonisolated(unsafe) private static let empty: UnsafePointer<CChar> = {
    let empty = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
    unsafe empty.initialize(to: 0)
    return unsafe UnsafePointer(empty)
  }()

  /// Receives the results of everything that was sent.
  private func receive(_ expected: [Bool], deadline: UInt64) throws(DatabaseError) -> [Rows] {
    var (index, all, failure) = (0, [Rows](), DatabaseError?.none)
    while true {
      let flushed = unsafe PQflush(connection)
      try check(flushed >= 0 ? 1 : 0)
      guard unsafe PQisBusy(connection) == 0 else {
        do throws(SharedLogError) {
          try wait(forInput: true, orOutput: flushed == 1, until: deadline)
        } catch { throw .broken("\(error)") }
        try check(unsafe PQconsumeInput(connection))
        continue
      }
      guard let result = unsafe PQgetResult(connection) else {
        index += 1
        guard index <= expected.count else { throw .broken("the connection ended: \(message)") }
        continue
      }
      defer { unsafe PQclear(result) }
      switch unsafe PQresultStatus(result) {
      case PGRES_PIPELINE_SYNC:
        if let failure { throw failure }
        return all
      case PGRES_TUPLES_OK, PGRES_COMMAND_OK:
        if index < expected.count, expected[index] { all.append(unsafe Self.rows(result)) }
      case PGRES_PIPELINE_ABORTED: break
      default:
        if failure == nil { failure = unsafe Self.error(of: result) ?? .broken("the connection ended: \(message)") }
        // What was prepared after the failure is not.
        prepared.removeAll()
        if unsafe PQstatus(connection) == CONNECTION_BAD { throw failure! }
      }
    }
  }

  private static func rows(_ result: OpaquePointer) -> Rows {
    let (count, columns) = unsafe (PQntuples(result), PQnfields(result))
    let cells: [[[UInt8]?]] = (0..<count).map { row in
      (0..<columns).map { column in
        guard unsafe PQgetisnull(result, row, column) == 0, let value = unsafe PQgetvalue(result, row, column) else {
          return nil
        }
        let length = unsafe Int(PQgetlength(result, row, column))
        return unsafe [UInt8](UnsafeRawBufferPointer(start: value, count: length))
      }
    }
    let changed = unsafe Int(String(cString: PQcmdTuples(result)))
    return Rows(count: changed ?? Int(count), cells: cells)
  }

  private static func error(of result: OpaquePointer) -> DatabaseError? {
    func field(_ code: Character) -> String? {
      unsafe PQresultErrorField(result, Int32(code.asciiValue!)).map { unsafe String(cString: $0) }
    }
    guard let code = field("C") else { return nil }
    return .refused(code: code, field("M") ?? "")
  }

  // MARK: Waiting

  private var message: String {
    unsafe String(cString: PQerrorMessage(connection)).split(separator: "\n").joined(separator: "; ")
  }

  private func check(_ succeeded: Int32) throws(DatabaseError) {
    if succeeded != 1 { throw .broken("the connection ended: \(message)") }
  }

  private func wait(
    forInput: Bool, orOutput: Bool = false, until deadline: UInt64
  ) throws(SharedLogError) {
    let now = monotonicMilliseconds()
    guard now < deadline else { throw .unavailable("no response in time") }
    let events = (forInput ? POLLIN : 0) | (orOutput || !forInput ? POLLOUT : 0)
    var descriptor = unsafe pollfd(fd: PQsocket(connection), events: Int16(events), revents: 0)
    _ = unsafe poll(&descriptor, 1, Int32(clamping: deadline - now))
  }

  /// Calls `body` with a null-terminated array of C strings.
  private static func withCStrings<Result>(
    _ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Result
  ) -> Result {
    let copies = unsafe strings.map { unsafe strdup($0) }
    defer { for index in unsafe copies.indices { unsafe free(copies[index]) } }
    var pointers: [UnsafePointer<CChar>?] = unsafe copies.map { unsafe UnsafePointer($0) }
    unsafe pointers.append(nil)
    return unsafe pointers.withUnsafeBufferPointer { unsafe body($0.baseAddress!) }
  }
}

/// Why statements have failed.
enum DatabaseError: Error, Equatable, Sendable {
  /// The connection can't be used any more, for this reason. Whether the statements were executed is unknown.
  case broken(String)
  /// The server has executed none of the statements: its code of five characters (SQLSTATE), and its message.
  case refused(code: String, String)
}

extension DatabaseError: CustomStringConvertible {
  var description: String {
    switch self {
    case .broken(let reason): reason
    case .refused(let code, let message): "the database refuses: \(message) (\(code))"
    }
  }
}
