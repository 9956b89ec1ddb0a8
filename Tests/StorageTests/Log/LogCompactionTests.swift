import Platform
import TestSupport
import Testing

@testable import Storage

struct LogCompactionTests {
  private func fill(_ log: TestLog, segments: Int) throws {
    while log.engine.writer.sealed.count < segments {
      let revision = log.revision
      try log.commit([
        .put(key: "filler \(revision)", value: [UInt8](repeating: 1, count: 400), kind: .single, expiry: 0)
      ])
    }
  }

  /// Compacts the given segments, whatever they contain.
  private func compact(_ run: Range<Int>, of log: TestLog) throws {
    try log.engine.compact(run, revision: log.revision, log.store)
    while log.engine.isCompacting { _ = try log.performMaintenance() }
  }

  /// Returns a log with two writes of one key in two segments, the second of which ends the entry.
  private func log(_ disk: SimulatedDisk, ending operation: WriteOperation) throws -> TestLog {
    let log = try TestLog(disk)
    try log.commit([.put(key: "key", value: [1], kind: .single, expiry: 0)])
    try fill(log, segments: 1)
    try log.commit([operation])
    try fill(log, segments: 2)
    return log
  }

  static let endings: [WriteOperation] = [
    .delete(key: "key"), .deleteAll, .put(key: "key", value: [2], kind: .single, expiry: 50),
  ]

  @Test(arguments: endings) func `a tombstone is kept as long as the entry could come back`(_ ending: WriteOperation)
    throws
  {
    let disk = SimulatedDisk(seed: 3)
    let log = try log(disk, ending: ending)
    log.store.access { _ = $0.expire(now: 100) }
    let entries = try log.entries(now: 100)
    #expect(entries["key"] == nil)
    try compact(1..<2, of: log)
    #expect(log.engine.writer.sealed[1].tombstoneByteCount! > 0)
    disk.crash()
    let reopened = try TestLog(disk, now: 100)
    #expect(try reopened.entries(now: 100) == entries)
    // Once the older segment is swept, nothing can come back.
    _ = try compact(0..<1, of: reopened)
    try compact(1..<2, of: reopened)
    #expect(reopened.engine.writer.sealed[1].tombstoneByteCount == 0)
    disk.crash()
    let again = try TestLog(disk, now: 100)
    #expect(try again.entries(now: 100) == entries)
    #expect(again.revision == log.revision)
  }

  @Test func `merging segments keeps the last revision even if its record is dropped`() throws {
    let disk = SimulatedDisk(seed: 4)
    let log = try log(disk, ending: .deleteAll)
    try log.commit([.deleteAll])
    let revision = log.revision
    try log.engine.startSegment()
    try compact(0..<log.engine.writer.sealed.count, of: log)
    #expect(log.engine.writer.sealed.count == 1)
    #expect(log.engine.writer.sealed[0].byteCount == SegmentHeader.byteCount + SegmentTrailer.byteCount)
    disk.crash()
    let reopened = try TestLog(disk)
    #expect(try reopened.entries().isEmpty)
    #expect(reopened.revision == revision)
  }

  @Test func `a compaction doesn't replace the segments of a dropped store, which may come back`() throws {
    let disk = SimulatedDisk(seed: 4)
    let log = try log(disk, ending: .delete(key: "key"))
    let (entries, revision) = (try log.entries(), log.revision)
    log.store.access { $0.drop() }
    try log.engine.compact(0..<2, revision: revision, log.store)
    for _ in 0..<100 { _ = try log.performMaintenance() }
    #expect(log.engine.isCompacting && log.engine.writer.sealed.count == 2)
    disk.crash()
    let reopened = try TestLog(disk)
    #expect(try reopened.entries() == entries && reopened.revision == revision)
  }

  @Test func `a log with constant overwrites stays small and rewrites little`() throws {
    let disk = SimulatedDisk(seed: 5)
    let log = try TestLog(disk)
    var (random, put, largest) = (SeededGenerator(seed: 8), 0, 0)
    for step in 0..<1_500 {
      let value = [UInt8](repeating: UInt8(step & 255), count: 100)
      try log.commit([.put(key: "key \(random.next() % 200)", value: value, kind: .single, expiry: 0)])
      put += 132
      for _ in 0..<4 where try !log.performMaintenance() { break }
      largest = max(largest, log.engine.writer.byteCount)
    }
    let figures = Dictionary(uniqueKeysWithValues: log.engine.figures.map { ($0.name, Int($0.value)) })
    #expect(largest < 2 * 200 * 132 + 4 * 8_192)
    #expect(figures["log_written_bytes_total"]! < put * 5 / 2)
    #expect(figures["log_compactions_total"]! > 5)
    let entries = try log.entries()
    disk.crash()
    #expect(try TestLog(disk).entries() == entries)
  }

  @Test func `tombstones don't accumulate`() throws {
    let disk = SimulatedDisk(seed: 6)
    let log = try TestLog(disk)
    for number in 0..<1_500 {
      let key = "key number \(number)"
      try log.commit([.put(key: key, value: [UInt8](repeating: 1, count: 30), kind: .single, expiry: 0)])
      if number >= 20 { try log.commit([.delete(key: "key number \(number - 20)")]) }
      for _ in 0..<4 where try !log.performMaintenance() { break }
    }
    #expect(log.engine.writer.byteCount < 6 * 8_192, "\(log.engine.figures)")
    let entries = try log.entries()
    disk.crash()
    #expect(try TestLog(disk).entries() == entries)
  }
}
