import ArgumentParser
import Glibc
import Larder
import Platform

/// The server's address and the timeout. These options can precede or follow the command's name.
struct ConnectionOptions: ParsableArguments {
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The server's address, unix:/path/to.sock or tcp:HOST:PORT. (default: LARDER_SERVER, else a local server)",
      valueName: "address"),
    transform: { try Address($0) })
  private var server: Address?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "How long to wait for each reply, such as 500ms, 5s, 2m or 1h. (default: 5s)", valueName: "time"),
    transform: { try DurationArgument($0) })
  private var timeout: DurationArgument?

  /// Returns the console's client in a console, unless the command names another server; a new client otherwise.
  func client() throws -> LarderClient {
    guard let session = ConsoleSession.current, server == nil || server == session.address else {
      let address = try address()
      let client = try Self.client(for: address, timeout: effectiveTimeout)
      ServerProbe.watch(client, at: address)
      return client
    }
    return session.client.with(timeout: timeout?.duration ?? session.timeout)
  }

  /// - Throws: `CommandFailure` if no address is given, and none of the local sockets has a server.
  func address() throws -> Address {
    try server ?? Self.environmentAddress() ?? ServerSearch.find()
  }

  var effectiveTimeout: Duration { timeout?.duration ?? .seconds(5) }

  fileprivate static func environmentAddress() throws -> Address? {
    guard let text = unsafe getenv("LARDER_SERVER").map({ unsafe String(cString: $0) }), !text.isEmpty else {
      return nil
    }
    do { return try Address(text) } catch { throw CommandFailure(.usage, "LARDER_SERVER: \(error)") }
  }

  /// - Parameter maxReconnectDelay: The longest pause between two attempts to connect; nil for the client's default.
  static func client(
    for address: Address, timeout: Duration, maxReconnectDelay: Duration? = nil
  ) throws -> LarderClient {
    var configuration = LarderClient.Configuration()
    if let maxReconnectDelay { configuration.backoff.cap = maxReconnectDelay }
    configuration.name = "larder"
    configuration.timeout = timeout
    configuration.connectTimeout = timeout
    configuration.silenceLimit = max(configuration.silenceLimit, timeout + .seconds(1))
    configuration.waitsForConnection = false
    return try LarderClient("\(address)", configuration: configuration)
  }
}

/// Completes names of stores in a shell, from the server that the command would use. Completes nothing if the server
/// does not respond.
enum StoreNameCompletion {
  /// Longer than a local server needs, but too short for a person to notice.
  private static let timeout = Duration.milliseconds(300)

  @Sendable
  static func names(_ words: [String], _ index: Int, _ prefix: String) async -> [String] {
    guard let client = try? client(for: words), let stores = try? await client.stores() else { return [] }
    return stores.map(\.name).filter { $0.hasPrefix(prefix) }
  }

  private static func client(for words: [String]) throws -> LarderClient {
    if let session = ConsoleSession.current { return session.client.with(timeout: timeout) }
    return try ConnectionOptions.client(for: address(in: words), timeout: timeout)
  }

  private static func address(in words: [String]) throws -> Address {
    for (word, next) in zip(words, words.dropFirst() + [""]) {
      if word == "--server" { return try Address(next) }
      if word.hasPrefix("--server=") { return try Address(String(word.dropFirst("--server=".count))) }
    }
    return try ConnectionOptions.environmentAddress() ?? ServerSearch.find()
  }
}
