import Glibc
import Platform
import SimulatedDisk

@testable import Storage

/// A store of some engine with a journal at work, on a disk that can crash.
final class Subject {
  let engine: EngineKind
  private let durability: Durability
  private let disk: SimulatedDisk
  private(set) var store: Store

  /// Segments and a journal so small that compaction and settling go on all the time.
  private static let sizes = {
    var sizes = LogSizes()
    (sizes.minSegmentSize, sizes.maxSegmentSize, sizes.reserveFrom) = (16 << 10, 64 << 10, 32 << 10)
    return sizes
  }()
  private static let journalByteCount = 64 << 10

  init(_ engine: EngineKind, durability: Durability, seed: UInt64, at moment: ClockReading) throws {
    (self.engine, self.durability) = (engine, durability)
    disk = SimulatedDisk(seed: seed)
    disk.placeFolder("/files")
    store = try Self.open(engine, durability, disk, at: moment)
  }

  deinit { store.close() }

  private static func open(
    _ engine: EngineKind, _ durability: Durability, _ disk: SimulatedDisk, at moment: ClockReading
  ) throws -> Store {
    let name = try StoreName("conforming")
    var map = EntryMap()
    switch engine {
    case .memory: return Store(name: name, engine: engine)
    case .log:
      let (engine, _) = try LogEngine.open(
        "/files", files: disk, sizes: sizes, now: moment.monotonic, unixNow: moment.wall, into: &map)
      return Store(name: name, engine: .log, map: map, writingTo: engine, durability: durability)
    case .directory:
      let (engine, _) = try DirectoryEngine.open(
        "/files", on: disk, journalByteCount: journalByteCount, into: &map, at: moment)
      return Store(name: name, engine: .directory, map: map, writingTo: engine, durability: durability)
    }
  }

  /// Closes the store in order and opens it again. A store in memory stays as it is.
  func reopen(at moment: ClockReading) throws {
    guard engine.isDurable else { return }
    store.close()
    store = try Self.open(engine, durability, disk, at: moment)
  }

  /// Has the power fail when all that was written is durable, whatever else is under way then, and opens the store again.
  func crash(at moment: ClockReading) throws {
    guard durability == .always, let commitWriter = store.commitWriter else { return try reopen(at: moment) }
    let revision = store.access { $0.revision }
    while !commitWriter.isDurable(revision), commitWriter.failure == nil {
      commitWriter.wake()
      usleep(100)
    }
    if let failure = commitWriter.failure { throw failure }
    disk.fault = .init(number: 1, errno: EIO, lasts: true)
    store.close()
    disk.crash()
    store = try Self.open(engine, durability, disk, at: moment)
  }

  /// Runs a write, again when the journal has made room for it.
  func write<Result>(_ body: (inout EntryMap) throws(StorageError) -> sending Result) throws(StorageError) -> Result {
    while true {
      do throws(StorageError) {
        let result = try store.access(body)
        store.commitWriter?.wake()
        return result
      } catch .diskTooSlow {
        guard let commitWriter = store.commitWriter, commitWriter.waitForRoom() else { throw .diskTooSlow }
      }
    }
  }

  var figures: [String: UInt64] {
    Dictionary(uniqueKeysWithValues: (store.commitWriter?.figures ?? []).map { ($0.name, $0.value) })
  }
}
