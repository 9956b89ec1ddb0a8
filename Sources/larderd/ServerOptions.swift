import ArgumentParser
import Foundation
import LarderService
import Platform
import Systemd

/// The flags that set something: each has a key of the configuration.
struct ServerOptions: ParsableArguments {
  @Option(help: "A configuration file, in YAML.", completion: .file(extensions: ["yaml"]))
  var config: String?

  @Option(
    help: ArgumentHelp(
      """
      Where to listen, beside the sockets that systemd passes. Can be repeated. (default, if it passes none: \
      \(Address.default))
      """, valueName: "address"))
  var listen: [String] = []

  @Flag(
    help:
      "Listen on TCP addresses that other machines reach, too, though everyone there can read and change everything.")
  var insecureTcp = false

  @Option(
    help: ArgumentHelp(
      "A store that exists from the start, such as sessions=memory or orders=log?durability=interval:1s. Can be repeated.",
      valueName: "name=engine"))
  var store: [String] = []

  @Option(
    help: ArgumentHelp(
      "The folder for stores that survive: those of the engines log and directory. It is made if it is missing.",
      valueName: "dir"),
    completion: .directory)
  var data: String?

  @Option(help: "The mode of Unix socket files, in octal, such as 660. (default: what the umask gives)")
  var socketMode: String?

  @Option(help: "The owner of Unix socket files, as USER, USER:GROUP or :GROUP, by names or numbers.")
  var socketOwner: String?

  @Option(
    help: ArgumentHelp(
      """
      Where to serve metrics over HTTP: /metrics for Prometheus, /healthz and /readyz. They are served on a passed socket with the name \
      metrics, too. (default: nowhere)
      """,
      valueName: "address"))
  var metrics: String?

  @Option(
    help: ArgumentHelp(
      """
      Who may do what: WHO is user:NAME, group:NAME, unix or tcp; RIGHT is read, write or admin, with :STORE for one store only, and \
      @LISTENER for one socket only. With any rule, who is named by none is refused. Can be repeated.
      """, valueName: "who=right"))
  var allow: [String] = []

  @Option(help: "Event loops; each can use one core. (default: 1)")
  var workers: Int?

  @Option(help: "Connections at once. (default: 10000)")
  var maxConnections: Int?

  @Option(help: "Stores at once. (default: 1024)")
  var maxStores: Int?

  @Option(
    help: "The largest frame, in bytes, from 131072 to 1073741824; it bounds the size of values. (default: 16777216)")
  var maxFrame: Int?

  @Option(
    help: ArgumentHelp(
      "What the log is to have: error, warning, notice, info or debug. (default: info)", valueName: "level"),
    completion: .list(LogLevel.allCases.map(\.rawValue)))
  var logLevel: String?

  /// The flags that were given, by the key that each sets.
  private var flags: [String: [String]] {
    var flags: [String: [String]] = [:]
    if !listen.isEmpty { flags["listen"] = listen }
    if !store.isEmpty { flags["stores"] = store }
    if !allow.isEmpty { flags["access"] = allow }
    if insecureTcp { flags["insecure-tcp"] = ["true"] }
    flags["data"] = data.map { [$0] }
    flags["socket.mode"] = socketMode.map { [$0] }
    flags["socket.owner"] = socketOwner.map { [$0] }
    flags["metrics"] = metrics.map { [$0] }
    flags["workers"] = workers.map { ["\($0)"] }
    flags["limits.connections"] = maxConnections.map { ["\($0)"] }
    flags["limits.stores"] = maxStores.map { ["\($0)"] }
    flags["limits.frame-bytes"] = maxFrame.map { ["\($0)"] }
    flags["log.level"] = logLevel.map { [$0] }
    return flags
  }

  var source: SettingsSource {
    SettingsSource(flags: flags, environment: ProcessInfo.processInfo.environment, path: config)
  }
}

extension SettingsSource {
  /// The status of a process whose configuration is wrong: EX_CONFIG of <sysexits.h>.
  static let failure = ExitCode(78)

  /// Reads all of it, or tells what is wrong with it and ends the process.
  func readOrExit() throws -> ReadSettings {
    do { return try read() } catch {
      for problem in error.problems { logLine("larderd: \(problem)") }
      throw Self.failure
    }
  }
}
