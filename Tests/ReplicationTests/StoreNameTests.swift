import Replication
import ReplicationTestSupport
import Storage
import Synchronization
import TestSupport
import Testing

/// Which names a server knows to be free, and what it replies about the others.
struct StoreNameTests: ReplicatedStoreTests {
  /// A database that can be away.
  private final class Outage: Sendable {
    private let isAway = Atomic(false)

    func begin() { isAway.store(true, ordering: .relaxed) }
    func end() { isAway.store(false, ordering: .relaxed) }

    func makeLog() -> SimulatedLog {
      SimulatedLog { [self] isBefore in isBefore && isAway.load(ordering: .relaxed) ? .before : .none }
    }
  }

  private let name = try! StoreName("s")

  /// The error of opening the store `s`.
  private func failure(of node: TestNode) -> StorageError? {
    do throws(StorageError) { _ = try node.catalog.open(name) } catch { return error }
    return nil
  }

  private func isElsewhere(_ error: StorageError?) -> Bool {
    if case .servedElsewhere = error { true } else { false }
  }

  @Test func `no name is free before all databases have said which stores they have`() throws {
    let outage = Outage()
    let log = outage.makeLog()
    let creator = TestNode("creator", log)
    _ = try creator.create()
    outage.begin()
    let node = TestNode("node", log)
    #expect(isElsewhere(failure(of: node)))
    let memory = try node.catalog.specification("memory")
    for name in ["s", "t"] {
      let error = #expect(throws: StorageError.self) { try node.create(name, "memory") }
      #expect(isElsewhere(error))
      #expect(isElsewhere(#expect(throws: StorageError.self) { try node.catalog.drop(StoreName(name)) }))
    }
    #expect(node.catalog.missingKnowledge?.contains("simulated") == true)
    // What the configuration names is served all the same.
    try node.catalog.ensureAll([(StoreName("own"), memory)])
    #expect(try node.catalog.open(StoreName("own")).engine == .memory)

    outage.end()
    node.look()
    #expect(node.catalog.missingKnowledge == nil)
    #expect(isElsewhere(failure(of: node)))
    #expect(throws: StorageError.storeExists(name, .replicated)) { try node.create("s", "memory") }
    #expect(throws: StorageError.unknownStore(try StoreName("t"))) { try node.catalog.open(StoreName("t")) }
    _ = try node.create("t", "memory")

    // What was known stays known while the database is away.
    outage.begin()
    #expect(node.look().survey.failure != nil)
    #expect(isElsewhere(failure(of: node)) && node.catalog.missingKnowledge == nil)
    outage.end()
    node.stop()
    creator.stop()
  }

  @Test func `a server that has crashed knows its stores before its earlier lease has expired`() throws {
    let log = SimulatedLog()
    let crashed = TestNode("node", log, lease: 60_000)
    _ = try crashed.create()
    let node = TestNode("node", log, lease: 60_000)
    #expect(node.catalog.missingKnowledge == nil)
    guard case .servedElsewhere(_, let elsewhere) = failure(of: node) else {
      Issue.record("it says that there is no such store")
      return
    }
    #expect(elsewhere.reason.contains("earlier lease") && elsewhere.address == nil)
    #expect(throws: StorageError.storeExists(name, .replicated)) { try node.create("s", "memory") }
    // It can be taken over without being read first.
    try wait { node.followed != nil }
    node.stop()
    crashed.stop()
  }

  @Test func `a store with the name of a replicated one is stopped, and its files stay`() throws {
    let outage = Outage()
    let log = outage.makeLog()
    let creator = TestNode("creator", log)
    let replicated = try creator.create()
    _ = try put("key", [1], in: replicated)
    outage.begin()
    let folder = try TemporaryFolder()
    let node = TestNode("node", log, data: try DataDirectory.open(folder.file("data")))
    try node.catalog.ensureAll([(name, node.catalog.specification("log"))])
    let own = try node.catalog.open(name)
    _ = try put("key", [2], in: own)
    outage.end()
    #expect(node.look().stopped == [name])
    #expect(node.catalog.stoppedNames == [name])
    #expect(isElsewhere(failure(of: node)))
    #expect(own.access { $0.isDropped } && isElsewhere(own.access { $0.removalError }))
    #expect(node.look().stopped.isEmpty)
    creator.stop()
    try wait {
      node.look()
      return failure(of: node) == nil
    }
    #expect(value("key", in: try node.catalog.open(name)) == [1])
    node.stop()

    let catalog = StoreCatalog(data: try DataDirectory.open(folder.file("data")))
    try catalog.openAll { _, _ in }
    #expect(value("key", in: try catalog.open(name)) == [2])
    catalog.close()
  }
}
