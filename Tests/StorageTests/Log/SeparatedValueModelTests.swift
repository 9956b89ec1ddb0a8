import Platform
import TestSupport
import Testing

@testable import Storage

/// A log with values of all sizes compared with a dictionary: values in files and in memory behave the same.
struct SeparatedValueModelTests {
  @Test func `values on both sides of the threshold stay the same, whatever moves them`() throws {
    // What the runs encountered: values in files, compactions, and snapshots read after the entries had changed.
    var (stored, compactions, oldSnapshots) = (0, UInt64(0), 0)
    for seed in SeededGenerator.seeds(3) {
      do {
        var run = try SeparatedValueRun(seed: seed)
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

private struct SeparatedValueRun {
  private let disk: SimulatedDisk
  private var log: TestLog
  private var random: SeededGenerator
  private var entries: [String: ModelEntry] = [:]
  private var snapshots: [(snapshot: Snapshot, entries: [String: ModelEntry])] = []
  private(set) var stored = 0
  private(set) var compactions: UInt64 = 0
  private(set) var oldSnapshots = 0

  private static let configuration = {
    var configuration = LogConfiguration()
    (configuration.minSegmentSize, configuration.maxSegmentSize, configuration.reserveThreshold) = (
      64 << 10, 512 << 10, 64 << 10
    )
    return configuration
  }()

  init(seed: UInt64) throws {
    random = SeededGenerator(seed: seed)
    disk = SimulatedDisk(seed: seed)
    log = try TestLog(disk, configuration: Self.configuration)
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
    var operations: [WriteOperation] = []
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      let key = "key \(Int.random(in: 0..<12, using: &random))"
      let operation: WriteOperation
      switch Int.random(in: 0..<40, using: &random) {
      case 0: operation = .deleteAll
      case 1..<6: operation = .delete(key: key)
      default:
        let count = [0, 100, 5_000, 32_767, 32_767, 32_768, 32_768, 40_000, 100_000, 1 << 20].randomElement(
          using: &random)!
        let value = [UInt8](repeating: .random(in: 0...255, using: &random), count: count)
        operation =
          Bool.random(using: &random)
          ? .put(key: key, value: value, kind: .single, expiry: 0)
          : .put(key: key, value: value.asOnlyElement, kind: .list, expiry: 0)
      }
      operations.append(operation)
      operation.apply(to: &entries, revision: log.revision + UInt64(operations.count))
    }
    try log.commit(operations)
  }

  private mutating func beginCompaction() throws {
    let engine = log.engine
    guard !engine.isCompacting, let first = engine.writer.sealed.indices.randomElement(using: &random) else { return }
    let run = first..<min(engine.writer.sealed.count, first + 3)
    try engine.compact(run, revision: log.revision, log.store)
  }

  mutating func checkAll() throws {
    let found = try log.entries()
    guard found == entries else { throw ModelViolation(description: "at revision \(log.revision) the entries differ") }
    for snapshot in snapshots { try check(snapshot) }
    let (statistics, sum) = (log.store.access { $0.statistics }, entries.values.reduce(0) { $0 + $1.value.count })
    guard statistics.contents.valueBytes == sum else {
      throw ModelViolation(description: "\(statistics.contents.valueBytes) bytes of values, not \(sum)")
    }
    guard statistics.memoryBytes < 4 << 20 else {
      throw ModelViolation(description: "values stay in memory: \(statistics)")
    }
    log.store.access { $0.validateOrder() }
  }

  private mutating func check(_ snapshot: (snapshot: Snapshot, entries: [String: ModelEntry])) throws {
    let found = try log.store.access { map in try map.modelEntries(in: snapshot.snapshot) }
    guard found == snapshot.entries else {
      throw ModelViolation(description: "the snapshot of revision \(snapshot.snapshot.revision) differs")
    }
    if found != entries { oldSnapshots += 1 }
  }

  private mutating func reopen() throws {
    try checkAll()
    snapshots = []
    if Bool.random(using: &random) { try log.engine.close() }
    disk.kill()
    log = try TestLog(disk, configuration: Self.configuration)
    try checkAll()
  }
}
