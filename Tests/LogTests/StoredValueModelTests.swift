import Platform
import SimulatedDisk
import Testing

@testable import Storage

/// A log with values of all sizes against a dictionary: what lies in files and what is in memory can't be told apart.
struct StoredValueModelTests {
  @Test func `values on either side of the threshold are what they were, whatever moves them`() throws {
    // What the runs have met: values in files, segments rewritten, and snapshots read after the entries had changed.
    var (stored, compactions, oldSnapshots) = (0, UInt64(0), 0)
    for seed in SeededGenerator.seeds(3) {
      do {
        var run = try StoredValueRun(seed: seed)
        for _ in 0..<60 { try run.step() }
        try run.checkAll()
        stored += run.stored
        compactions += run.compactions
        oldSnapshots += run.oldSnapshots
      } catch {
        Issue.record("LARDER_SEED=\(seed): \(error)")
        return
      }
    }
    #expect(stored > 0 && compactions > 0 && oldSnapshots > 0)
  }
}

private struct StoredValueRun {
  let disk: SimulatedDisk
  var log: OpenLog
  var random: SeededGenerator
  var entries: [String: Plain] = [:]
  var snapshots: [(snapshot: Snapshot, entries: [String: Plain])] = []
  var stored = 0
  var compactions: UInt64 = 0
  var oldSnapshots = 0

  static let sizes = {
    var sizes = LogSizes()
    (sizes.minSegmentSize, sizes.maxSegmentSize, sizes.reserveFrom) = (64 << 10, 512 << 10, 64 << 10)
    return sizes
  }()

  init(seed: UInt64) throws {
    random = SeededGenerator(seed: seed)
    disk = SimulatedDisk(seed: seed)
    log = try OpenLog(disk, sizes: Self.sizes)
  }

  mutating func step() throws {
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<9: try commit()
    case 9..<12: try beginCompaction()
    case 12..<16: for _ in 0..<Int.random(in: 1...12, using: &random) where try !log.performMaintenance() { break }
    case 16:
      snapshots.append((log.store.access { $0.snapshot(now: 0) }, entries))
    case 17: try checkAll()
    case 18:
      guard let index = snapshots.indices.randomElement(using: &random) else { return }
      try check(snapshots[index])
      let ended = snapshots.remove(at: index).snapshot
      log.store.access { $0.end(ended) }
    default: try reopen()
    }
    compactions = max(compactions, log.engine.figures.first { $0.name == "log_compactions_total" }!.value)
    stored = max(stored, log.store.access { $0.statistics.valuesOnDisk })
  }

  private mutating func commit() throws {
    var works: [Work] = []
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      let key = "key \(Int.random(in: 0..<12, using: &random))"
      let work: Work
      switch Int.random(in: 0..<40, using: &random) {
      case 0: work = .deleteAll
      case 1..<6: work = .delete(key: key)
      default:
        let count = [0, 100, 5_000, 32_767, 32_767, 32_768, 32_768, 40_000, 100_000, 1 << 20].randomElement(
          using: &random)!
        let value = [UInt8](repeating: .random(in: 0...255, using: &random), count: count)
        work = .put(key: key, value: value, kind: Bool.random(using: &random) ? .single : .list, expiry: 0)
      }
      works.append(work)
      work.apply(to: &entries, revision: log.revision + UInt64(works.count))
    }
    try log.commit(works)
  }

  private mutating func beginCompaction() throws {
    let engine = log.engine
    guard engine.compaction == nil, let first = engine.sealed.indices.randomElement(using: &random) else { return }
    engine.survey = nil
    _ = try engine.begin(first..<min(engine.sealed.count, first + 3), log.store, revision: log.revision)
  }

  mutating func checkAll() throws {
    let found = try log.entries()
    guard found == entries else { throw Wrong(description: "at revision \(log.revision) the entries differ") }
    for snapshot in snapshots { try check(snapshot) }
    let (statistics, sum) = (log.store.access { $0.statistics }, entries.values.reduce(0) { $0 + $1.value.count })
    guard statistics.valueBytes == sum else {
      throw Wrong(description: "\(statistics.valueBytes) bytes of values, not \(sum)")
    }
    guard statistics.memoryBytes < 4 << 20 else { throw Wrong(description: "values stay in memory: \(statistics)") }
    log.store.access { $0.validateOrder() }
  }

  private mutating func check(_ snapshot: (snapshot: Snapshot, entries: [String: Plain])) throws {
    let found = try log.store.access { map in try map.plain(in: snapshot.snapshot) }
    guard found == snapshot.entries else {
      throw Wrong(description: "the snapshot of revision \(snapshot.snapshot.revision) differs")
    }
    if found != entries { oldSnapshots += 1 }
  }

  private mutating func reopen() throws {
    try checkAll()
    snapshots = []
    if Bool.random(using: &random) { try log.engine.close() }
    disk.kill()
    log = try OpenLog(disk, sizes: Self.sizes)
    try checkAll()
  }
}
