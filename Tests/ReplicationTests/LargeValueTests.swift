import Dispatch
import Glibc
import Platform
import Replication
import ReplicationTestSupport
import Storage
import Testing

/// Values of 32 KiB and more, which stay in the log.
struct LargeValueTests: ReplicatedStoreTests {
  private let log = SimulatedLog()

  private func bytes(_ number: Int, count: Int = 400_000) -> [UInt8] { [UInt8](repeating: UInt8(number), count: count) }

  private func figure(_ name: String, of store: Store) -> UInt64? {
    store.fileFigures.first { $0.name == name }?.value
  }

  private func separatedValue(_ key: String, in store: Store) -> SeparatedValue? {
    store.access { map in
      let key = Array(key.utf8)
      return unsafe map.get(key.span.bytes, now: monotonicMilliseconds())?.separatedValue
    }
  }

  /// The number of values that the log has outside of commits.
  private func keptCount(_ id: StoreID) -> Int { log.contents.values[id]?.count ?? 0 }
  private func firstPosition(_ id: StoreID) -> Int64 { log.contents.commits[id]?.keys.min() ?? 0 }

  @Test func `large values are read from the log, and those used last are kept in memory`() throws {
    let first = TestNode("a", log, valueCache: 2 << 20)
    let store = try first.create()
    for key in 0..<40 { _ = try put("\(key)", bytes(key, count: 100_000), in: store) }
    let statistics = store.access { $0.statistics }
    #expect(statistics.valuesOnDisk == 40 && statistics.contents.valueBytes == 4_000_000)
    #expect(statistics.memoryBytes < 1_000_000)
    #expect(separatedValue("39", in: store)?.isProbablyCached == true)
    #expect(separatedValue("0", in: store)?.isProbablyCached == false)
    for key in 0..<40 { #expect(value("\(key)", in: store) == bytes(key, count: 100_000)) }
    #expect(try #require(figure("replicated_value_reads_total", of: store)) >= 20)
    // One that would take much of the memory is read in pieces, and not kept.
    _ = try put("large", bytes(1, count: 3 << 20), in: store)
    let part = try #require(separatedValue("large", in: store)).part(70_000..<70_010)
    #expect(try part.bytes() == bytes(1, count: 10))
    #expect(separatedValue("large", in: store)?.isProbablyCached == false)
    separatedValue("large", in: store)?.readAhead()
    #expect(separatedValue("large", in: store)?.isProbablyCached == true)
    first.stop()
    let second = TestNode("b", log)
    let copy = try second.catalog.open(StoreName("s"))
    #expect(copy.access { $0.statistics.valuesOnDisk } == 41)
    for key in 0..<40 { #expect(value("\(key)", in: copy) == bytes(key, count: 100_000)) }
    second.stop()
  }

  @Test func `values in use outlive their commits, and the others are removed`() throws {
    let server = TestNode("a", log)
    let store = try server.create()
    let id = try #require(log.stores().first).id
    _ = try put("kept", bytes(200), in: store)
    _ = try put("replaced", bytes(201), in: store)
    var replaced = separatedValue("replaced", in: store)
    for round in 0..<12 { for key in 0..<20 { _ = try put("\(key)", bytes(round), in: store) } }
    _ = try put("replaced", bytes(202), in: store)
    // What a find or a backup may still have to read.
    try wait { firstPosition(id) > 20 && keptCount(id) > 2 }
    #expect(try replaced?.bytes() == bytes(201) && value("kept", in: store) == bytes(200))
    replaced = nil
    for round in 0..<14 { for key in 0..<20 { _ = try put("\(key)", bytes(round), in: store) } }
    try wait { firstPosition(id) > 400 && log.contents.values[id]?.keys.contains { $0.position == 3 } == false }
    #expect(log.contents.values[id]?.keys.contains { $0.position == 2 } == true)
    #expect(keptCount(id) <= 42)
    for key in 0..<20 { #expect(value("\(key)", in: store) == bytes(13)) }
    server.stop()
    let second = TestNode("b", log)
    let copy = try second.catalog.open(StoreName("s"))
    #expect(value("kept", in: copy) == bytes(200) && value("replaced", in: copy) == bytes(202))
    for key in 0..<20 { #expect(value("\(key)", in: copy) == bytes(13)) }
    try second.catalog.drop(StoreName("s"))
    #expect(log.contents.values[id] == nil)
    second.stop()
  }

  @Test func `a follower writes the snapshots, and reads what the leader keeps`() throws {
    let (first, second) = (TestNode("a", log, lease: 60_000), TestNode("b", log, lease: 60_000))
    let store = try first.create()
    let id = try #require(log.stores().first).id
    second.look()
    first.look()
    try wait { second.followed != nil }
    let followed = try #require(second.followed)
    _ = try put("0", bytes(100), in: store)
    try wait { separatedValue("0", in: followed) != nil }
    let old = try #require(separatedValue("0", in: followed))
    for round in 0..<20 { for key in 0..<20 { _ = try put("\(key)", bytes(round), in: store) } }
    try wait { firstPosition(id) > 20 }
    #expect(figure("replicated_snapshots_total", of: store) == 0)
    #expect(try #require(log.contents.snapshots[id]).position > 20)
    // Only what the leader uses is certain to stay.
    #expect(throws: SeparatedValueError.self) { try old.bytes() }
    let last = store.access { $0.revisions.last }
    try wait { followed.access { $0.revisions.last } == last }
    for key in 0..<20 { #expect(value("\(key)", in: followed) == bytes(19)) }
    #expect(followed.access { $0.statistics.valuesOnDisk } == 20)
    first.stop()
    second.look()
    let taken = try second.catalog.open(StoreName("s"))
    for key in 0..<20 { #expect(value("\(key)", in: taken) == bytes(19)) }
    second.stop()
  }

  @Test func `a leader without living followers writes snapshots itself`() throws {
    let (first, second) = (TestNode("a", log), TestNode("b", log, sharing: [try StorePattern("t")]))
    let store = try first.create()
    let id = try #require(log.stores().first).id
    first.look()
    // The other server doesn't follow the store, so it takes twice as much.
    for round in 0..<20 { for key in 0..<20 { _ = try put("\(key)", bytes(round), in: store) } }
    try wait { firstPosition(id) > 20 }
    #expect(try #require(figure("replicated_snapshots_total", of: store)) > 0)
    second.stop()
    first.stop()
  }

  @Test func `a snapshot is not finished before the log has what is in it`() throws {
    // The first call that is counted appends the last commit that makes a snapshot due, and the second one belongs to
    // the snapshot. The third one appends a commit that is in the snapshot, too.
    let count = Lock<Int?>(nil)
    let gates = [2: DispatchSemaphore(value: 0), 3: DispatchSemaphore(value: 0)]
    let log = SimulatedLog { isBefore in
      guard isBefore else { return .none }
      let number = count.withLock { count -> Int? in
        guard let number = count else { return nil }
        count = number + 1
        return count
      }
      number.flatMap { gates[$0] }?.wait()
      return .none
    }
    let server = TestNode("a", log, lease: 60_000)
    let store = try server.create()
    let id = try #require(log.stores().first).id
    while try #require(figure("replicated_log_bytes", of: store)) + 400_100 < 64 << 20 {
      _ = try put("0", bytes(1), in: store)
    }
    count.withLock { $0 = 0 }
    _ = try put("0", bytes(2), in: store)
    try wait { count.withLock { $0 == 2 } }
    let revision = try store.access { map throws(StorageError) in
      let revision = map.revisions.last + 1
      try unsafe map.put(Array("1".utf8).span.bytes, [3].span.bytes, revision: revision)
      return revision
    }
    store.wake()
    try wait { count.withLock { $0 == 3 } }
    gates[2]?.signal()
    usleep(300_000)
    #expect(log.contents.snapshots[id] == nil)
    gates[3]?.signal()
    try wait { log.contents.snapshots[id] != nil }
    #expect(log.contents.snapshots[id]?.revision == revision)
    server.stop()
  }

  @Test func `values can't be read while the database is away`() throws {
    let isAway = Flag()
    let log = SimulatedLog { isBefore in isBefore && isAway.isSet ? .before : .none }
    let server = TestNode("a", log, valueCache: 1)
    let store = try server.create()
    _ = try put("a", bytes(1), in: store)
    isAway.set(true)
    #expect(throws: SeparatedValueError.unavailable("simulated, before")) {
      try separatedValue("a", in: store)?.bytes()
    }
    isAway.set(false)
    #expect(try separatedValue("a", in: store)?.bytes() == bytes(1))
    server.stop()
  }
}

private final class Flag: Sendable {
  private let value = Lock(false)
  var isSet: Bool { value.withLock { $0 } }
  func set(_ isSet: Bool) { value.withLock { $0 = isSet } }
}
