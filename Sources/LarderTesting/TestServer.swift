import FoundationEssentials
import Larder
import LarderServer
import Platform

/// A Larder server in this process, for tests. Its Unix socket and its data directory are removed with it.
///
///     let server = try TestServer.start(stores: ["items": "memory"])
///     let items = server.client.dataSource(of: Item.self, store: "items")
///
/// It is the real server, so a test sees what a service will see. It starts within a few milliseconds, so that each
/// test can have its own. Releasing it stops it.
public final class TestServer: Sendable {
  /// The address of the server, for `LarderClient`.
  public let address: String
  /// A client of the server. Create others with `address`.
  public let client: LarderClient
  private let stores: [String: String]
  private let folder: TestFolder
  private let running = Lock<Server?>(nil)

  /// Starts a server.
  /// - Parameters:
  ///   - stores: The engines of the server's stores, with their options if any, by the stores' names:
  ///     `["items": "memory", "orders": "log?durability=none"]`.
  ///   - configuration: The configuration of the server's client.
  /// - Throws: An error that says which store, or the socket, can't be created, and why.
  public static func start(
    stores: [String: String] = [:], client configuration: LarderClient.Configuration = .init()
  ) throws -> TestServer {
    let server = try TestServer(stores: stores, configuration)
    try server.restart()
    return server
  }

  private init(stores: [String: String], _ configuration: LarderClient.Configuration) throws {
    folder = try TestFolder()
    address = "unix:\(folder.path)/larder.sock"
    client = try LarderClient(address, configuration: configuration)
    self.stores = stores
  }

  deinit {
    // Now, because the process may end before the server does; and again afterward, because the server may still write.
    folder.remove()
    running.withLock { $0.take() }?.stop { [folder] in folder.remove() }
  }

  /// Stops the server as a service would, and returns when it has stopped. Does nothing if it is stopped.
  public func stop() async {
    guard let server = running.withLock({ $0.take() }) else { return }
    await withCheckedContinuation { continuation in server.stop { continuation.resume() } }
  }

  /// Starts a stopped server again, at the same address and with the entries of its durable stores.
  /// - Precondition: The server is stopped.
  public func restart() throws {
    var configuration = ServerConfiguration(addresses: [try Address(address)])
    configuration.stores = try stores.map { try .init(name: $0.key, $0.value) }
    configuration.dataPath = folder.path + "/data"
    let server = try Server(configuration)
    running.withLock { running in
      precondition(running == nil, "The server is running.")
      running = server
    }
  }
}

/// A folder whose path is short enough for sockets.
private final class TestFolder: Sendable {
  let path: String

  init() throws {
    // A socket's path has at most 107 bytes, and the temporary folder of some systems has a long path.
    path = "/tmp/larder-\(UUID().uuidString.prefix(13))"
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  /// Removes the folder and everything in it, if it exists.
  func remove() { try? FileManager.default.removeItem(atPath: path) }
}
