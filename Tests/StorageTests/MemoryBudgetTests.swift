import Glibc
import Platform
import TestSupport
import Testing

@testable import Storage

struct MemoryBudgetTests {
  /// Budgets for stores in a process that may use 16 MiB more than it does now.
  private func smallBudgets() throws -> StoreBudgets {
    let budgets = StoreBudgets()
    budgets.memory.setLimit(try #require(ProcessMemory.resident()).total + 16 << 20)
    return budgets
  }

  @Test(arguments: [100, 1_000, 50_000])
  func `at the limit writes that need memory are refused with nothing changed, and others go on`(size: Int) throws {
    let budgets = try smallBudgets()
    var map = EntryMap(budgets: budgets)
    let value = [UInt8](repeating: 1, count: size)
    var written = 0
    var failure: StorageError?
    while failure == nil, written * size < 256 << 20 {
      do throws(StorageError) {
        let key = "\(written)".bytes
        unsafe try map.put(key.span.bytes, value.span.bytes, revision: map.revisions.last + 1)
        written += 1
      } catch { failure = error }
    }
    #expect(failure == .memoryLimit)
    let count = map.count(now: 0)
    #expect(count == written && written > 0)
    map.validate()
    #expect(throws: StorageError.memoryLimit) { try map.reserve(records: 1_000, bytes: 64 << 20) }
    // What is deleted can be used again.
    for number in 0..<written {
      let key = "\(number)".bytes
      _ = unsafe try map.delete(key.span.bytes, revision: map.revisions.last + 1, now: 0)
    }
    try map.write("again".bytes, value)
    map.validate()
  }

  @Test(arguments: [100, 1_000, 50_000])
  func `a map with a limit evicts when the process has reached its limit`(size: Int) throws {
    let budgets = try smallBudgets()
    var map = EntryMap(limitBytes: 1 << 30, budgets: budgets)
    let value = [UInt8](repeating: 1, count: size)
    for number in 0..<(48 << 20) / size {
      let key = "\(number)".bytes
      unsafe try map.put(key.span.bytes, value.span.bytes, revision: map.revisions.last + 1)
    }
    let (evicted, count) = (map.statistics.evicted, map.count(now: 0))
    #expect(evicted > 0 && count > 10)
    map.validate()
    let (before, revision) = (map.limitedBytes, map.revisions.last)
    let byteCount = map.evictSome()
    let (after, next) = (map.limitedBytes, map.revisions.last)
    #expect(byteCount > 100_000 && after == before - byteCount && next == revision + 1)
    map.validate()
  }

  @Test(arguments: [100, 1_000, 50_000])
  func `before a large commit, a map with a limit evicts what the commit needs`(size: Int) throws {
    var map = EntryMap(limitBytes: 1 << 30, budgets: try smallBudgets())
    let value = [UInt8](repeating: 1, count: size)
    func write(_ number: Int, revision: UInt64) throws(StorageError) {
      let key = "\(number)".bytes
      unsafe try map.put(key.span.bytes, value.span.bytes, revision: revision)
    }
    for number in 0..<(48 << 20) / size { try write(number, revision: map.revisions.last + 1) }
    let records = (4 << 20) / size
    let bytes = records * (size + 8)
    while map.evictSome(forRecords: records, bytes: bytes) {}
    let evicted = map.statistics.evicted
    try map.beginLargeCommit()
    map.beginSlice()
    let revision = map.revisions.last + 1
    try map.reserve(records: records, bytes: bytes)
    for number in 0..<records { try write(-1 - number, revision: revision) }
    map.endSlice()
    var buffer = CommitBuffer()
    _ = map.finishLargeCommit(&buffer)
    // Nothing was evicted that the snapshot of the commit would have kept.
    #expect(map.statistics.evicted == evicted)
    map.validate()
  }

  @Test func `a memory budget without a limit grants everything`() {
    let budget = MemoryBudget()
    #expect(budget.take(1 << 40) && !budget.isExhausted && budget.shortage == 0)
    budget.setLimit(1 << 20)
    #expect(!budget.take(1) && budget.isExhausted && budget.shortage > 0)
    budget.setLimit(nil)
    #expect(budget.take(1 << 40) && !budget.isExhausted && budget.shortage == 0)
  }

  @Test func `evictions before a correction are taken into account when it is applied`() throws {
    let budget = MemoryBudget()
    let byteCount = 64 << 20
    budget.setLimit(try #require(ProcessMemory.resident()).total + byteCount)
    let uncounted = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * byteCount, alignment: 1)
    defer { unsafe uncounted.deallocate() }
    unsafe uncounted.initializeMemory(as: UInt8.self, repeating: 1)

    let correction = try #require(budget.correction())
    #expect(correction.shortage > byteCount / 2 && !budget.isExhausted)
    budget.count(-correction.shortage)
    budget.apply(correction)
    #expect(!budget.isExhausted)
    budget.measure()
    #expect(budget.isExhausted)
  }

  @Test func `a correction from before another measurement does not apply`() throws {
    let budget = MemoryBudget()
    budget.setLimit(1 << 40)
    #expect(budget.take(1 << 39))
    usleep(2_000)
    let outdated = try #require(budget.correction())
    usleep(2_000)
    budget.measure()
    budget.apply(outdated)
    // Twice the correction would allow more than the limit.
    #expect(!budget.take(1 << 40 + 1))
  }
}
