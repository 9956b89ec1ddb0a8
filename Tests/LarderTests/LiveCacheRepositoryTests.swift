import DataSources
import Foundation
import LarderTesting
import Platform
import Synchronization
import TestSupport
import Testing

@testable import Larder

/// Caches that watch real servers.
@Suite(.serialized) struct LiveCacheRepositoryTests {
  /// Keeps strings, and counts how many of them have come from the server.
  private final class CountingCodec: ValueCodec {
    private let counter = Atomic<Int>(0)
    var count: Int { counter.load(ordering: .relaxed) }

    func encode(_ value: String) -> [UInt8] { Array(value.utf8) }
    func decode(_ bytes: [UInt8]) -> String {
      counter.add(1, ordering: .relaxed)
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  private struct Cached {
    private let prefix: String
    let codec = CountingCodec()
    let books: LiveCacheRepository<String>

    init(
      _ client: LarderClient, store: String = "items", prefix: String = "", limit: Int = 100,
      maxSilence: Duration = .seconds(1)
    ) {
      self.prefix = prefix
      let main = client.dataSource(store: store, codec: codec)
      books = LiveCacheRepository(main: main, prefix: prefix, limit: limit, maxSilence: maxSilence)
    }

    /// Waits until the cache is used.
    func live() async throws {
      _ = try? await books.get("\(prefix)none")
      try await eventually("the cache isn't live") { books.isLive }
    }

    /// Returns the value of a key, nil if there is none, and whether it has come from the cache.
    func read(_ key: String) async throws -> (value: String?, isCached: Bool) {
      let count = codec.count
      do { return (try await books.get(key), codec.count == count) } catch DataSourceError.notFound {
        return (nil, codec.count == count)
      }
    }
  }

  /// A client that connects again soon.
  private static let configuration: LarderClient.Configuration = {
    var configuration = LarderClient.Configuration()
    configuration.backoff = Backoff(base: .milliseconds(2), cap: .milliseconds(10))
    return configuration
  }()

  private static func path(_ server: String) -> String { String(server.dropFirst("unix:".count)) }

  @Test func `a live cache returns a value from memory until another client changes it`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"], client: Self.configuration)
    let cached = Cached(server.client)
    let items = try LarderClient(server.address, configuration: Self.configuration).store("items")
    try await items.put("a", "0".utf8)
    try await items.put("b", "b".utf8)
    try await cached.live()
    #expect(try await cached.read("a") == ("0", false))
    #expect(try await cached.read("b") == ("b", false))
    for number in 1...100 {
      #expect(try await cached.read("a").isCached)
      try await items.put("a", "\(number)".utf8)
      try await eventually("the change isn't seen") { try await cached.read("a").value == "\(number)" }
    }
    _ = try await items.delete("a")
    try await eventually("the deletion isn't seen") { try await cached.read("a").value == nil }
    #expect(try await cached.read("b") == ("b", true))
    _ = try await items.deleteAll()
    try await eventually("the deletion of everything isn't seen") { try await cached.read("b").value == nil }
  }

  @Test func `a live cache remembers that a value is absent`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"], client: Self.configuration)
    let cached = Cached(server.client)
    try await cached.live()
    #expect(try await cached.read("a").value == nil)
    let count = cached.books.cachedCount
    #expect(count >= 1)
    #expect(try await cached.read("a").value == nil)
    #expect(cached.books.cachedCount == count)
    try await server.client.store("items").put("a", "a".utf8)
    try await eventually("the value isn't seen") { try await cached.read("a").value == "a" }
  }

