import ArgumentParser
import Glibc
import Larder
import LarderTLS
import Platform

/// The server's address and the timeout. These options can precede or follow the command's name.
struct ConnectionOptions: ParsableArguments {
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      """
      The server's address, unix:/path/to.sock, tcp:HOST:PORT or tls:HOST:PORT. (default: LARDER_SERVER, else a local \
      server)
      """, valueName: "address"),
    transform: { try Address($0) })
  private var server: Address?

  @Option(
    name: .customLong("tls-ca"), parsing: .unconditional,
    help: ArgumentHelp(
      """
      The authorities that may have issued the server's certificate, at a tls: address. (default: LARDER_TLS_CA, else \
      those that the system trusts)
      """, valueName: "pem-file"),
    completion: .file(extensions: ["pem"]))
  private var authorities: String?

  @Option(
    name: .customLong("tls-cert"), parsing: .unconditional,
    help: ArgumentHelp(
      "The certificate to show the server, with those of its issuers. (default: LARDER_TLS_CERT, else none)",
      valueName: "pem-file"),
    completion: .file(extensions: ["pem"]))
  private var certificate: String?

  @Option(
    name: .customLong("tls-key"), parsing: .unconditional,
    help: ArgumentHelp("The private key of the certificate. (default: LARDER_TLS_KEY)", valueName: "pem-file"),
    completion: .file(extensions: ["pem"]))
  private var key: String?

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
      let client = try Self.client(for: address, tls: tls, timeout: effectiveTimeout)
      ServerProbe.watch(client, at: address)
      return client
    }
    return session.client.with(timeout: timeout?.duration ?? session.timeout)
  }

  /// - Throws: `CommandFailure` if no address is given, and none of the local sockets has a server.
  func address() throws -> Address {
    try server ?? Self.environmentAddress() ?? ServerSearch.find()
  }

  /// How to connect to addresses with TLS.
  var tls: ClientTLS {
    get throws { try Self.tls(authorities: authorities, certificate: certificate, key: key) }
  }

  /// Returns how to connect to addresses with TLS. What is missing comes from the environment.
  static func tls(
    authorities: String? = nil, certificate: String? = nil, key: String? = nil
  ) throws -> ClientTLS {
    var tls = ClientTLS.system
    if let file = authorities ?? environment("LARDER_TLS_CA") { tls.trust = .authorities(file: file) }
    switch (certificate ?? environment("LARDER_TLS_CERT"), key ?? environment("LARDER_TLS_KEY")) {
    case (let file?, let keyFile?): tls.certificate = ClientTLS.Certificate(file: file, keyFile: keyFile)
    case (nil, nil): break
    case (_?, nil): throw CommandFailure(.usage, "--tls-cert needs its private key: add --tls-key")
    case (nil, _?): throw CommandFailure(.usage, "--tls-key needs its certificate: add --tls-cert")
    }
    return tls
  }

  var effectiveTimeout: Duration { timeout?.duration ?? .seconds(5) }

  fileprivate static func environmentAddress() throws -> Address? {
    guard let text = environment("LARDER_SERVER") else { return nil }
    do { return try Address(text) } catch { throw CommandFailure(.usage, "LARDER_SERVER: \(error)") }
  }

  /// - Parameter maxReconnectDelay: The longest pause between two attempts to connect; nil for the client's default.
  static func client(
    for address: Address, tls: ClientTLS, timeout: Duration, maxReconnectDelay: Duration? = nil
  ) throws -> LarderClient {
    var configuration = LarderClient.Configuration()
    if let maxReconnectDelay { configuration.backoff.cap = maxReconnectDelay }
    configuration.name = "larder"
    configuration.token = try token()
    configuration.timeout = timeout
    configuration.connectTimeout = timeout
    configuration.silenceLimit = max(configuration.silenceLimit, timeout + .seconds(1))
    configuration.waitsForConnection = false
    return address.isEncrypted
      ? try LarderClient("\(address)", tls: tls, configuration: configuration)
      : try LarderClient("\(address)", configuration: configuration)
  }
}

extension ConnectionOptions {
  /// The token in the file that LARDER_TOKEN_FILE names, or in LARDER_TOKEN; nil for none. It is never an argument, which
  /// all users of the machine could see.
  fileprivate static func token() throws -> String? {
    if let path = environment("LARDER_TOKEN_FILE") {
      do { return try readSecretFile(path) } catch { throw CommandFailure(.usage, "\(path): \(error.reason)") }
    }
    return environment("LARDER_TOKEN")
  }
}

/// Returns a variable of the environment; nil if it is missing or empty.
private func environment(_ name: String) -> String? {
  unsafe getenv(name).map { unsafe String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
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
    return try ConnectionOptions.client(for: address(in: words), tls: ConnectionOptions.tls(), timeout: timeout)
  }

  private static func address(in words: [String]) throws -> Address {
    for (word, next) in zip(words, words.dropFirst() + [""]) {
      if word == "--server" { return try Address(next) }
      if word.hasPrefix("--server=") { return try Address(String(word.dropFirst("--server=".count))) }
    }
    return try ConnectionOptions.environmentAddress() ?? ServerSearch.find()
  }
}
