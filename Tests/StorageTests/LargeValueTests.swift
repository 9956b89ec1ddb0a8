import Platform
import Testing

@testable import Storage

/// Values that are not in records.
struct LargeValueTests {
  /// Memory that is filled with bytes from a place on, after zeros.
  private func memory(_ byteCount: Int, from offset: Int, of size: Int) throws -> ValueMemory {
    let memory = try #require(ValueMemory(byteCount: byteCount))
    for index in 0..<byteCount { unsafe memory.room[index] = 0 }
    for index in offset..<offset + size { unsafe memory.room[index] = UInt8(truncatingIfNeeded: index &* 7) }
    return memory
  }

  private func put(_ memory: ValueMemory, _ range: Range<Int>, into map: inout EntryMap) throws {
    unsafe try map.put(
      "key".bytes.span.bytes, RawSpan(_unsafeBytes: memory.bytes(range)), revision: map.revisions.last + 1, in: memory)
  }

  @Test(arguments: [(40_100, 100), (40_512, 512), (40_000, 0), (41_000, 100), (90_000, 50_000)])
  func `a large value keeps its receive buffer unless most of it is other data`(
    byteCount: Int, offset: Int
  ) throws {
    var map = EntryMap()
    let memory = try memory(byteCount, from: offset, of: 40_000)
    try put(memory, offset..<offset + 40_000, into: &map)
    let key = "key".bytes
    let entry = unsafe try #require(map.get(key.span.bytes, now: 0))
    let (value, large) = (unsafe try #require(entry.value), try #require(entry.largeValue))
    #expect(unsafe value.elementsEqual(memory.bytes(offset..<offset + 40_000)))
    #expect((large.memory === memory) == (byteCount - 40_000 <= 512))
    #expect(large.byteCount == 40_000)
    let memoryBytes = map.externals.memoryBytes
    #expect(memoryBytes > large.memory.byteCount && memoryBytes < large.memory.byteCount + 512)
    // The value stays when the entry is overwritten or gone.
    try map.write(key, [1])
    #expect(unsafe large.bytes.elementsEqual(memory.bytes(offset..<offset + 40_000)))
    let remaining = map.externals.memoryBytes
    #expect(remaining == 0)
    map.validate()
  }

  @Test func `a failed put leaves the buffer to its owner, which can put it again`() throws {
    let budgets = StoreBudgets()
    budgets.memory.setLimit(1)
    var map = EntryMap(budgets: budgets)
    let memory = try memory(40_000, from: 0, of: 40_000)
    #expect(throws: StorageError.memoryLimit) { try put(memory, 0..<40_000, into: &map) }
    budgets.memory.setLimit(nil)
    try put(memory, 0..<40_000, into: &map)
    let key = "key".bytes
    let isShared = unsafe map.get(key.span.bytes, now: 0)?.largeValue?.memory === memory
    #expect(isShared)
    map.validate()
  }

  @Test func `entries are evicted in slices for a large value, and others leave it the room`() throws {
    let limit = 16 << 20
    var map = EntryMap(limitBytes: limit)
    let value = [UInt8](repeating: 1, count: 100)
    func putSmall(_ name: String, _ map: inout EntryMap) throws {
      let key = name.bytes
      unsafe try map.put(key.span.bytes, value.span.bytes, revision: map.revisions.last + 1, now: 5)
    }
    for number in 0..<150_000 { try putSmall("\(number)", &map) }
    let key = "large".bytes
    let size = 12 << 20
    // It could never be stored, so nothing is evicted for it.
    let (evicted, evictsForHuge) = (
      map.statistics.evicted, unsafe map.evictBriefly(for: limit, at: key.span.bytes, now: 5)
    )
    #expect(!evictsForHuge && map.statistics.evicted == evicted)
    var sliceCount = 0
    while true {
      let (bytes, revision) = (map.limitedBytes, map.revisions.last)
      let isIncomplete = unsafe map.evictBriefly(for: size, at: key.span.bytes, now: 5)
      let (bytesAfter, revisionAfter) = (map.limitedBytes, map.revisions.last)
      // Before the last slice, the puts of the others may already have evicted enough.
      #expect(bytesAfter < bytes && revisionAfter == revision + 1 || !isIncomplete)
      sliceCount += 1
      guard isIncomplete else { break }
      for number in 0..<100 { try putSmall("\(sliceCount) \(number)", &map) }
      let bytesAfterOthers = map.limitedBytes
      #expect(bytesAfterOthers <= bytesAfter)
    }
    #expect(sliceCount > 1)
    let before = map.statistics.evicted
    let large = [UInt8](repeating: 2, count: size)
    unsafe try map.put(key.span.bytes, large.span.bytes, revision: map.revisions.last + 1, now: 5)
    // Nearly nothing remains to be evicted by the put itself.
    let (after, bytes) = (map.statistics.evicted, map.limitedBytes)
    #expect(after - before < 100 && bytes <= limit)
    // Replacing it needs nearly no room.
    let isIncomplete = unsafe map.evictBriefly(for: size, at: key.span.bytes, now: 5)
    #expect(!isIncomplete && map.statistics.evicted - after < 100)
    map.validate()
  }

  @Test func `the memory of entries that are all deleted can be used again at once`() throws {
    let budgets = StoreBudgets()
    budgets.memory.setLimit(try #require(ProcessMemory.resident()).total + 64 << 20)
    var map = EntryMap(budgets: budgets)
    let value = [UInt8](repeating: 1, count: 1_000)
    for _ in 0..<5 {
      // Most of what is allowed.
      for number in 0..<48_000 {
        let key = "\(number)".bytes
        unsafe try map.put(key.span.bytes, value.span.bytes, revision: map.revisions.last + 1)
      }
      let count = try map.deleteAll(now: 0)
      #expect(count == 48_000)
      map.validate()
    }
    let memory = map.statistics.memoryBytes
    #expect(memory < 100_000)
  }
}
