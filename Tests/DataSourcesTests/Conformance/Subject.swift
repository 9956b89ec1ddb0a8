import DataSources
import Foundation
import Larder
import LarderServer
import LarderTesting
import Platform
import ReplicationTestSupport
import SQLiteDataSource
import SecretDataSource
import TestSupport
import Testing

/// A kind of source to run the conformance suite against.
struct Subject: Sendable, CustomTestStringConvertible {
  let testDescription: String
  /// Creates the source with a name at a place.
  let make: @Sendable (Place, String) throws -> AnyDataSource<Item>
  /// Creates the same source with another type of values; nil if the compiler prevents that because the source stores
  /// values, not bytes.
  var misread: (@Sendable (Place, String) throws -> AnyDataSource<Int>)?

  /// Runs a test with a new, empty source.
  func run(_ body: (AnyDataSource<Item>) async throws -> Void) async throws {
    try await runAtPlace { place in try await body(make(place, "items")) }
  }

  /// Runs a test with a new, empty place.
  func runAtPlace(_ body: (Place) async throws -> Void) async throws {
    let place = try Place()
    let result: Result<Void, any Error>
    do { result = .success(try await body(place)) } catch { result = .failure(error) }
    await place.close()
    try result.get()
  }
}

extension Subject {
  /// Creates a subject whose sources have a directory each.
  init(testDescription: String, make: @escaping @Sendable (URL) throws -> AnyDataSource<Item>) {
    self.init(testDescription: testDescription) { place, name in
      try make(place.url.appendingPathComponent(name))
    }
  }

  /// All sources that claim to be complete key-value sources.
  static let all = inProcess + remote + [replicated]
}

/// A place where the sources of a test store their entries: a directory and, if a test uses it, a server. Sources with
/// the same name at the same place share their entries, unless they store them in themselves.
final class Place: Sendable {
  private let directory: TemporaryFolder
  private let servers = Recorder<TestServer>()
  private let sharingServers = Recorder<(server: Server, client: LarderClient)>()

  init() throws { directory = try TemporaryFolder() }

  var url: URL { directory.url }

  /// The server of the place. The first use starts it; uses must not overlap.
  var server: TestServer {
    get throws {
      if let server = servers.events.first { return server }
      var configuration = LarderClient.Configuration()
      configuration.waitsForConnection = false
      let server = try TestServer.start(client: configuration)
      servers.add(server)
      return server
    }
  }

  /// A client of a server that can share its stores with others. The first use starts the server; uses must not overlap.
  var clientOfSharedStores: LarderClient {
    get throws {
      if let started = sharingServers.events.first { return started.client }
      let address = "unix:\(directory.file("shared"))"
      var configuration = ServerConfiguration(addresses: [try Address(address)])
      configuration.shareStores(in: SimulatedLog())
      let started = (try Server(configuration), try LarderClient(address))
      sharingServers.add(started)
      return started.1
    }
  }

  /// Stops the servers, if there are any.
  func close() async {
    for server in servers.events { await server.stop() }
    for (server, client) in sharingServers.events {
      client.close()
      await withCheckedContinuation { continuation in server.stop { continuation.resume() } }
    }
  }
}

// MARK: - Sources in this process

extension Subject {
  private static let testKey = SecretKey()

