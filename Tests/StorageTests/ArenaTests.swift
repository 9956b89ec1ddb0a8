import TestSupport
import Testing

@testable import Storage

@Suite struct ArenaTests {
  /// Allocates a block and makes it a record of its size, so that `validate` can walk over it.
  private static func allocateRecord(_ units: UInt32, from arena: inout Arena, tag: UInt64) throws -> UInt32 {
    let handle = try arena.allocate(units: units)
    let key = [UInt8](repeating: 1, count: 1)
    let value = [UInt8](repeating: UInt8(truncatingIfNeeded: tag), count: Int(units) * 8 - 13)
    unsafe key.withUnsafeBytes { key in
      unsafe value.withUnsafeBytes { value in
        unsafe Record(at: arena.address(handle)).initialize(
          key: Key(start: key.baseAddress!, count: 1), value: value, external: nil, kind: .single, revision: tag,
          expiry: 0)
      }
    }
    return handle
  }

  @Test func `blocks never overlap, and freed blocks merge again`() throws {
    var random = SeededGenerator.announced()
    var arena = Arena()
    var blocks: [(handle: UInt32, units: UInt32, tag: UInt64)] = []
    for step in 0..<8_000 {
      if blocks.isEmpty || Int.random(in: 0..<100, using: &random) < (step / 2_000 % 2 == 0 ? 70 : 35) {
        let maxUnits: UInt32 = Int.random(in: 0..<20, using: &random) == 0 ? 4_000 : 40
        let units = UInt32.random(in: 2...maxUnits, using: &random)
        let handle = try Self.allocateRecord(units, from: &arena, tag: UInt64(step))
        blocks.append((handle, units, UInt64(step)))
      } else {
        let block = blocks.remove(at: .random(in: 0..<blocks.count, using: &random))
        arena.free(block.handle, units: block.units)
      }
      if step % 1_000 == 0 { arena.validate() }
    }
    let ranges = blocks.map { $0.handle..<$0.handle + $0.units }.sorted { $0.lowerBound < $1.lowerBound }
    #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound })
    for block in blocks {
      let record = unsafe Record(at: arena.address(block.handle))
      #expect(record.revision == block.tag && record.units == block.units)
    }
    for block in blocks.shuffled(using: &random) { arena.free(block.handle, units: block.units) }
    arena.validate()
    let (used, whole) = (arena.unitsInUse, arena.mappedChunkCount)
    #expect(used == 0)
    #expect(whole == 1, "one free chunk is kept, and the others are returned to the system")
  }

  @Test func `reserved blocks need no new chunk`() throws {
    var arena = Arena()
    var handles: [UInt32] = []
    for tag in 0..<200 { handles.append(try Self.allocateRecord(1_000, from: &arena, tag: UInt64(tag))) }
    try arena.reserve(units: 300_000, largest: 4_000)
    let before = arena.mappedChunkCount
    for tag in 0..<75 { handles.append(try Self.allocateRecord(4_000, from: &arena, tag: UInt64(tag))) }
    let after = arena.mappedChunkCount
    #expect(after == before)
    arena.validate()
  }

  @Test(arguments: [1, 2, 127, 128, 129, 159, 160, 191, 192, 255, 256, 1_000, 65_535, 65_536, 131_071] as [UInt32])
  func `bins are ordered by size`(units: UInt32) {
    #expect(ArenaBins.index(of: units) < ArenaBins.count)
    #expect(ArenaBins.index(of: units + 1) >= ArenaBins.index(of: units))
    let safe = ArenaBins.index(atLeast: units)
    #expect(safe == ArenaBins.index(of: units) || safe == ArenaBins.index(of: units) + 1)
    #expect(units == 1 || ArenaBins.index(of: units - 1) < safe)
  }
}

extension Arena {
  var mappedChunkCount: Int { (0..<chunkCount).reduce(0) { unsafe chunks[$1].base == nil ? $0 : $0 + 1 } }
}
