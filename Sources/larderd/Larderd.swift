import ArgumentParser
import LarderServer
import LarderService
import Platform
import Systemd

@main
struct Larderd: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "larderd",
    abstract: "Serves named key-value stores over Unix and TCP sockets.",
    discussion: """
      An ADDRESS is unix:/path/to.sock or tcp:HOST:PORT. Sockets that systemd passes are used without any flag. TCP has neither encryption nor authentication yet: keep it to loopback.
      SIGTERM and SIGINT stop the server: it answers what has reached it and exits with status 0.

      Example: larderd --listen unix:/run/larder.sock --store sessions=memory
      """,
    version: softwareVersion)

  @Option(
    help: ArgumentHelp(
      "Where to listen, beside the sockets that systemd passes. Can be repeated. (default, if it passes none: \(Address.standard))",
      valueName: "address"),
    transform: Address.init)
  var listen: [Address] = []

  @Option(
    help: ArgumentHelp(
      "A store that exists from the start, such as sessions=memory or orders=log?durability=interval:1s. Can be repeated.",
      valueName: "name=engine"),
    transform: StoreArgument.init)
  var store: [StoreArgument] = []

  @Option(
    help: ArgumentHelp(
      "The folder for stores that survive: those of the engines log and directory. It is made if it is missing.",
      valueName: "dir"))
  var data: String?

  @Option(
    help: "The mode of Unix socket files, in octal, such as 660. (default: what the umask gives)",
    transform: FileMode.init)
  var socketMode: FileMode?

  @Option(
    help: "The owner of Unix socket files, as USER, USER:GROUP or :GROUP, by names or numbers.",
    transform: FileOwner.init)
  var socketOwner: FileOwner?

  @Option(help: "Event loops; each can use one core.")
  var workers = 1

  @Option(help: "Connections at once.")
  var maxConnections = ServerLimits().connections

  @Option(help: "Stores at once.")
  var maxStores = ServerLimits().stores

  @Option(help: "The largest frame, in bytes, from 131072 to 1073741824; it bounds the size of values.")
  var maxFrame = ServerLimits().largestFrameBytes

  func validate() throws {
    // Each keeps a thread of Dispatch's, which lends at most 255 of this kind.
    guard (1...128).contains(workers) else { throw ValidationError("--workers takes 1 to 128.") }
    guard maxConnections > 0 else { throw ValidationError("--max-connections takes 1 or more.") }
    guard maxStores > 0 else { throw ValidationError("--max-stores takes 1 or more.") }
    guard (1 << 17...1 << 30).contains(maxFrame) else {
      throw ValidationError("--max-frame takes 131072 to 1073741824.")
    }
    guard maxStores <= maxFrame / 192 else {
      throw ValidationError(
        "--max-stores takes up to \(maxFrame / 192) with this --max-frame, for the list of stores is one frame.")
    }
  }

  func run() throws {
    let log = EventLog("larderd")
    let sockets: [InheritedSocket]
    do { sockets = try ActivationSockets.take() } catch {
      log.error("can't take the sockets that systemd passes: \(error)")
      throw ExitCode.failure
    }
    var configuration = ServerConfiguration(addresses: listen.isEmpty && sockets.isEmpty ? [.standard] : listen)
    configuration.sockets = sockets
    configuration.stores = store.map { .init(name: $0.name, $0.specification) }
    configuration.dataPath = data.map(absolutePath)
    configuration.access = .init(mode: socketMode?.bits, owner: socketOwner?.user, group: socketOwner?.group)
    configuration.workers = workers
    configuration.limits.connections = maxConnections
    configuration.limits.stores = max(maxStores, store.count)
    configuration.limits.largestFrameBytes = maxFrame
    guard Daemon(log).run(configuration) else { throw ExitCode.failure }
  }
}
