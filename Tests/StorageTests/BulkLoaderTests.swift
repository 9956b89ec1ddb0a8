import TestSupport
import Testing

@testable import Storage

/// Compares a map that is loaded in bulk with one that is filled by puts.
struct BulkLoaderTests {
  @Test(arguments: [0, 1, 2, 125, 126, 5_000]) func `a loaded map equals a map filled by puts`(_ count: Int) throws {
    var random = SeededGenerator.announced()
    var put = EntryMap()
    var loaded = EntryMap()
    var loader = BulkLoader()
    try loaded.beginLoading(entries: count)
    // The loader keeps pointers to keys and values until it is flushed.
    let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 200_000, alignment: 8)
    defer { unsafe space.deallocate() }
    var used = 0
    func keep(_ bytes: [UInt8]) -> UnsafeRawBufferPointer {
      let place = unsafe UnsafeMutableRawBufferPointer(rebasing: space[used..<used + bytes.count])
      unsafe place.copyBytes(from: bytes)
      used += bytes.count
      return UnsafeRawBufferPointer(place)
    }
    for step in 0..<count * 2 {
      if used > 100_000 {
        try loader.flush(into: &loaded)
        used = 0
      }
      let revision = UInt64(step + 1)
      let prefix = ["user:", "user:0000", "user:\0", "user"].randomElement(using: &random)!
      let key = Array((prefix + "\(Int.random(in: 0..<count * 2, using: &random))").utf8)
      let length = Int.random(in: 0..<200, using: &random) == 0 ? 40_000 : Int.random(in: 0...60, using: &random)
      let value = [UInt8](repeating: .random(in: 0...255, using: &random), count: length)
      let expiry = Int.random(in: 0..<5, using: &random) == 0 ? UInt64.random(in: 1...1_000, using: &random) : 0
      switch Int.random(in: 0..<1_000, using: &random) {
      case 0:
        _ = try put.deleteAll(now: 0)
        try loader.removeAll(revision: revision, from: &loaded)
      case 1..<200:
        _ = unsafe try put.delete(key.span.bytes, revision: revision, now: 0)
        unsafe try loader.remove(keep(key), revision: revision, from: &loaded)
      default:
        unsafe try put.put(key.span.bytes, value.span.bytes, expiry: expiry, revision: revision)
        unsafe try loader.put(
          keep(key), keep(value), kind: .single, expiry: expiry, revision: revision, into: &loaded)
      }
      put.revisions.advance(to: revision)
    }
    try loader.finish(&loaded, revision: 0)
    put.validate()
    loaded.validate()
    var (left, right) = (put.statistics, loaded.statistics)
    (left.memoryBytes, right.memoryBytes) = (0, 0)
    (left.written, right.written) = (0, 0)
    #expect(left == right)
    let ranks = 0..<put.count(now: 0)
    #expect(try put.copies(ranks) == loaded.copies(ranks))
    // It works like any other map afterwards.
    for number in 0..<300 {
      try loaded.write(Array("more \(number)".utf8), [1])
      try put.write(Array("more \(number)".utf8), [1])
    }
    loaded.validate()
    #expect(put.expire(now: 500) == loaded.expire(now: 500))
    loaded.validate()
    let count = put.count(now: 500)
    #expect(loaded.count(now: 500) == count)
    #expect(try put.copies(0..<count, now: 500) == loaded.copies(0..<count, now: 500))
  }
}
