import Platform
import SimulatedDisk
import Testing

@testable import Storage

struct LogCompactionTests {
  private func fill(_ log: OpenLog, segments: Int) throws {
    while log.engine.sealed.count < segments {
      let revision = log.revision
      try log.commit([
        .put(key: "filler \(revision)", value: [UInt8](repeating: 1, count: 400), kind: .single, expiry: 0)
      ])
    }
  }

  /// Rewrites those segments, whatever they are like.
  private func compact(_ run: Range<Int>, of log: OpenLog) throws {
    _ = try log.engine.begin(run, log.store, revision: log.revision)
    while log.engine.compaction != nil { _ = try log.performMaintenance() }
  }

  /// Two writes of one key in two segments, of which the second ends the entry.
  private func log(_ disk: SimulatedDisk, ending work: Work) throws -> OpenLog {
    let log = try OpenLog(disk)
    try log.commit([.put(key: "key", value: [1], kind: .single, expiry: 0)])
    try fill(log, segments: 1)
    try log.commit([work])
    try fill(log, segments: 2)
    return log
  }

  static let endings: [Work] = [
    .delete(key: "key"), .deleteAll, .put(key: "key", value: [2], kind: .single, expiry: 50),
  ]

  @Test(arguments: endings) func `what ended an entry is kept as long as the entry can come back`(_ ending: Work) throws
  {
    let disk = SimulatedDisk(seed: 3)
    let log = try log(disk, ending: ending)
    log.store.access { _ = $0.expire(now: 100) }
    let entries = try log.entries(now: 100)
    #expect(entries["key"] == nil)
    try compact(1..<2, of: log)
    #expect(log.engine.sealed[1].tombstoneBytes! > 0)
    disk.crash()
    let reopened = try OpenLog(disk, now: 100)
    #expect(try reopened.entries(now: 100) == entries)
    // Once the older segment was swept there is nothing left that could.
    _ = try compact(0..<1, of: reopened)
    try compact(1..<2, of: reopened)
    #expect(reopened.engine.sealed[1].tombstoneBytes == 0)
    disk.crash()
    let again = try OpenLog(disk, now: 100)
    #expect(try again.entries(now: 100) == entries)
    #expect(again.revision == log.revision)
  }

  @Test func `segments are merged, and the revision outlives what had it`() throws {
    let disk = SimulatedDisk(seed: 4)
    let log = try log(disk, ending: .deleteAll)
    try log.commit([.deleteAll])
    let revision = log.revision
    try log.engine.makeRoom()
    try log.engine.advance(toHold: 0)
    try compact(0..<log.engine.sealed.count, of: log)
    #expect(log.engine.sealed.count == 1)
    #expect(log.engine.sealed[0].byteCount == SegmentHeader.byteCount + SegmentTrailer.byteCount)
    disk.crash()
    let reopened = try OpenLog(disk)
    #expect(try reopened.entries().isEmpty)
    #expect(reopened.revision == revision)
  }

  @Test func `a log that is overwritten again and again stays small, and little is written twice`() throws {
    let disk = SimulatedDisk(seed: 5)
    let log = try OpenLog(disk)
    var (random, put, largest) = (SeededGenerator(seed: 8), 0, 0)
    for step in 0..<1_500 {
      let value = [UInt8](repeating: UInt8(step & 255), count: 100)
      try log.commit([.put(key: "key \(random.next() % 200)", value: value, kind: .single, expiry: 0)])
      put += 132
      for _ in 0..<4 where try !log.performMaintenance() { break }
      largest = max(largest, log.engine.byteCount)
    }
    let figures = Dictionary(uniqueKeysWithValues: log.engine.figures.map { ($0.name, Int($0.value)) })
    #expect(largest < 2 * 200 * 132 + 4 * 8_192)
    #expect(figures["log_written_bytes_total"]! < put * 5 / 2)
    #expect(figures["log_compactions_total"]! > 5)
    let entries = try log.entries()
    disk.crash()
    #expect(try OpenLog(disk).entries() == entries)
  }

  @Test func `removals don't pile up`() throws {
    let disk = SimulatedDisk(seed: 6)
    let log = try OpenLog(disk)
    for number in 0..<1_500 {
      let key = "key number \(number)"
      try log.commit([.put(key: key, value: [UInt8](repeating: 1, count: 30), kind: .single, expiry: 0)])
      if number >= 20 { try log.commit([.delete(key: "key number \(number - 20)")]) }
      for _ in 0..<4 where try !log.performMaintenance() { break }
    }
    #expect(log.engine.byteCount < 6 * 8_192, "\(log.engine.figures)")
    let entries = try log.entries()
    disk.crash()
    #expect(try OpenLog(disk).entries() == entries)
  }
}
