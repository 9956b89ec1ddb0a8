import Larder
import LarderServer
import Platform

/// A Larder server in this process, for tests: on a Unix socket of its own, with a data directory of its own, both of which go with it.
///
///     let server = try TestServer.start(stores: ["items": "memory"])
///     let items = server.client.dataSource(of: Item.self, store: "items")
///
/// It is the real server, so what a test sees is what a service will see. Each test can have one: it takes a few milliseconds. Letting
/// go of it stops it.
public final class TestServer: Sendable {
  /// Where it listens, as `LarderClient` takes it.
  public let address: String
  /// A client of it. Further ones are made with its `address`.
  public let client: LarderClient
  private let stores: [String: String]
  private let folder: TestFolder
  private let running = Lock<Server?>(nil)

  /// Starts a server that has these stores.
  /// - Parameters:
  ///   - stores: engines by the stores' names, with their options if any: `["items": "memory", "orders": "log?durability=none"]`.
  ///   - configuration: that of its client.
  /// - Throws: when the stores or the socket can't be made; the error says which and why.
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
    // At once, for the process may end before the server has; and again when it has, for what it still wrote.
    folder.remove()
    running.withLock { $0.take() }?.stop { [folder] in folder.remove() }
  }

  /// Stops the server in an orderly way, and returns when it has stopped. Its clients find out as they do in life. Does nothing when it
  /// is stopped already.
  public func stop() async {
    guard let server = running.withLock({ $0.take() }) else { return }
    await withCheckedContinuation { continuation in server.stop { continuation.resume() } }
  }

  /// Starts a stopped server anew at the same address, with what its durable stores have kept.
  /// - Precondition: it is stopped.
  public func restart() throws {
    var configuration = ServerConfiguration(addresses: [try Address(address)])
    configuration.stores = try stores.map { try .init(name: $0.key, $0.value) }
    configuration.dataPath = folder.path + "/data"
    let server = try Server(configuration)
    running.withLock { running in
      precondition(running == nil, "the server runs already")
      running = server
    }
  }
}
