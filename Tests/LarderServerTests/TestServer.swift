import Dispatch
import Foundation
import LarderServer
import Platform
import ReplicationTestSupport
import Storage
import Synchronization
import TestSupport
import Testing

/// The tests of the server run one at a time, because many of them measure durations. They run on a dedicated thread,
/// because they block, and tests of other modules must not wait for them.
@Suite(.serialized, .dedicatedThread) enum ServerTests {}

/// A server in this process, with its own folder for its socket.
final class TestServer: Sendable {
  let server: Server
  private let folder: TemporaryFolder
  private let stopped = DispatchSemaphore(value: 0)
  private let isStopping = Atomic(false)

  var address: Address { server.addresses[0] }
  private var path: String { folder.file("s") }
  var socketFileExists: Bool { FileManager.default.fileExists(atPath: path) }

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - stores: The names of memory stores that exist from the start.
  ///   - opened: Stores that the test has opened itself.
  ///   - tls: Makes the layers of connections, for a protocol that clients must name; nil for plain connections.
  ///   - tokens: The tokens that are accepted.
  ///   - databases: The stores behind databases.
  ///   - keyspaceEvents: The changes that clients of databases can subscribe to.
  ///   - spoken: The protocol that clients speak.
  ///   - alsoNative: Whether a second address is for Larder's own protocol.
  ///   - directories: The names of directory stores that exist from the start, likewise.
  ///   - replicated: The names of replicated stores that exist from the start, likewise.
  ///   - logs: The names of log stores that exist from the start, in a data directory on `files`.
  init(
    workers: Int = 1, findThreads: Int = 2, stores: [String] = ["test"], serving opened: [Store] = [],
    engines: [EngineKind] = .builtIn, tcp: Bool = false,
    logs: [String] = [], directories: [String] = [], replicated: [String] = [],
    on files: any FileSystem = LocalFileSystem(),
    metrics: Address? = nil,
    rules: [AccessRule] = [], databases: [RESPDatabase] = [], keyspaceEvents: RESPEventClasses = [],
    speaking spoken: ListenerProtocol = .native,
    alsoNative: Bool = false,
    limits: (inout ServerLimits) -> Void = { _ in },
    onRefusal: (@Sendable (RefusalLog.Event) -> Void)? = nil,
    tls: (@Sendable (String?) -> (any ChannelLayer)?)? = nil, tokens: TokenTable = TokenTable(),
    audit: (@Sendable ([AuditEvent]) -> Void)? = nil
  ) throws {
    folder = try TemporaryFolder()
    var configuration = ServerConfiguration(
      addresses: [
        tls != nil
          ? .tls(host: "127.0.0.1", port: 0)
          : tcp ? .tcp(host: "127.0.0.1", port: 0) : .unix(path: folder.file("s"))
      ])
    configuration.secureLayer = tls
    configuration.tokens = tokens
    configuration.auditing.write = audit
    configuration.auditing.includesAuthentications = true
    configuration.protocols = [configuration.addresses[0]: spoken]
    if alsoNative { configuration.addresses.append(.unix(path: folder.file("native"))) }
    configuration.databases = databases
    configuration.keyspaceEvents = keyspaceEvents
    configuration.workers = workers
    configuration.findThreads = findThreads
    configuration.engines = engines
    configuration.metrics = metrics
    configuration.stores = try stores.map { try .init(name: $0, "memory") } + logs.map { try .init(name: $0, "log") }
    configuration.stores += try directories.map { try .init(name: $0, "directory") }
    if !replicated.isEmpty { configuration.shareStores(in: SimulatedLog()) }
    configuration.stores += try replicated.map { try .init(name: $0, "replicated", engines: .known) }
    if !logs.isEmpty || !directories.isEmpty { configuration.dataPath = folder.file("data") }
    configuration.fileSystem = files
    configuration.accessRules = rules
    if let onRefusal { configuration.onRefusal = onRefusal }
    limits(&configuration.limits)
    server = try Server(configuration, serving: opened)
  }

  deinit { _ = stop() }

  /// The folder of a durable store.
  func folder(of store: String) -> String { folder.file("data/stores/\(store)") }

  /// Connects a client, exchanges the hello, and opens a store, which gets handle 1.
  func connect(credit: UInt32 = 1 << 20, store: String = "test") throws -> TestClient {
    let client = try TestClient(address)
    try client.handshake(credit: credit)
    let opened = try client.call(Request.make(.storeOpen, store: 0, id: 2, Array(store.utf8)))
    try #require(opened.outcome == .done, "\(opened)")
    return client
  }

  /// Stops the server. Only the first call has an effect.
  ///
  /// - Returns: The duration in seconds, or `nil` if the server did not stop within 10 seconds.
  @discardableResult
  func stop() -> Double? {
    guard !isStopping.exchange(true, ordering: .relaxed) else { return 0 }
    let start = DispatchTime.now()
    server.stop { [stopped] in stopped.signal() }
    guard stopped.wait(timeout: start + 10) == .success else { return nil }
    return Double(DispatchTime.now().uptimeNanoseconds - start.uptimeNanoseconds) / 1e9
  }
}
