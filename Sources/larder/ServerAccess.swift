import Larder
import LarderTLS

/// Where a server is, or servers that share stores are, and how to connect.
struct ServerAccess {
  let servers: ServerList
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
    let addresses = servers.addresses.map(\.description)
    return servers.addresses.contains(where: \.isEncrypted)
      ? try LarderClient(addresses, tls: tls, configuration: configuration)
      : try LarderClient(addresses, configuration: configuration)
  }
}
