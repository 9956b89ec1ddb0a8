import Glibc
import Platform
import Replication
import ReplicationTestSupport
import Storage
import Testing

/// A server that shares stores with others, by a simulated log.
final class TestNode {
  let replication: Replication
  let catalog: StoreCatalog
  let database: Replication.Database

  init(
    _ name: String, _ log: SimulatedLog, lease: UInt64 = 200, valueCache: Int = 64 << 20,
    sharing patterns: [StorePattern]? = nil, data: DataDirectory? = nil
  ) {
    database = Replication.Database(
      DatabaseName("main")!, log, node: name, address: "at-\(name)", lease: lease, valueCache: valueCache)
    replication = Replication([database], sharing: patterns)
    catalog = StoreCatalog(engines: .builtIn + [replication.engine], data: data, sharesStores: true)
    look()
  }

  @discardableResult
  func look() -> (lost: [StoreName], stopped: [StoreName], survey: SharedStoreSurvey) {
    catalog.update(from: replication, onOpen: { _, _ in }, onFailure: { _, _ in })
  }

  /// The store `s` while another server leads it.
  var followed: Store? { (try? StoreName("s")).flatMap { replication.followedStore($0) } }

  func create(_ name: String = "s", _ specification: String = "replicated") throws -> Store {
    try catalog.create(StoreName(name), catalog.specification(specification))
  }

  func stop() {
    catalog.close()
    replication.leave()
  }
}

/// What tests do with replicated stores.
protocol ReplicatedStoreTests {}

extension ReplicatedStoreTests {
  func put(_ key: String, _ value: [UInt8], in store: Store, expiry: UInt64 = 0) throws -> UInt64 {
    let revision = try store.access { map throws(StorageError) in
      let key = Array(key.utf8)
      let revision = map.revisions.last + 1
      try unsafe map.put(key.span.bytes, value.span.bytes, expiry: expiry, revision: revision)
      return revision
    }
    store.wake()
    try wait { store.commitWriter?.isDurable(revision) ?? true }
    return revision
  }

  func value(_ key: String, in store: Store) -> [UInt8]? {
    store.access { map -> [UInt8]? in
      let key = Array(key.utf8)
      guard let entry = unsafe map.get(key.span.bytes, now: monotonicMilliseconds()) else { return nil }
      if let bytes = unsafe entry.value { return unsafe Array(bytes) }
      return entry.separatedValue.flatMap { try? $0.bytes() }
    }
  }

  func wait(_ seconds: UInt64 = 10, until condition: () throws -> Bool) throws {
    let end = monotonicMilliseconds() + seconds * 1_000
    while try !condition() {
      try #require(monotonicMilliseconds() < end)
      sleepBriefly()
    }
  }

  func sleepBriefly() { usleep(2_000) }
}
