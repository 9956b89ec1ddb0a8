import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import Storage

/// What a durable store knows of its own history.
@Suite struct StoreHistoryTests {
  private static let history = StoreHistory(
    incarnation: 0x0123_4567_89AB_CDEF, state: .openOther, revision: 1_000_000, commitRevision: 17)

  // MARK: What is recorded

  @Test func `a record of a store's history has the documented format`() {
    let hex =
      "4c4152445248495301000000cccccccc" + "efcdab8967452301" + "40420f0000000000" + "1100000000000000"
      + "0200000000000000"
    var bytes = Self.history.bytes
    #expect(StoreHistory(bytes) == Self.history)
    #expect(bytes.integer(at: 12, as: UInt32.self) == bytes.checksum(excluding: 12..<16))
    bytes.replace(at: 12, littleEndian: 0xCCCC_CCCC as UInt32)
    #expect(bytes.map { String(format: "%02x", $0) }.joined() == hex)
  }

  @Test func `a history record with a flipped bit or truncated is unknown`() {
    let bytes = Self.history.bytes
    for bit in 0..<bytes.count * 8 {
      var flipped = bytes
      flipped[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(StoreHistory(flipped) == nil, "bit \(bit)")
    }
    for count in 0..<bytes.count { #expect(StoreHistory(Array(bytes[..<count])) == nil, "\(count) bytes") }
  }

  @Test func `a record with impossible fields is unknown, even with the right checksum`() {
    for (incarnation, revision, commitRevision) in [
      (0, 1, 1), (1 << 63, 1, 1), (1, 1 << 62 - 1, 1), (1, 1, 2),
    ] as [(UInt64, UInt64, UInt64)] {
      let history = StoreHistory(
        incarnation: incarnation, state: .closed, revision: revision, commitRevision: commitRevision)
      #expect(StoreHistory(history.bytes) == nil, "\(history)")
    }
  }

  // MARK: What continues

  /// Returns the history of a store that is opened after it was in that state at revision 10.
  private func opened(_ state: StoreHistory.State, finding commitRevision: UInt64, now: UInt64 = 0) -> StoreHistory {
    let recorded = StoreHistory(incarnation: 5, state: state, revision: 10, commitRevision: 10)
    return .opened(after: recorded, commitRevision: commitRevision, .always, now: now)
  }

  @Test func `a history continues if the store has everything that its clients may know`() {
    #expect(opened(.closed, finding: 10).incarnation == 5)
    #expect(opened(.openAlways, finding: 10).incarnation == 5)
    let later = opened(.openAlways, finding: 12)
    #expect(later == StoreHistory(incarnation: 5, state: .openAlways, revision: 12, commitRevision: 12))
    for other in [
      opened(.closed, finding: 9), opened(.closed, finding: 11), opened(.openAlways, finding: 9),
      opened(.openOther, finding: 10), opened(.openOther, finding: 12),
    ] {
      #expect(other.incarnation != 5 && other.revision >= 10 + StoreHistory.skippedCount)
    }
  }

  @Test func `revisions that were skipped before the last commit are not used either`() {
    let recorded = StoreHistory(incarnation: 5, state: .closed, revision: 9_000, commitRevision: 10)
    let opened = StoreHistory.opened(after: recorded, commitRevision: 10, .none, now: 0)
    #expect(opened == StoreHistory(incarnation: 5, state: .openOther, revision: 9_000, commitRevision: 10))
    let after = StoreHistory.opened(after: opened, commitRevision: 10, .none, now: 0)
    #expect(after.incarnation != 5 && after.revision == 9_000 + StoreHistory.skippedCount)
    #expect(after.commitRevision == 10)
  }

  @Test func `an unknown history continues above the time in microseconds, within the range of revisions`() {
    func revision(_ commitRevision: UInt64, _ now: UInt64) -> UInt64 {
      StoreHistory.opened(after: nil, commitRevision: commitRevision, .none, now: now).revision
    }
    let now: UInt64 = 1_800_000_000_000
    #expect(revision(17, now) == now * 1_000)
    #expect(revision(now * 1_000, now) == now * 1_000 + StoreHistory.skippedCount)
    #expect(revision(17, .max) == 17 + StoreHistory.skippedCount)
    #expect(revision(1 << 61 - 5, now) == 1 << 61)
    #expect(revision(1 << 62 - 2, now) == 1 << 62 - 2)
  }

  // MARK: Stores

  private let folder: TemporaryFolder
  private let name: StoreName

  init() throws { (folder, name) = (try TemporaryFolder(), try StoreName("s")) }

  /// Returns a disk, and a path on it that doesn't exist yet.
  private func disk(_ name: String, seed: UInt64) throws -> (disk: SimulatedDisk, place: String) {
    // The lock is a local file, whatever the disk.
    let place = folder.file(name)
    try LocalFileSystem().createFolder(place)
    let disk = SimulatedDisk(seed: seed)
    disk.placeFolder(folder.path)
    return (disk, place)
  }

  /// Opens a data directory. A child process that another test starts may hold its lock for a moment.
  private func open(_ place: String, _ disk: any FileSystem = LocalFileSystem()) throws -> DataDirectory {
    for _ in 0..<1_000 {
      do throws(DataDirectoryError) { return try DataDirectory.open(place, on: disk) } catch {
        guard case .inUse = error else { throw error }
        usleep(5_000)
      }
    }
    return try DataDirectory.open(place, on: disk)
  }

  private static let key: [UInt8] = [107]

  @Test(
    arguments: [EngineKind.log, .directory], [Durability.always, .none, .interval(.milliseconds(20))])
  func `revisions that clients may have seen are never reused within an incarnation`(
    engine: EngineKind, durability: Durability
  ) throws {
    for seed in SeededGenerator.seeds(3) {
      var random = SeededGenerator(seed: seed)
      let (disk, place) = try disk("\(engine)-\(durability)-\(seed)", seed: seed)
      let description = StoreDescription(name: name, engine: engine, durability: durability)
      do { try open(place, disk).create(description) }
      // The values that clients may know, by their revisions; the last of these revisions, and the last of this history.
      var known: [UInt64: [UInt8]] = [:]
      var (last, lastInHistory): (UInt64, UInt64) = (0, 0)
      var previous: (incarnation: UInt64, continues: Bool)?
      for round in 0..<8 {
        let comment: Comment = "seed \(seed), round \(round)"
        let directory = try open(place, disk)
        let store = try Store.open(description, in: directory).store
        let (revision, entry) = store.access { ($0.revisions.last, $0.copy(of: Self.key)?.entry) }
        #expect(revision >= last, comment)
        if let entry, let value = known[entry.revision] { #expect(entry.value == value, comment) }
        if let previous {
          #expect((store.incarnation == previous.incarnation) == previous.continues, comment)
          if !previous.continues { lastInHistory = 0 }
          #expect(entry?.revision ?? 0 >= lastInHistory, comment)
        }

        let commitWriter = try #require(store.commitWriter)
        for number in 0..<Int.random(in: 0..<20, using: &random) {
          let value = "\(round) \(number)".bytes
          try store.putWhenThereIsSpace(Self.key, value)
          last = store.access { $0.revisions.last }
          lastInHistory = last
          if durability == .always { while !commitWriter.isDurable(last) { usleep(100) } }
          #expect(known.updateValue(value, forKey: last) == nil, comment)
        }
        let isClosed = Int.random(in: 0..<3, using: &random) == 0
        if !isClosed {
          if Bool.random(using: &random) { disk.kill() }
          disk.injectedFailure = .init(number: 1, errno: EIO, isPersistent: true)
        }
        store.close()
        directory.close()
        if !isClosed, Bool.random(using: &random) { disk.crash(reordersNames: true) }
        disk.injectedFailure = nil
        previous = (store.incarnation, isClosed || durability == .always)
      }
    }
  }

  @Test(arguments: [EngineKind.log, .directory]) func `a store without a record of its history begins another one`(
    engine: EngineKind
  ) throws {
    let directory = try DataDirectory.open(folder.file("data"))
    let description = StoreDescription(name: name, engine: engine)
    try directory.create(description)
    let file = folder.file("data/stores/s/history")
    var incarnations: Set<UInt64> = []
    var last: UInt64 = 0
    for damage in [nil, [], [UInt8](repeating: 7, count: 48)] as [[UInt8]?] {
      let store = try Store.open(description, in: directory).store
      try store.putWhenThereIsSpace(Self.key, [1])
      let revision = store.access { $0.revisions.last }
      #expect(revision > last)
      (last, _) = (revision, incarnations.insert(store.incarnation))
      store.close()
      try LocalFileSystem().remove(file)
      if let damage { try folder.put("data/stores/s/history", damage) }
    }
    #expect(incarnations.count == 3 && last > 1 << 32)
    // A new record has taken the place of the damaged one.
    let stores = try (0..<2).map { _ in
      let store = try Store.open(description, in: directory).store
      store.close()
      return store
    }
    #expect(stores[0].incarnation == stores[1].incarnation)
  }

  @Test func `a full disk without space for the record doesn't keep a store from being opened`() throws {
    let files = ObservedFiles()
    let directory = try DataDirectory.open(folder.file("data"), on: files)
    let description = StoreDescription(name: name, engine: .log)
    try directory.create(description)
    try Store.open(description, in: directory).store.close()
    try LocalFileSystem().remove(folder.file("data/stores/s/history"))
    files.setFull(true)
    let first = try Store.open(description, in: directory).store
    first.close()
    let second = try Store.open(description, in: directory).store
    second.close()
    #expect(first.incarnation != second.incarnation)
    files.setFull(false)
    let third = try Store.open(description, in: directory).store
    third.close()
    let fourth = try Store.open(description, in: directory).store
    fourth.close()
    #expect(third.incarnation == fourth.incarnation)
  }

  @Test func `a store that was created again has another incarnation, and its revisions begin at 1`() throws {
    let directory = try DataDirectory.open(folder.file("data"))
    let catalog = StoreCatalog(data: directory)
    for specification in ["memory", "log", "directory"] {
      let name = try StoreName(specification)
      let first = try catalog.create(name, StoreSpecification(specification))
      try catalog.drop(name)
      let second = try catalog.create(name, StoreSpecification(specification))
      #expect(first.incarnation != second.incarnation && second.access { $0.revisions.last } == 0)
    }
    catalog.close()
  }

  /// Compaction waits for commits, and must not wait for revisions that were skipped.
  @Test func `a log is compacted directly after revisions were skipped`() throws {
    let directory = try DataDirectory.open(folder.file("data"))
    let description = StoreDescription(name: name, engine: .log, durability: .none)
    try directory.create(description)
    // Each opening leaves a small segment behind, and eight of them are merged.
    for number: UInt8 in 0..<8 {
      let store = try Store.open(description, in: directory).store
      try store.putWhenThereIsSpace([number], [1])
      store.close()
      try LocalFileSystem().remove(folder.file("data/stores/s/history"))
    }
    let store = try Store.open(description, in: directory).store
    let commitWriter = try #require(store.commitWriter)
    var compactions: UInt64? = 0
    for _ in 0..<1_000 where compactions == 0 {
      commitWriter.wake()
      usleep(10_000)
      compactions = commitWriter.figures.first { $0.name == "log_compactions_total" }?.value
    }
    #expect(compactions ?? 0 > 0)
    store.close()
    let reopened = try Store.open(description, in: directory).store
    #expect(reopened.access { $0.order.count } == 8)
    reopened.close()
  }
}
