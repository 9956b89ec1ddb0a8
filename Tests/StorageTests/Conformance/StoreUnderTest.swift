import Dispatch
import Glibc
import Platform
import Replication
import ReplicationTestSupport
import TestSupport

@testable import Storage

/// A store of any engine with its commit writer, on a disk that can crash.
final class StoreUnderTest {
  let engine: EngineKind
  private let durability: Durability
  private let disk: SimulatedDisk
  private let log: SimulatedLog
  private(set) var store: Store

  /// Segments and journals so small that compaction and settling happen all the time.
  private static let configuration = {
    var configuration = LogConfiguration()
    (configuration.minSegmentSize, configuration.maxSegmentSize, configuration.reserveThreshold) = (
      16 << 10, 64 << 10, 32 << 10
    )
    return configuration
  }()
  private static let journalByteCount = 64 << 10

  init(_ engine: EngineKind, durability: Durability, seed: UInt64, at now: ClockReading) throws {
    (self.engine, self.durability) = (engine, durability)
    disk = SimulatedDisk(seed: seed)
    disk.placeFolder("/files")
    log = SimulatedLog()
    store = try Self.open(engine, durability, disk, log, at: now)
  }

  deinit { store.close() }

  private static func open(
    _ engine: EngineKind, _ durability: Durability, _ disk: SimulatedDisk, _ log: SimulatedLog, at now: ClockReading
  ) throws -> Store {
    let name = try StoreName("conforming")
    var map = EntryMap()
    switch engine {
    case .log:
      let (engine, _) = try LogEngine.open(
        "/files", files: disk, configuration: configuration, now: now.monotonic, unixNow: now.wall, into: &map)
      return Store(name: name, engine: .log, map: map, writingTo: engine, durability: durability)
    case .directory:
      let (engine, _) = try DirectoryEngine.open(
        "/files", on: disk, journalByteCount: journalByteCount, settlesInBackground: true, into: &map, at: now)
      return Store(name: name, engine: .directory, map: map, writingTo: engine, durability: durability)
    case .replicated:
      // Each time, the node is another one.
      let membership = Membership("\(UInt64.random(in: 0 ... .max))", address: "", lease: 60_000, in: log)
      try membership.join()
      guard let life = membership.life else { preconditionFailure("the node has joined") }
      let opening = EngineOpening(
        name: name, specification: StoreSpecification(.replicated, durability: durability), folder: nil,
        fileSystem: disk, now: now)
      let opener = StoreOpener(
        log: log, membership: membership, life: life, keepingValuesIn: ValueCache(byteCount: 1 << 20),
        upkeepOn: DispatchQueue(label: "upkeep"))
      let engine = try opener.open(opening, into: &map) { _, _ in }
      return Store(name: name, engine: .replicated, map: map, writingTo: engine, durability: durability)
    default: return Store(name: name, engine: engine)
    }
  }

  /// Closes the store in order and reopens it. A store in memory stays as it is.
  func reopen(at now: ClockReading) throws {
    guard engine.isDurable else { return }
    store.close()
    store = try Self.open(engine, durability, disk, log, at: now)
  }

  /// Cuts the power when everything written is durable, whatever else is under way, and reopens the store.
  func crash(at now: ClockReading) throws {
    guard durability == .always, let commitWriter = store.commitWriter else { return try reopen(at: now) }
    let revision = store.access { $0.revisions.last }
    while !commitWriter.isDurable(revision), commitWriter.failure == nil {
      commitWriter.wake()
      usleep(100)
    }
    if let failure = commitWriter.failure { throw failure }
    disk.injectedFailure = .init(number: 1, errno: EIO, isPersistent: true)
    store.close()
    disk.crash()
    store = try Self.open(engine, durability, disk, log, at: now)
  }

  /// Runs a write, and repeats it when the commit writer has reserved space for it. On a busy machine, that can take
  /// long, but not as long as the commit writer's sleep of a minute.
  func write<Result>(_ body: (inout EntryMap) throws(StorageError) -> sending Result) throws(StorageError) -> Result {
    var waits = 0
    while true {
      let spaceChangeCount = store.commitWriter?.spaceChangeCount ?? 0
      do throws(StorageError) {
        let result = try store.access(body)
        store.commitWriter?.wake()
        return result
      } catch .diskTooSlow {
        guard let commitWriter = store.commitWriter else { throw .diskTooSlow }
        waits = commitWriter.waitForSpace(since: spaceChangeCount) ? 0 : waits + 1
        if waits == 4 { throw .diskTooSlow }
      }
    }
  }

  var figures: [String: UInt64] {
    Dictionary(uniqueKeysWithValues: (store.commitWriter?.figures ?? []).map { ($0.name, $0.value) })
  }
}
