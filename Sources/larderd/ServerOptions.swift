import ArgumentParser
import FoundationEssentials
import LarderService
import Platform
import Systemd

/// The flags that change settings. Each corresponds to a key of the configuration.
struct ServerOptions: ParsableArguments {
  @Option(help: "A configuration file, in YAML.", completion: .file(extensions: ["yaml"]))
  var config: String?

  @Option(
    help: ArgumentHelp(
      """
      An address to listen on, in addition to the sockets that systemd passes: unix:PATH, tcp:HOST:PORT, \
      tls:HOST:PORT, for Redis's protocol resp+unix:PATH, resp:HOST:PORT, resps:HOST:PORT, or for HTTP \
      http+unix:PATH, http:HOST:PORT, https:HOST:PORT. Can be repeated. \
      (default if it passes none: \(Address.default))
      """, valueName: "address"))
  private var listen: [String] = []

  @Flag(
    help:
      "Allow TCP addresses that other machines can reach, although every client there can read and change everything.")
  private var insecureTcp = false

  @Option(
    help: ArgumentHelp(
      "The server's certificate and those of its issuers, for tls: and resps: addresses. Can be repeated.",
      valueName: "pem-file"),
    completion: .file(extensions: ["pem"]))
  private var tlsCertificate: [String] = []

  @Option(
    help: ArgumentHelp(
      "The private key of a certificate. Can be repeated, in the order of the certificates.", valueName: "pem-file"),
    completion: .file(extensions: ["pem"]))
  private var tlsKey: [String] = []

  @Option(
    help: ArgumentHelp(
      "The authorities whose certificates clients may show. (default: none may)", valueName: "pem-file"),
    completion: .file(extensions: ["pem"]))
  private var tlsClientAuthorities: String?

  @Option(
    help: ArgumentHelp(
      "A store to create at the start, such as sessions=memory or orders=log?durability=interval:1s. Can be repeated.",
      valueName: "name=engine"))
  private var store: [String] = []

  @Option(
    help: ArgumentHelp(
      """
      The store behind a database of Redis's protocol, such as 0=sessions. Can be repeated. (default: database 0 is the \
      only store)
      """, valueName: "number=store"))
  private var respDatabase: [String] = []

  @Option(
    help: ArgumentHelp(
      "The data directory, for durable stores (engines log and directory). Created if missing.",
      valueName: "dir"),
    completion: .directory)
  private var data: String?

  @Flag(help: "Refuse to start if a store is damaged. (default: serve the others)")
  private var strict = false

  @Option(help: "The octal mode of Unix socket files, such as 660. (default: set by the umask)")
  private var socketMode: String?

  @Option(help: "The owner of Unix socket files, as USER, USER:GROUP or :GROUP, by name or number.")
  private var socketOwner: String?

  @Option(
    help: ArgumentHelp(
      """
      The address on which to serve metrics over HTTP: /metrics for Prometheus, /healthz and /readyz. A socket that \
      systemd passes with the name metrics serves them, too. (default: none)
      """,
      valueName: "address"))
  private var metrics: String?

  @Option(
    help: ArgumentHelp(
      """
      An access rule: WHO is user:NAME, group:NAME, unix, tcp, principal:NAME or tls; RIGHT is read, write or admin, \
      followed by :STORE for one store only and @LISTENER for one socket only. Once there is a rule, clients that no \
      rule matches are refused, also root and the user that runs larderd. Can be repeated.
      """, valueName: "who=right"))
  private var allow: [String] = []

  @Option(help: "The number of workers; each can use one core. (default: 1)")
  private var workers: Int?

  @Option(
    help: ArgumentHelp(
      """
      The maximum resident memory of the process, such as 2GiB: at the limit, writes that need more are refused, and \
      stores with a limit evict entries. (default: none)
      """, valueName: "size"))
  private var memoryLimit: String?

  @Option(help: "The maximum number of connections. (default: 10000)")
  private var maxConnections: Int?

  @Option(help: "The maximum number of stores. (default: 1024)")
  private var maxStores: Int?

  @Option(
    help: ArgumentHelp(
      "The maximum frame size, from 128KiB to 1GiB, which limits the size of values. (default: 16MiB)",
      valueName: "size"))
  private var maxFrame: String?

  @Option(
    help: ArgumentHelp(
      "The least severe level to log: error, warning, notice, info or debug. (default: info)", valueName: "level"),
    completion: .list(LogLevel.allCases.map(\.rawValue)))
  private var logLevel: String?

  /// The values of the given flags, by the key that each flag sets.
  private var flags: [String: [String]] {
    var flags: [String: [String]] = [:]
    if !listen.isEmpty { flags["listen"] = listen }
    if !store.isEmpty { flags["stores"] = store }
    if !respDatabase.isEmpty { flags["resp.databases"] = respDatabase }
    if !allow.isEmpty { flags["access"] = allow }
    if !tlsCertificate.isEmpty { flags["tls.certificates"] = tlsCertificate }
    if !tlsKey.isEmpty { flags["tls.keys"] = tlsKey }
    flags["tls.client-authorities"] = tlsClientAuthorities.map { [$0] }
    if insecureTcp { flags["insecure-tcp"] = ["true"] }
    flags["data"] = data.map { [$0] }
    if strict { flags["strict"] = ["true"] }
    flags["socket.mode"] = socketMode.map { [$0] }
    flags["socket.owner"] = socketOwner.map { [$0] }
    flags["metrics"] = metrics.map { [$0] }
    flags["workers"] = workers.map { ["\($0)"] }
    flags["memory-limit"] = memoryLimit.map { [$0] }
    flags["limits.connections"] = maxConnections.map { ["\($0)"] }
    flags["limits.stores"] = maxStores.map { ["\($0)"] }
    flags["limits.frame-bytes"] = maxFrame.map { [$0] }
    flags["log.level"] = logLevel.map { [$0] }
    return flags
  }

  /// Returns a loader for these flags, the environment and a configuration file.
  /// - Parameter path: The path of the configuration file; nil for the one that --config names, if any.
  func loader(path: String? = nil) -> SettingsLoader {
    SettingsLoader(flags: flags, environment: ProcessInfo.processInfo.environment, path: path ?? config)
  }
}

extension SettingsLoader {
  /// The exit status for an invalid configuration: EX_CONFIG of <sysexits.h>.
  static let invalidConfiguration = ExitCode(78)

  /// Loads the settings, or prints everything that is wrong and throws the exit status.
  func loadOrExit() throws -> ResolvedSettings { try orExit(load) }

  /// Runs `body`, or prints everything that is wrong and throws the exit status.
  func orExit<Result>(_ body: () throws(SettingsError) -> Result) throws -> Result {
    do { return try body() } catch {
      for problem in error.problems { logLine("larderd: \(problem)") }
      ServiceManager.status("can't start: \(error.problems[0])")
      throw Self.invalidConfiguration
    }
  }
}
