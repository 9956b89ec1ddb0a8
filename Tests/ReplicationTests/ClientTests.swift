import Larder
import LarderServer
import Platform
import Replication
import ReplicationTestSupport
import Storage
import Synchronization
import TestSupport
import Testing

/// A client of two servers that share a store, which goes from one to the other.
@Suite(.serialized) struct ClientTests {
  /// Two servers with one shared log.
  private final class Cluster: Sendable {
    let log = SimulatedLog()
    let addresses: [String]
    private let folder: TemporaryFolder
    private let servers: [Server]

    init() throws {
      folder = try TemporaryFolder()
      addresses = ["unix:\(folder.file("a"))", "unix:\(folder.file("b"))"]
      servers = try addresses.map { [log] address in
        var configuration = ServerConfiguration(addresses: [try Address(address)])
        configuration.shareStores(in: log, as: address, lease: 300)
        configuration.stores = [try .init(name: "s", "replicated", engines: .known)]
        return try Server(configuration)
      }
    }

    /// Declares the leader of the store dead, although it isn't.
    func depose() {
      log.change { contents in
        let leader = contents.stores.first?.leader
        contents.nodes = contents.nodes.map { $0.node == leader ? $0.with(isLive: false) : $0 }
      }
    }

    func stop() async {
      for server in servers { await withCheckedContinuation { continuation in server.stop { continuation.resume() } } }
    }
  }

