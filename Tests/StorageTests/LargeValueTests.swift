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
      "key".bytes.span.bytes, RawSpan(_unsafeBytes: memory.bytes(range)), revision: map.revision + 1, in: memory)
  }

  @Test(arguments: [(40_100, 100), (40_512, 512), (40_000, 0), (41_000, 100), (90_000, 50_000)])
  func `a value is shared with the memory that it is in unless there is much beside it`(
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

  @Test func `a put that fails leaves the memory to its owner, who can put it again`() throws {
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
}
