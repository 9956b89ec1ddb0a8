import Documents
import Glibc
import Platform
import Replication
import ReplicationTestSupport
import Storage
import Testing

/// Replicated stores in catalogs, as in two servers with one database.
struct EngineTests: ReplicatedStoreTests {
  private let log = SimulatedLog()

  @Test func `a store goes on where it was on another server, with its indexes and its incarnation`() throws {
    let first = TestNode("a", log)
    let store = try first.create()
    let large = [UInt8](repeating: 7, count: 100_000)
    _ = try put("small", Array(#"{"n":1}"#.utf8), in: store)
    _ = try put("large", large, in: store)
    let expiry = monotonicMilliseconds() + 3_600_000
    _ = try put("expiring", [1], in: store, expiry: expiry)
    try first.catalog.ensureIndex(
      DocumentIndex(parsing: Array(#"{"name":"by-n","fields":["n"]}"#.utf8).span), of: StoreName("s"))
    let last = try put("last", [2], in: store)
    let incarnation = store.incarnation
    first.stop()
    let second = TestNode("b", log)
    let copy = try second.catalog.open(StoreName("s"))
    #expect(copy.incarnation == incarnation)
    #expect(copy.access { $0.revisions.last } == last)
    #expect(copy.indexReports.map(\.index.name) == ["by-n"])
    #expect(value("large", in: copy) == large && value("small", in: copy)?.count == 7)
    let restored = copy.access { map in unsafe map.get(Array("expiring".utf8).span.bytes, now: 0)?.expiry }
    #expect(restored.map { $0 > expiry - 2_000 && $0 < expiry + 2_000 } == true)
    #expect(try put("more", [3], in: copy) == last + 1)
    second.stop()
  }

  @Test func `a store is followed with its indexes, and taken over without being read again`() throws {
    let (first, second) = (TestNode("a", log), TestNode("b", log))
    let store = try first.create()
    _ = try put("early", Array(#"{"n":1}"#.utf8), in: store)
    second.look()
    try wait { second.followed != nil }
    let followed = try #require(second.followed)
    try first.catalog.ensureIndex(
      DocumentIndex(parsing: Array(#"{"name":"by-n","fields":["n"]}"#.utf8).span), of: StoreName("s"))
    let last = try put("late", Array(#"{"n":2}"#.utf8), in: store, expiry: monotonicMilliseconds() + 3_600_000)
    try wait { followed.access { $0.revisions.last } == last }
    #expect(value("early", in: followed)?.count == 7 && value("late", in: followed)?.count == 7)
    #expect(followed.incarnation == store.incarnation)
    try wait { followed.indexReports.map(\.state) == [.complete] }
    #expect(throws: StorageError.self) { try second.catalog.open(StoreName("s")) }
    // What it has read is all there is of it.
    let id = try #require(log.stores().first).id
    log.change { contents in
      let end = contents.commits[id]?.keys.max() ?? 0
      contents.commits[id] = contents.commits[id]?.filter { $0.key == end }
    }
    first.stop()
    second.look()
    let copy = try second.catalog.open(StoreName("s"))
    #expect(second.followed == nil && followed.access { $0.isDropped })
    #expect(value("early", in: copy)?.count == 7 && copy.access { $0.revisions.last } == last)
    #expect(copy.indexReports.map(\.state) == [.complete])
    #expect(try put("more", [3], in: copy) == last + 1)
    second.stop()
  }

  @Test func `a follower reads a store again if the database has lost what it has read`() throws {
    let (first, second) = (TestNode("a", log), TestNode("b", log))
    let store = try first.create()
    _ = try put("a", [1], in: store)
    second.look()
    try wait { second.followed.flatMap { value("a", in: $0) } == [1] }
    let followed = try #require(second.followed)
    let id = try #require(log.stores().first).id
    // Another leader takes the place of a commit that nobody acknowledged.
    log.change { contents in
      guard let last = contents.commits[id]?.values.max(by: { $0.position < $1.position }) else { return }
      contents.commits[id]?[last.position] = LogCommit(
        position: last.position, epoch: last.epoch + 1, lastRevision: 0, records: [])
    }
    try wait { second.followed.map { $0 !== followed } ?? false }
    #expect(followed.access { $0.isDropped } && second.followed.flatMap { value("a", in: $0) } == nil)
    second.stop()
    first.stop()
  }

  @Test func `a follower begins again when the store's history does`() throws {
    let (first, second, third) = (TestNode("a", log), TestNode("b", log), TestNode("c", log))
    let store = try first.create("s", "replicated?durability=none")
    _ = try put("a", [1], in: store)
    second.look()
    try wait { second.followed.flatMap { value("a", in: $0) } == [1] }
    // The leader dies, and may have lost what its clients saw.
    let leader = try #require(log.stores().first?.leader)
    log.change { contents in
      contents.nodes = contents.nodes.map { $0.node == leader ? $0.with(isLive: false) : $0 }
    }
    try wait {
      third.look()
      return (try? third.catalog.open(StoreName("s"))) != nil
    }
    let reopened = try third.catalog.open(StoreName("s"))
    #expect(reopened.incarnation != store.incarnation)
    _ = try put("b", [2], in: reopened)
    try wait { second.followed.flatMap { value("b", in: $0) } == [2] }
    #expect(second.followed?.incarnation == reopened.incarnation)
    third.stop()
    second.stop()
  }

  @Test func `a server leaves stores alone that it doesn't share, unless they are moved to it`() throws {
    let (first, second) = (TestNode("a", log), TestNode("b", log, sharing: [try StorePattern("t*")]))
    let stores = [try first.create("s"), try first.create("t")]
    for store in stores { _ = try put("a", [1], in: store) }
    second.look()
    let names = [try StoreName("s"), try StoreName("t")]
    try wait { second.replication.followedStore(names[1]) != nil }
    #expect(second.replication.followedStore(names[0]) == nil)
    try first.catalog.move(names[0], to: "b", by: first.replication)
    second.look()
    #expect(try value("a", in: second.catalog.open(names[0])) == [1])
    try second.catalog.move(names[0], to: "a", by: second.replication)
    first.look()
    first.stop()
    second.look()
    #expect(try value("a", in: second.catalog.open(names[1])) == [1])
    #expect(throws: StorageError.self) { try second.catalog.open(names[0]) }
    second.stop()
  }

  @Test func `a store that a follower can't read any further is left, and another one goes on`() throws {
    let (first, second) = (TestNode("a", log), TestNode("b", log))
    let stores = [try first.create("s"), try first.create("t")]
    for store in stores { _ = try put("a", [1], in: store) }
    second.look()
    let names = [try StoreName("s"), try StoreName("t")]
    try wait { names.allSatisfy { second.replication.followedStore($0) != nil } }
    let id = try #require(log.stores().first { $0.name == "s" }).id
    log.change { contents in
      guard let last = contents.commits[id]?.values.max(by: { $0.position < $1.position }) else { return }
      contents.commits[id]?[last.position + 1] = LogCommit(
        position: last.position + 1, epoch: last.epoch, lastRevision: 9, records: [1, 2, 3])
    }
    _ = try put("b", [2], in: stores[1])
    try wait { second.replication.followedStore(names[0]) == nil }
    try wait { second.replication.followedStore(names[1]).flatMap { value("b", in: $0) } == [2] }
    second.stop()
    first.stop()
  }

  @Test func `a store that may have lost what its clients saw gets another incarnation`() throws {
    let first = TestNode("a", log)
    let store = try first.create("s", "replicated?durability=none")
    let last = try put("a", [1], in: store)
    let incarnation = store.incarnation
    // The server dies: its life ends without a word.
    log.change { contents in contents.nodes = contents.nodes.map { $0.with(isLive: false) } }
    let second = TestNode("b", log)
    let copy = try second.catalog.open(StoreName("s"))
    #expect(copy.incarnation != incarnation && copy.access { $0.revisions.last } > last)
    #expect(value("a", in: copy) == [1])
    second.stop()
  }

  @Test func `a leader that another one has replaced notices it and writes no more`() throws {
    let first = TestNode("a", log)
    let store = try first.create()
    _ = try put("a", [1], in: store)
    log.change { contents in contents.nodes = contents.nodes.map { $0.with(isLive: false) } }
    let second = TestNode("b", log)
    let copy = try second.catalog.open(StoreName("s"))
    _ = try put("b", [2], in: copy)
    let revision = try store.access { map throws(StorageError) in
      let revision = map.revisions.last + 1
      try unsafe map.put(Array("c".utf8).span.bytes, [3].span.bytes, revision: revision)
      return revision
    }
    store.wake()
    try wait { store.commitWriter?.failure != nil }
    #expect(store.commitWriter?.isDurable(revision) == false)
    try wait { first.look().lost.count == 1 }
    let error = #expect(throws: StorageError.self) { try first.catalog.open(StoreName("s")) }
    #expect(error.map { "\($0)" }?.contains("at-b") == true, "\(error as Any)")
    #expect(value("c", in: copy) == nil && value("b", in: copy) == [2])
    second.stop()
    first.stop()
  }

  @Test func `a store is opened from its snapshot and the commits after it`() throws {
    let first = TestNode("a", log)
    let store = try first.create()
    for round in 0..<12 {
      for key in 0..<20 { _ = try put("\(key)", [UInt8](repeating: UInt8(round), count: 400_000), in: store) }
    }
    try wait { store.fileFigures.contains { $0.name == "replicated_snapshots_total" && $0.value > 0 } }
    let last = try put("last", [1], in: store)
    try wait { try log.commits(of: log.stores()[0].id, from: 0, upTo: .max)[0].position > 1 }
    first.stop()
    let second = TestNode("b", log)
    let copy = try second.catalog.open(StoreName("s"))
    #expect(copy.access { $0.contents.entries } == 21 && copy.access { $0.revisions.last } == last)
    for key in 0..<20 { #expect(value("\(key)", in: copy) == [UInt8](repeating: 11, count: 400_000)) }
    second.stop()
  }

  /// A log that makes another node the leader as soon as there is a part of a snapshot.
  private final class Usurper: Sendable {
    private let log = Lock<SimulatedLog?>(nil)

    func makeLog() -> SimulatedLog {
      let log = SimulatedLog { isBefore in
        if isBefore { self.log.withLock { $0 }?.change(Self.depose) }
        return .none
      }
      self.log.withLock { $0 = log }
      return log
    }

    private static func depose(_ contents: inout SimulatedLog.Contents) {
      guard let store = contents.stores.first, store.epoch == 1, contents.parts[store.id] != nil,
        let last = contents.commits[store.id]?.values.max(by: { $0.position < $1.position })
      else { return }
      contents.stores[0] = StoreState(
        id: store.id, name: store.name, specification: store.specification, epoch: 2, leader: nil)
      contents.commits[store.id]?[last.position + 1] = LogCommit(
        position: last.position + 1, epoch: 2, lastRevision: last.lastRevision, records: [])
    }
  }

  @Test func `a leader that is replaced while it writes a snapshot loses nothing`() throws {
    let usurper = Usurper()
    let log = usurper.makeLog()
    let first = TestNode("a", log)
    let store = try first.create()
    var acknowledged = 0
    while !store.isLost, acknowledged < 1_000 {
      let revision = try store.access { map throws(StorageError) in
        let (key, value) = (Array("\(acknowledged)".utf8), [UInt8](repeating: 1, count: 400_000))
        let revision = map.revisions.last + 1
        try unsafe map.put(key.span.bytes, value.span.bytes, revision: revision)
        return revision
      }
      store.wake()
      try wait { store.commitWriter?.isDurable(revision) == true || store.isLost }
      if store.commitWriter?.isDurable(revision) == true { acknowledged += 1 }
    }
    #expect(store.isLost && acknowledged > 100)
    first.stop()
    let second = TestNode("b", log)
    #expect(try second.catalog.open(StoreName("s")).access { $0.contents.entries } >= acknowledged)
    second.stop()
  }

  @Test(arguments: ["flip", "gap", "part"])
  func `a damaged log is not served`(_ damage: String) throws {
    let first = TestNode("a", log)
    let store = try first.create()
    for key in 0..<5 { _ = try put("\(key)", [1, 2, 3], in: store) }
    first.stop()
    log.change { contents in
      for (id, commits) in contents.commits {
        let commit = commits[4]!
        var records = commit.records
        records[records.count - 1] ^= 1
        switch damage {
        case "flip":
          contents.commits[id]?[4] = LogCommit(
            position: 4, epoch: commit.epoch, lastRevision: commit.lastRevision, records: records)
        case "gap": contents.commits[id]?[4] = nil
        default:
          contents.snapshots[id] = LogSnapshot(position: 3, revision: 2, partCount: 1, entryCount: 2)
        }
      }
    }
    let second = TestNode("b", log)
    let error = #expect(throws: StorageError.self) { try second.catalog.open(StoreName("s")) }
    #expect(error.map { "\($0)" }?.contains("damaged") == true || error.map { "\($0)" }?.contains("missing") == true)
    second.stop()
  }

  @Test func `a dropped store is gone, and its name is free`() throws {
    let (first, second) = (TestNode("a", log), TestNode("b", log))
    _ = try put("a", [1], in: first.create())
    second.look()
    #expect(throws: StorageError.self) { try second.catalog.drop(StoreName("s")) }
    try first.catalog.drop(StoreName("s"))
    #expect(try log.stores().isEmpty)
    second.look()
    #expect(throws: StorageError.unknownStore(try StoreName("s"))) { try second.catalog.open(StoreName("s")) }
    let copy = try second.create()
    #expect(value("a", in: copy) == nil)
    second.stop()
    first.stop()
  }

  @Test func `two servers of one name are noticed`() throws {
    let first = TestNode("a", log, lease: 500)
    let second = TestNode("a", log, lease: 500)
    try wait { second.look().survey.failure?.contains("another server is the node a") == true }
    first.stop()
    try wait { second.look().survey.failure == nil }
    second.stop()
  }

  @Test func `a lease ends by itself, and a revoked one does not come back`() {
    let lease = Lease()
    #expect(!lease.isHeld(at: 1))
    lease.extend(to: 10)
    #expect(lease.isHeld(at: 9) && !lease.isHeld(at: 10))
    lease.revoke()
    lease.extend(to: 100)
    #expect(!lease.isHeld(at: 1) && lease.isRevoked)
  }
}
