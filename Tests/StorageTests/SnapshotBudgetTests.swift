import TestSupport
import Testing

@testable import Storage

struct SnapshotBudgetTests {
  private static let value = [UInt8](repeating: 1, count: 1_000)

  /// Writes 100 keys, which takes about 100 KB.
  private func rewrite(_ map: inout EntryMap) throws {
    for number in 0..<100 { try map.write("key \(100 + number)".bytes, Self.value) }
  }

  @Test func `beyond the budget the oldest snapshots of the map that is written end`() throws {
    let budgets = StoreBudgets(snapshots: SnapshotBudget(limit: 250_000))
    var map = EntryMap(budgets: budgets)
    try rewrite(&map)
    var snapshots: [Snapshot] = []
    for _ in 0..<5 {
      snapshots.append(map.snapshot(now: 0))
      try rewrite(&map)
      let kept = map.memory.snapshots
      #expect(kept < 270_000)
    }
    for snapshot in snapshots[..<3] {
      #expect(throws: StorageError.snapshotEnded) { try map.check(snapshot) }
    }
    for snapshot in snapshots[3...] {
      let count = try map.copies(0..<100, in: snapshot).count
      #expect(count == 100)
    }
    let ended = map.statistics.endedSnapshots
    #expect(ended == 3)
    for snapshot in snapshots { map.end(snapshot) }
    let kept = map.memory.snapshots
    #expect(kept == 0)
    map.validate()
  }

  @Test func `maps share a budget, and a dropped map gives its share back`() throws {
    let budgets = StoreBudgets(snapshots: SnapshotBudget(limit: 250_000))
    var written = EntryMap(budgets: budgets)
    var other = EntryMap(budgets: budgets)
    for _ in 0..<2 {
      try rewrite(&other)
      _ = other.snapshot(now: 0)
      try rewrite(&written)
      let snapshot = written.snapshot(now: 0)
      try rewrite(&other)
      try rewrite(&other)
      try map(&written, keeps: snapshot)
      other.drop()
      other = EntryMap(budgets: budgets)
      written.end(snapshot)
    }
    try rewrite(&other)
    let kept = other.snapshot(now: 0)
    try rewrite(&other)
    // What the other map keeps counts, but its snapshots end only when it is written.
    for _ in 0..<3 {
      _ = written.snapshot(now: 0)
      try rewrite(&written)
    }
    try other.check(kept)
    let ended = (written.statistics.endedSnapshots, other.statistics.endedSnapshots)
    #expect(ended.0 > 0 && ended.1 == 0)
  }

  private func map(_ map: inout EntryMap, keeps snapshot: Snapshot) throws {
    try rewrite(&map)
    try map.check(snapshot)
  }

  @Test func `beyond the budget, pinned snapshots stay, and others end instead`() throws {
    var map = EntryMap(budgets: StoreBudgets(snapshots: SnapshotBudget(limit: 50_000)))
    try rewrite(&map)
    let (pinned, brief) = (map.snapshot(now: 0, isPinned: true), map.snapshot(now: 0))
    try rewrite(&map)
    try rewrite(&map)
    #expect(throws: StorageError.snapshotEnded) { try map.check(brief) }
    let count = try map.copies(0..<100, in: pinned).count
    #expect(count == 100)
    map.end(brief)
    map.end(pinned)
    map.validate()
  }

  @Test func `the parts of a map's memory sum up to its memory`() throws {
    var map = EntryMap()
    try rewrite(&map)
    try map.write("large".bytes, .init(repeating: 1, count: 100_000))
    let before = map.memory
    let snapshot = map.snapshot(now: 0)
    try rewrite(&map)
    try map.write("large".bytes, [1])
    let (memory, total) = (map.memory, map.statistics.memoryBytes)
    #expect(before.snapshots == 0 && before.records > 200_000)
    #expect(memory.snapshots > 200_000 && memory.records < 150_000)
    #expect(memory.entryBytes == total)
    map.end(snapshot)
    let after = map.memory.snapshots
    #expect(after == 0)
  }
}
