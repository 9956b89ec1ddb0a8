import Larder
import LarderTLS
import Platform

/// Where a server is, and how to connect to it.
struct ServerAccess {
  let address: Address
  let tls: ClientTLS
  /// The token to show the server; nil for none.
  let token: String?
  let timeout: Duration

  /// - Parameter maxReconnectDelay: The longest pause between two attempts to connect; nil for the client's default.
  func client(maxReconnectDelay: Duration? = nil) throws -> LarderClient {
    var configuration = LarderClient.Configuration()
    if let maxReconnectDelay { configuration.backoff.cap = maxReconnectDelay }
    configuration.name = "larder"
    configuration.token = token
    configuration.timeout = timeout
    configuration.connectTimeout = timeout
    configuration.silenceLimit = max(configuration.silenceLimit, timeout + .seconds(1))
    configuration.waitsForConnection = false
    return address.isEncrypted
      ? try LarderClient("\(address)", tls: tls, configuration: configuration)
      : try LarderClient("\(address)", configuration: configuration)
  }
}
