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
    do throws(LarderError) {
      if servers.addresses.contains(where: \.isEncrypted) {
        return try LarderClient(addresses, tls: tls, configuration: configuration)
      }
      return try LarderClient(addresses, configuration: configuration)
    } catch {
      // A file that can't be used, or addresses that can't be combined: no server has refused anything.
      if error.kind == .illegalArgument { throw CommandFailure(.usage, error.message) }
      throw error
    }
  }
}
