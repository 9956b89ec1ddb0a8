import Larder
import Platform

extension LarderClient {
  /// Creates a client of a server with TLS. It does not connect before the first call.
  ///
  ///     let larder = try LarderClient("tls:db.example:7464", tls: .system)
  ///
  /// - Parameters:
  ///   - address: `tls:HOST:PORT`, with an IPv6 host in square brackets.
  ///   - tls: Which servers are trusted, and the client's certificate.
  /// - Throws: `illegalArgument` if the text is not such an address, or a file can't be used; `failed` if the process
  ///   can't open more descriptors. Calls throw `notTrusted` if the client doesn't accept the server's certificate, or
  ///   the server doesn't accept the client's; they are not repeated then.
  public init(
    _ address: String, tls: ClientTLS, configuration: Configuration = Configuration()
  ) throws(LarderError) {
    let credentials: ClientCredentials
    do { credentials = try ClientCredentials(tls, for: address) } catch {
      throw LarderError(.illegalArgument, outcome: .rejected, error.description)
    }
    try self.init(address, configuration: configuration) { credentials.makeLayer() }
  }

  /// Creates a client of servers with TLS that share stores, as `init(_:configuration:)` with several addresses does.
  public init(
    _ addresses: [String], tls: ClientTLS, configuration: Configuration = Configuration()
  ) throws(LarderError) {
    var servers: [(address: String, makeLayer: ChannelLayerFactory?)] = []
    for address in addresses {
      do {
        let credentials = try ClientCredentials(tls, for: address)
        servers.append((address, { credentials.makeLayer() }))
      } catch {
        throw LarderError(.illegalArgument, outcome: .rejected, error.description)
      }
    }
    try self.init(servers: servers, configuration: configuration)
  }
}
