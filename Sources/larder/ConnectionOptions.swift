import ArgumentParser
import Glibc
import Larder
import Platform

/// Where the server is and how long it may take. They can be given before the command and behind it.
struct ConnectionOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The server's address, unix:/path/to.sock or tcp:HOST:PORT. (default: LARDER_SERVER, else \(Address.default))",
      valueName: "address"),
    transform: { try Address($0) })
  var server: Address?

  @Option(
    help: ArgumentHelp("How long to wait for each answer, such as 500ms, 5s, 2m, 1h. (default: 5s)", valueName: "time"),
    transform: { try TimeSpan($0) })
  var timeout: TimeSpan?

  /// The console's client, unless the command is not in a console or names another server.
  func client() throws -> LarderClient {
    guard let session = ConsoleSession.current, server == nil || server == session.address else {
      return try Self.client(of: try address(), timeout: patience)
    }
    return session.client.with(timeout: timeout?.duration ?? session.timeout)
  }

  func address() throws -> Address {
    try server ?? Self.addressInEnvironment() ?? .default
  }

  var patience: Duration { timeout?.duration ?? .seconds(5) }

  static func addressInEnvironment() throws -> Address? {
    guard let text = unsafe getenv("LARDER_SERVER").map({ unsafe String(cString: $0) }), !text.isEmpty else {
      return nil
    }
    do { return try Address(text) } catch { throw CommandFailure(.usage, "LARDER_SERVER: \(error)") }
  }

  /// - Parameter rest: the longest pause between two attempts to connect; nil for the usual one.
  static func client(of address: Address, timeout: Duration, rest: Duration? = nil) throws -> LarderClient {
    var configuration = LarderClient.Configuration()
    if let rest { configuration.backoff.cap = rest }
    configuration.name = "larder"
    configuration.timeout = timeout
    configuration.connectTimeout = timeout
    configuration.silenceLimit = max(configuration.silenceLimit, timeout + .seconds(1))
    configuration.waitsForConnection = false
    return try LarderClient("\(address)", configuration: configuration)
  }
}
