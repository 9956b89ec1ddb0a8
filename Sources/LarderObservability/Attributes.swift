import Larder

/// The names of OpenTelemetry's conventions for databases, and of what they don't name.
enum Attribute {
  static let system = "db.system.name"
  static let namespace = "db.namespace"
  static let operation = "db.operation.name"
  static let batchSize = "db.operation.batch.size"
  static let statusCode = "db.response.status_code"
  static let host = "server.address"
  static let port = "server.port"
  static let errorType = "error.type"
  static let pool = "db.client.connection.pool.name"
  static let state = "db.client.connection.state"
  static let retries = "larder.retries"

  /// The value of `db.system.name`.
  static let larder = "larder"
}

extension LarderError {
  /// The value of `error.type`: one of few.
  var type: String { "\(kind)" }
}