  /// Sources in this process, and compositions of them.
  static let inProcess: [Subject] = [
    Subject(testDescription: "InMemory") { _ in AnyDataSource(InMemoryDataSource()) },
    deviceStorage("regular") { _ in .regular },
    deviceStorage("prefix") { .prefix($0) },
    deviceStorage("root key") { .rootKey($0) },
    Subject(testDescription: "FileSystem, mapped") {
      AnyDataSource(
        DataSourceMapper(
          FileSystemDataSource(directory: $0),
          toOut: { try JSONDecoder().decode(Item.self, from: $0) }, toIn: { try JSONEncoder().encode($0) }))
    },
    Subject(testDescription: "Secret in memory") { _ in
      AnyDataSource(SecretDataSource(InMemoryDataSource(), key: SecretKey()))
    },
    Subject(testDescription: "Secret in a directory") { AnyDataSource(SecretDataSource(directory: $0, key: testKey)) },
    Subject(testDescription: "SQLite") { directory in
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
      let database = try SQLiteDatabase(file: directory.appendingPathComponent("items.sqlite"))
      return AnyDataSource(try SQLiteDataSource<Item, Item>(database, store: "items"))
    },
    Subject(testDescription: "Any in Any") { _ in AnyDataSource(AnyDataSource(InMemoryDataSource())) },
    Subject(testDescription: "assembled of Any halves") { _ in
      let source = InMemoryDataSource<Item>()
      return AnyDataSource(
        DataSourceAssembler(
          get: AnyGetDataSource(source), put: AnyPutDataSource(source), delete: AnyDeleteDataSource(source)))
    },
    Subject(testDescription: "mapped") { _ in
      AnyDataSource(
        DataSourceMapper(
          InMemoryDataSource<[String]>(), toOut: { Item($0[0], price: Int($0[1])) },
          toIn: { [$0.title, $0.price.map(String.init) ?? ""] }))
    },
    Subject(testDescription: "validated") { _ in
      AnyDataSource(DataSourceValidator(InMemoryDataSource(), .always))
    },
    Subject(testDescription: "retried") { _ in
      AnyDataSource(RetryDataSource(InMemoryDataSource(), RetryRule(retryCount: 1, pause: .zero)))
    },
    Subject(testDescription: "timed cache") { _ in
      AnyDataSource(TimedCacheDataSource(InMemoryDataSource(), lifetime: .seconds(60)))
    },
    Subject(testDescription: "debugged") { _ in AnyDataSource(DebugDataSource(InMemoryDataSource())) },
    Subject(testDescription: "repository of one") { _ in
      AnyDataSource(SingleDataSourceRepository(InMemoryDataSource()))
    },
    Subject(testDescription: "repository, mapped") { _ in
      AnyDataSource(
        RepositoryMapper(
          SingleDataSourceRepository(InMemoryDataSource<[String]>()), toOut: { Item($0[0], price: Int($0[1])) },
          toIn: { [$0.title, $0.price.map(String.init) ?? ""] }))
    },
    Subject(testDescription: "repository, assembled") { _ in
      let repository = SingleDataSourceRepository(InMemoryDataSource<Item>())
      return AnyDataSource(RepositoryAssembler(get: repository, put: repository, delete: repository))
    },
    Subject(testDescription: "cache repository, main") { _ in
      AnyDataSource(CacheRepository(main: InMemoryDataSource(), cache: InMemoryDataSource(), defaultOperation: .main))
    },
  ]

  /// Sources with different names share one directory, except for the regular part, which has no name.
  private static func deviceStorage(
    _ description: String, _ kind: @escaping @Sendable (String) -> DeviceStorageKind
  ) -> Subject {
    @Sendable func directory(_ place: Place, _ name: String) -> URL {
      kind(name) == .regular ? place.url.appendingPathComponent(name) : place.url
    }
    return Subject(
      testDescription: "DeviceStorage, " + description,
      make: { AnyDataSource(DeviceStorageDataSource(directory: directory($0, $1), kind($1))) },
      misread: { AnyDataSource(DeviceStorageDataSource(directory: directory($0, $1), kind($1))) })
  }
}

// MARK: - Sources behind a server

extension Subject {
  /// Sources behind a server, with each engine, and compositions of them.
  static let remote: [Subject] = [
    remote("Remote, memory", engine: "memory"),
    remote("Remote, log", engine: "log"),
    remote("Remote, directory", engine: "directory"),
    remote("Remote in Any in Any") { AnyDataSource(AnyDataSource($0)) },
    Subject(testDescription: "Remote, mapped") { place, name in
      let source = try place.server.client.dataSource(of: Data.self, store: name, creating: "memory")
      return AnyDataSource(
        DataSourceMapper(
          source, toOut: { try JSONDecoder().decode(Item.self, from: $0) }, toIn: { try JSONEncoder().encode($0) }))
    },
    remote("Remote, validated") { AnyDataSource(DataSourceValidator($0, .always)) },
    remote("Remote, timed cache") { AnyDataSource(TimedCacheDataSource($0, lifetime: .seconds(60))) },
    remote("cache repository over Remote") {
      AnyDataSource(CacheRepository(main: $0, cache: InMemoryDataSource(), defaultOperation: .mainSync))
    },
    remote("live cache over Remote") { AnyDataSource(LiveCacheRepository(main: $0)) },
  ]

  static let replicated = Subject(
    testDescription: "Remote, replicated",
    make: { AnyDataSource(try $0.clientOfSharedStores.dataSource(of: Item.self, store: $1, creating: "replicated")) },
    misread: { AnyDataSource(try $0.clientOfSharedStores.dataSource(store: $1, creating: "replicated")) })

  private static func remote(
    _ description: String, engine: String = "memory",
    _ compose: @escaping @Sendable (RemoteDataSource<Item>) -> AnyDataSource<Item> = { AnyDataSource($0) }
  ) -> Subject {
    Subject(
      testDescription: description,
      make: { try compose($0.server.client.dataSource(store: $1, creating: engine)) },
      misread: { AnyDataSource(try $0.server.client.dataSource(store: $1, creating: engine)) })
  }
}
