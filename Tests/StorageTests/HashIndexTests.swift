import TestSupport
import Testing

@testable import Storage

@Suite struct HashIndexTests {
  @Test func `records are found while segments grow and shrink, and removing all leaves none`() throws {
    var random = SeededGenerator.announced()
    var space = RecordSpace()
    var index = HashIndex()
    var handles: [UInt32] = []
    for number in 0..<30_000 {
      let handle = try space.add("key \(number)".bytes)
      try index.insert(handle, hash: index.hash(space.key(handle)), in: space.arena)
      handles.append(handle)
    }
    let full = index.memoryBytes
    #expect(full < 30_000 * 8, "a segment is nearly full while it grows")
    handles.shuffle(using: &random)
    for handle in handles.prefix(29_000) { index.remove(handle, hash: index.hash(space.key(handle)), in: space.arena) }
    for (place, handle) in handles.enumerated() {
      let key = space.key(handle)
      let found = index.find(key, hash: index.hash(key), in: space.arena)
      #expect(found == (place < 29_000 ? 0 : handle))
    }
    for handle in handles.dropFirst(29_000) {
      index.remove(handle, hash: index.hash(space.key(handle)), in: space.arena)
    }
    let (entries, memory) = (index.count, index.memoryBytes)
    #expect(entries == 0)
    #expect(memory == HashIndex().memoryBytes)
  }

  @Test func `a visit by hash finds every record once, and those that stay while segments grow and shrink`() throws {
    var space = RecordSpace()
    var index = HashIndex()
    var kept: Set<UInt32> = []
    var others: [UInt32] = []
    func add(_ key: String) throws -> UInt32 {
      let handle = try space.add(key.bytes)
      try index.insert(handle, hash: index.hash(space.key(handle)), in: space.arena)
      return handle
    }
    for number in 0..<5_000 { kept.insert(try add("kept \(number)")) }
    for round in 0..<4 {
      var visited: [UInt32] = []
      var (start, calls) = (UInt32?.some(0), 0)
      while let position = start {
        start = index.visitChunk(from: position, in: space.arena) { visited.append($0) }
        calls += 1
        guard round > 0, calls % 8 == 0 else { continue }
        if round == 2, others.count > 100 {
          for handle in others.suffix(100) {
            index.remove(handle, hash: index.hash(space.key(handle)), in: space.arena)
          }
          others.removeLast(100)
        } else if round != 2 {
          for number in 0..<100 { others.append(try add("other \(round) \(calls) \(number)")) }
        }
      }
      #expect(Set(visited).isSuperset(of: kept), "round \(round)")
      #expect(Set(visited).count == visited.count, "round \(round)")
    }
  }

  @Test func `keys with the same hash share a chunk and are distinct`() throws {
    var space = RecordSpace()
    var index = HashIndex()
    var handles: [UInt32] = []
    for number in 0..<40 {
      let handle = try space.add("same \(number)".bytes)
      try index.insert(handle, hash: 0xABCD_EF01, in: space.arena)
      handles.append(handle)
      // The index would rehash the keys when it grows, so the test stops before that.
      if number == 10 { break }
    }
    for handle in handles {
      let found = index.find(space.key(handle), hash: 0xABCD_EF01, in: space.arena)
      #expect(found == handle)
    }
    var candidates: [UInt32] = []
    index.visitCandidates(hash: 0xABCD_EF01) {
      candidates.append($0)
      return true
    }
    #expect(candidates.sorted() == handles.sorted())
  }

  @Test func `hashes of keys of every length are well distributed and depend on the store`() {
    let (first, second) = (KeyHash(), KeyHash())
    var differing = 0
    for length in 1...300 {
      var hashes: Set<UInt32> = []
      var key = [UInt8](repeating: 0, count: length)
      for position in 0..<length {
        key[position] = 1
        hashes.insert(Self.hash(key, first))
        key[position] = 0
      }
      // 300 values out of 2^32 hardly ever collide.
      #expect(hashes.count >= length - 1)
      if Self.hash(key, first) != Self.hash(key, second) { differing += 1 }
    }
    #expect(differing >= 298)
  }

  private static func hash(_ key: [UInt8], _ hash: KeyHash) -> UInt32 {
    unsafe key.withUnsafeBytes { unsafe hash(Key(start: $0.baseAddress!, count: $0.count)) }
  }
}
