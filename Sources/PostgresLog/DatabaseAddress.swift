import CPostgreSQL

/// Where a database is, and how to log in: a connection URI or string of libpq without a password, which belongs in a
/// password file.
package struct DatabaseAddress: Equatable, Sendable {
  private let text: String
  private let applicationName: String

  package struct ParseError: Error, Equatable, CustomStringConvertible {
    package let description: String
  }

  /// - Parameters:
  ///   - text: As in `postgresql://larder@db1,db2/larder?sslmode=verify-full&passfile=/etc/larder/pgpass`.
  ///   - applicationName: What the database shows as the name of the program.
  package init(_ text: String, applicationName: String) throws(ParseError) {
    var message: UnsafeMutablePointer<CChar>?
    guard let options = unsafe PQconninfoParse(text, &message) else {
      let reason = unsafe message.map { unsafe String(cString: $0) } ?? "out of memory"
      unsafe PQfreemem(message)
      throw ParseError(description: reason.split(separator: "\n").joined(separator: "; "))
    }
    defer { unsafe PQconninfoFree(options) }
    var option = unsafe options
    while let keyword = unsafe option.pointee.keyword {
      if unsafe String(cString: keyword) == "password", unsafe option.pointee.val != nil {
        throw ParseError(
          description: "it has a password, which would be shown; put that into a file, and name it with passfile")
      }
      unsafe option += 1
    }
    (self.text, self.applicationName) = (text, applicationName)
  }

  /// The parameters of libpq. Those of the address come after the defaults, and replace them.
  var parameters: [(name: String, value: String)] {
    [
      ("fallback_application_name", applicationName), ("target_session_attrs", "read-write"),
      ("tcp_user_timeout", "10000"), ("keepalives_idle", "5"), ("keepalives_interval", "2"), ("keepalives_count", "3"),
      ("client_encoding", "UTF8"), ("dbname", text),
    ]
  }
}
