import Larder
import Logging

/// An observer that logs what happens to a client's connections, and the calls that fail.
///
///     configuration.observers = [LarderLogging(logger: Logger(label: "larder"))]
///
/// A lost connection and a failed attempt to connect are warnings, because calls wait meanwhile; that a connection is
/// opened, or closed with its client, has the level `debug`. The metadata has the names of OpenTelemetry's conventions,
/// and no keys and values.
public struct LarderLogging: ClientObserver {
  private let logger: Logger
  private let failedCallLevel: Logger.Level

  /// Creates an observer.
  /// - Parameter failedCallLevel: The level of calls that fail. It is low by default, because a call throws its error
  ///   to a caller who can handle it.
  public init(logger: Logger, failedCallLevel: Logger.Level = .debug) {
    self.logger = logger
    self.failedCallLevel = failedCallLevel
  }

  public func callBegan(_ call: ClientCall) -> (@Sendable (ClientCallResult) -> Void)? {
    guard logger.logLevel <= failedCallLevel else { return nil }
    return { result in
      guard let error = result.error else { return }
      var metadata = Self.metadata(call.connection, error)
      metadata[Attribute.operation] = "\(call.operation)"
      if let store = call.store { metadata[Attribute.namespace] = "\(store)" }
      if result.retries > 0 { metadata[Attribute.retries] = "\(result.retries)" }
      metadata["larder.duration"] = "\(result.duration)"
      logger.log(level: failedCallLevel, "Call failed: \(error)", metadata: metadata)
    }
  }

  public func connectionOpened(_ connection: ClientConnection, after duration: Duration) {
    logger.debug("Connected to \(connection.address) in \(duration)", metadata: Self.metadata(connection))
  }

  public func connectionFailed(_ connection: ClientConnection, error: LarderError) {
    logger.warning("Connection attempt failed: \(error.message)", metadata: Self.metadata(connection, error))
  }

  public func connectionClosed(_ connection: ClientConnection, error: LarderError?) {
    if let error {
      logger.warning("Connection lost: \(error.message)", metadata: Self.metadata(connection, error))
    } else {
      logger.debug("Connection to \(connection.address) closed", metadata: Self.metadata(connection))
    }
  }

  private static func metadata(_ connection: ClientConnection, _ error: LarderError? = nil) -> Logger.Metadata {
    var metadata: Logger.Metadata = [
      Attribute.host: "\(connection.host)", "larder.connection": "\(connection.number)",
    ]
    if let port = connection.port { metadata[Attribute.port] = "\(port)" }
    if let error {
      metadata[Attribute.errorType] = "\(error.type)"
      metadata[Attribute.statusCode] = "\(error.code)"
    }
    return metadata
  }
}