  @Test func `a writer sees what it has written at once`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"], client: Self.configuration)
    let cached = Cached(server.client)
    let books = cached.books
    try await cached.live()
    for number in 0..<200 {
      try await books.put("\(number)", forId: "a")
      let decoded = cached.codec.count
      #expect(try await books.get("a") == "\(number)" && cached.codec.count == decoded)
      try await books.putAll(["x", "\(number)"], forId: "l")
      #expect(try await books.getAll("l") == ["x", "\(number)"])
      await #expect(throws: DataSourceError.notFound) { try await books.get("l") }
      try await books.putAll(["\(number)", "c"], forId: ["b", "c"])
      #expect(try await books.getAll(["c", "a", "b"]) == ["c", "\(number)", "\(number)"])
      if number % 3 == 0 {
        try await books.delete("a")
        await #expect(throws: DataSourceError.notFound) { try await books.get("a") }
      }
      if number % 50 == 0 {
        try await books.deleteAll(AllObjectsQuery())
        #expect(try await books.getAll(["a", "b", "c", "l"], missing: .skip) == [])
      }
    }
    #expect(try await books.getAll(AllObjectsQuery()).count == 5)
    #expect(try await books.getAll(PaginationOffsetLimitQuery(offset: 1, limit: 1)) == ["199"])
  }

  @Test func `a value that expires is absent on time`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"], client: Self.configuration)
    let cached = Cached(server.client)
    try await cached.live()
    let items = server.client.store("items")
    try await items.put("a", "a".utf8, expiresIn: .milliseconds(80))
    let written = ContinuousClock.now
    _ = try await cached.read("a")
    while true {
      let time = ContinuousClock.now
      let read = try await cached.read("a")
      if read.value == nil { break }
      #expect(time < written + .milliseconds(80))
    }
    #expect(try await items.get("a") == nil || ContinuousClock.now < written + .milliseconds(80))
  }

  @Test func `after a lost connection, the changes meanwhile are seen, and the other values are still cached`()
    async throws
  {
    let server = try TestServer.start(stores: ["items": "memory"], client: Self.configuration)
    let cached = Cached(server.client, prefix: "k")
    let items = server.client.store("items")
    for key in ["ka", "kb", "other"] { try await items.put(key, "0".utf8) }
    try await cached.live()
    for number in 1...8 {
      for key in ["ka", "kb", "kc"] { _ = try await cached.read(key) }
      cutConnections(to: Self.path(server.address))
      // Changes of other keys move the revision on, too.
      let writer = try LarderClient(server.address, configuration: Self.configuration).store("items")
      try await writer.put("other", "\(number)".utf8)
      if number % 2 == 0 { try await writer.put("ka", "\(number)".utf8) }
      // Succeeds over a new connection only.
      while (try? await items.put("kc", "\(number)".utf8)) == nil {}
      // For a moment, the cache may not know yet that it lost the old one.
      try await eventually("the cache isn't live again") {
        try await cached.read("kc").value == "\(number)" && cached.books.isLive
      }
      #expect(try await cached.read("kb") == ("0", true))
      #expect(try await cached.read("ka").value == "\(number / 2 * 2)")
      #expect(try await cached.read("other").isCached == false)
    }
  }

  @Test func `without a server, the cache is used only as a fallback`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"], client: Self.configuration)
    let client = try LarderClient(server.address, configuration: Self.configuration).with(timeout: .milliseconds(50))
    let cached = Cached(client)
    let books = cached.books
    try await cached.live()
    try await books.put("a", forId: "a")
    await server.stop()
    try await eventually("the cache is still trusted") { !books.isLive }
    await #expect(throws: LarderError.self) { try await books.get("a") }
    #expect(try await books.get("a", operation: .cacheSync(fallback: true)) == "a")
    #expect(try await books.get("a", operation: .cache) == "a")
    await #expect(throws: DataSourceError.notFound) { try await books.get("b", operation: .cacheSync(fallback: true)) }
    // The store begins empty, and comes to have as many revisions as before.
    try server.restart()
    try await server.client.store("items").put("a", "other".utf8)
    try await eventually("the cache isn't live again") { books.isLive }
    #expect(try await cached.read("a").value == "other")
  }

  @Test func `a store that was created again is another one, even with the same revisions`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"], client: Self.configuration)
    let cached = Cached(server.client)
    let items = server.client.store("items")
    try await items.put("a", "old".utf8)
    try await cached.live()
    for number in 0..<10 {
      _ = try await cached.read("a")
      if number % 2 == 0 { cutConnections(to: Self.path(server.address)) }
      let other = try LarderClient(server.address, configuration: Self.configuration)
      try await other.dropStore("items")
      try await other.createStore("items")
      try await other.store("items").put("a", "\(number)".utf8)
      try await eventually("the old store is cached") {
        guard cached.books.isLive else { return false }
        return try await cached.read("a").value == "\(number)"
      }
    }
  }

  @Test func `a live cache doesn't trust a server that hangs, and is correct once it continues`() async throws {
    let folder = try TemporaryFolder()
    let address = "unix:\(folder.path)/larder.sock"
    let server = try ServerProcess(address: address, store: "items")
    let client = try LarderClient(address)
    let cached = Cached(client.with(timeout: .seconds(20)), maxSilence: .milliseconds(200))
    try await cached.live()
    try await cached.books.put("a", forId: "a")
    #expect(try await cached.read("a").isCached)
    server.send(SIGSTOP)
    try await eventually("the cache trusts a server that hangs") { !cached.books.isLive }
    let read = Task { try await cached.read("a") }
    try await Task.sleep(for: .milliseconds(50))
    server.send(SIGCONT)
    #expect(try await read.value == ("a", false))
    try await eventually("the cache isn't live again") { cached.books.isLive }
    #expect(try await cached.read("a") == ("a", true))
    await client.shutdown()
    _ = server.end(with: SIGTERM)
  }

  @Test func `the watch begins with the first call, and ends with the last reference`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"], client: Self.configuration)
    let items = server.client.store("items")
    do {
      let cached = Cached(server.client)
      #expect(try await items.stats()["watches"] == 0 && !cached.books.isLive)
      try await cached.live()
      #expect(try await items.stats()["watches"] == 1)
    }
    try await eventually("the store is still watched") { try await items.stats()["watches"] == 0 }
    let cached = Cached(server.client)
    try await cached.live()
    await server.client.shutdown()
    try await eventually("the cache is still trusted") { !cached.books.isLive }
    await #expect(throws: LarderError.closed) { try await cached.books.get("a") }
  }

  @Test func `the number of cached keys is limited`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"], client: Self.configuration)
    let cached = Cached(server.client, limit: 10)
    try await cached.live()
    for number in 0..<100 { try await cached.books.put("\(number)", forId: number) }
    #expect(cached.books.cachedCount == 10)
    for number in 0..<100 { #expect(try await cached.books.get(number) == "\(number)") }
    #expect(cached.books.cachedCount == 10)
  }

  @Test func `the operations say where values come from and go to`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"], client: Self.configuration)
    let cached = Cached(server.client)
    let books = cached.books
    try await cached.live()
    try await books.put("a", forId: "a", operation: .main)
    var count = cached.codec.count
    func decodes() -> Int {
      defer { count = cached.codec.count }
      return cached.codec.count - count
    }
    #expect(try await books.get("a", operation: .main) == "a" && decodes() == 1)
    #expect(try await books.get("a", operation: .mainSync) == "a" && decodes() == 1)
    #expect(try await books.get("a", operation: .cacheSync()) == "a" && decodes() == 0)
    #expect(try await books.get("a", operation: .cache) == "a" && decodes() == 0)
    await #expect(throws: DataSourceError.notImplemented) { try await books.put("b", forId: "a", operation: .cache) }
    await #expect(throws: DataSourceError.queryNotSupported) {
      try await books.getAll(AllObjectsQuery(), operation: .cache)
    }
    try await books.delete(IdQuery("a"), operation: .cache)
    #expect(try await books.get("a") == "a" && decodes() == 1)
    await #expect(throws: DataSourceError.illegalArgument) { try await books.get("") }
  }

  @Test func `live caches end up correct despite concurrent writers and lost connections`()
    async throws
  {
    let seed = SeededGenerator.seeds(1).lowerBound
    let server = try TestServer.start(stores: ["items": "memory"], client: Self.configuration)
    let caches = try (0..<3).map { _ in Cached(try LarderClient(server.address, configuration: Self.configuration)) }
    for cached in caches { try await cached.live() }
    try await withThrowingTaskGroup { group in
      for writer in 0..<6 {
        group.addTask {
          var random = SeededGenerator(seed: seed + UInt64(writer))
          let books = caches[writer % 3].books
          for number in 0..<300 {
            // Each key has one writer. A write is repeated until it is known to be done.
            let key = "k\(writer)-\(Int.random(in: 0..<4, using: &random))"
            while true {
              do {
                try await books.put("\(number)", forId: key)
                break
              } catch is LarderError { try await Task.sleep(for: .milliseconds(20)) }
            }
            #expect(try await books.get(key) == "\(number)", "LARDER_SEED=\(seed)")
            let other = caches[Int.random(in: 0..<3, using: &random)].books
            _ = try await other.getAll(["k0-1", "k3-2", key], missing: .skip)
          }
        }
      }
      group.addTask {
        for _ in 0..<15 {
          try await Task.sleep(for: .milliseconds(10))
          cutConnections(to: Self.path(server.address))
        }
      }
      try await group.waitForAll()
    }
    for cached in caches { try await eventually("a cache isn't live again") { cached.books.isLive } }
    for (writer, number) in (0..<6).flatMap({ writer in (0..<4).map { (writer, $0) } }) {
      let key = "k\(writer)-\(number)"
      let value = try await server.client.store("items").get(key)?.bytes.map { String(decoding: $0, as: UTF8.self) }
      for cached in caches {
        try await eventually("\(key) is out of date, LARDER_SEED=\(seed)") {
          try await cached.read(key) == (value, true)
        }
      }
    }
  }
}