  private final class Flag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .relaxed) }
    func set() { value.store(true, ordering: .relaxed) }
  }

  @Test func `calls follow the store to another server, and a watch misses nothing`() async throws {
    let cluster = try Cluster()
    let client = try LarderClient(cluster.addresses)
    let store = client.store("s")
    try await store.put("first", [0])
    var watch = store.watch(from: 1).makeAsyncIterator()
    _ = try await watch.start()
    let isOver = Flag()
    let acknowledged = try await withThrowingTaskGroup(of: [UInt64].self) { group in
      group.addTask {
        var revisions: [UInt64] = []
        while !isOver.isSet, !Task.isCancelled {
          do throws(LarderError) {
            revisions.append(try await store.put("key", [1]))
          } catch {
            // Only what was sent and never answered fails.
            #expect(error.outcome == .unknown, "\(error)")
          }
        }
        return revisions
      }
      for _ in 0..<4 {
        let leader = try cluster.log.stores().first?.leader
        cluster.depose()
        while try cluster.log.stores().first?.leader == leader { try await Task.sleep(for: .milliseconds(10)) }
        let before = try await store.get("key")?.revision ?? 0
        // Writes go on, on the other server.
        while try await store.get("key")?.revision ?? 0 <= before + 5 { try await Task.sleep(for: .milliseconds(10)) }
      }
      isOver.set()
      return try await group.next() ?? []
    }
    #expect(acknowledged.count > 20 && Set(acknowledged).count == acknowledged.count)
    let last = try await store.put("last", [2])
    var seen: [UInt64] = []
    while let commit = try await watch.next() {
      seen.append(commit.revision)
      if commit.revision >= last { break }
    }
    #expect(seen == Array(1...last))
    client.close()
    await cluster.stop()
  }

  @Test func `a store is moved without a failing call or watch`() async throws {
    let cluster = try Cluster()
    let client = try LarderClient(cluster.addresses)
    let store = client.store("s")
    try await store.put("key", [0])
    let isOver = Flag()
    let watching = Task {
      var watch = store.watch(from: 1).makeAsyncIterator()
      var revisions: [UInt64] = []
      while let commit = try await watch.next() {
        revisions.append(commit.revision)
        if commit.changes.contains(where: { if case .put(let entry) = $0 { entry.key == "end" } else { false } }) {
          break
        }
      }
      return revisions
    }
    try await withThrowingTaskGroup { group in
      for task in 0..<4 {
        group.addTask {
          var revision: UInt64 = 0
          while !isOver.isSet {
            let next = try await store.put("key\(task)", [1])
            #expect(next > revision)
            revision = next
            #expect(try await store.get("key\(task)")?.revision == revision)
          }
        }
      }
      for _ in 0..<6 {
        let report = try #require(try await client.cluster().first)
        let leader = report["stores"]?.array?.first?["leader"]?.string
        let other = try #require(cluster.addresses.first { $0 != leader })
        do throws(LarderError) { try await client.moveStore("s", to: other) } catch {
          // The report may be older than the last move.
          #expect(error.kind == .illegalArgument, "\(error)")
        }
        try await Task.sleep(for: .milliseconds(400))
      }
      isOver.set()
      try await group.waitForAll()
    }
    let last = try await store.put("end", [])
    #expect(try await watching.value == Array(1...last))
    await #expect(throws: LarderError.illegalArgument) { try await client.moveStore("s", to: "nowhere") }
    client.close()
    await cluster.stop()
  }

  @Test func `reads that may be old, and watches, are answered by the server that follows the store`() async throws {
    let cluster = try Cluster()
    let client = try LarderClient(cluster.addresses)
    let store = client.store("s")
    try await store.put("key", [1])
    // Nodes have the names of their addresses.
    let nodes = try cluster.log.nodes()
    let leader = try #require(nodes.first { $0.node == (try? cluster.log.stores().first)?.leader }).name
    let otherAddress = try #require(cluster.addresses.first { $0 != leader })
    let other = try LarderClient(otherAddress)
    await #expect(throws: LarderError.notLeader) { try await other.store("s").get("key") }
    let followed = other.store("s").with(maxStaleness: .seconds(5))
    // It may not follow the store yet.
    let end = ContinuousClock.now + .seconds(10)
    while try await Self.value("key", in: followed) != [1], ContinuousClock.now < end {
      try await Task.sleep(for: .milliseconds(20))
    }
    #expect(try await followed.stats()["staleness_milliseconds"].map { $0 < 5_000 } == true)
    #expect(try await followed.count() == 1)
    await #expect(throws: LarderError.notLeader) { try await followed.put("key", [2]) }
    await #expect(throws: LarderError.notLeader) { try await followed.deleteAll() }
    // Nothing is as current as this.
    await #expect(throws: LarderError.notLeader) {
      try await other.store("s").with(maxStaleness: .zero).get("key")
    }
    var watch = followed.watch().makeAsyncIterator()
    let begun = try await watch.start()
    let revision = try await store.put("key", [3])
    let commit = try await watch.next()
    #expect(commit?.revision == revision && revision == begun + 1)
    #expect(try await followed.get("key")?.bytes == [3])
    // The follower becomes the leader. The watch goes on there.
    try await client.moveStore("s", to: otherAddress)
    while try await Self.value("key", in: other.store("s")) == nil { try await Task.sleep(for: .milliseconds(20)) }
    let next = try await other.store("s").put("key", [4])
    #expect(try await watch.next()?.revision == next)
    #expect(try await followed.get("key")?.bytes == [4])
    client.close()
    other.close()
    await cluster.stop()
  }

  /// The value of a key, or nil while another server serves the store.
  private static func value(_ key: String, in store: RemoteStore) async throws -> [UInt8]? {
    do throws(LarderError) { return try await store.get(key)?.bytes } catch {
      guard error.kind == .notLeader else { throw error }
      return nil
    }
  }

  @Test func `a client of several servers reads what may be old wherever it can`() async throws {
    let cluster = try Cluster()
    let client = try LarderClient(cluster.addresses)
    let store = client.store("s")
    try await store.put("key", [1])
    for staleness in [0, 1, 500, 5_000] {
      #expect(try await store.with(maxStaleness: .milliseconds(staleness)).get("key")?.bytes == [1])
    }
    client.close()
    await cluster.stop()
  }

  @Test func `a client of one server learns where the store is`() async throws {
    let cluster = try Cluster()
    let clients = try cluster.addresses.map { try LarderClient($0) }
    var errors: [LarderError] = []
    for client in clients {
      do throws(LarderError) { try await client.store("s").put("a", [1]) } catch { errors.append(error) }
    }
    #expect(errors.count == 1)
    let error = try #require(errors.first)
    #expect(error.kind == .notLeader && error.outcome == .notExecuted)
    let leader = try #require(error.message.split(separator: "\n").last)
    try await LarderClient(String(leader)).store("s").put("a", [2])
    for client in clients { client.close() }
    await cluster.stop()
  }

  @Test func `a store that only one server has is found, and one that none has is not`() async throws {
    let cluster = try Cluster()
    let own = try LarderClient(cluster.addresses[1])
    try await own.createStore("own", engine: "memory")
    let client = try LarderClient(cluster.addresses)
    try await client.store("own").put("a", [1])
    #expect(try await client.stores().map(\.name) == ["own", "s"])
    await #expect(throws: LarderError.storeUnknown) { try await client.store("none").get("a") }
    client.close()
    own.close()
    await cluster.stop()
  }

  @Test func `a client has one to eight addresses`() {
    #expect(throws: LarderError.illegalArgument) { try LarderClient([]) }
    #expect(throws: LarderError.illegalArgument) { try LarderClient(Array(repeating: "unix:/s", count: 9)) }
    #expect(throws: LarderError.illegalArgument) { try LarderClient(["unix:/s", "nowhere"]) }
  }
}
