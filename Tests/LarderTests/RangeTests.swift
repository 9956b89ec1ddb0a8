import Larder
import LarderServer
import Platform
import ReplicationTestSupport
import Storage
import TestSupport
import Testing

/// Values that are read in parts.
@Suite struct RangeTests {
  private static func value(_ byteCount: Int) -> [UInt8] {
    var generator = SeededGenerator(seed: UInt64(byteCount))
    return (0..<byteCount).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }

  /// Calls `body` with a store of each engine and, if it survives, the same store of the next server.
  private func withEveryEngine(
    _ prepare: (RemoteStore) async throws -> Void, _ body: (RemoteStore) async throws -> Void
  )
    async throws
  {
    for engine in ["memory", "log", "directory", "replicated"] {
      let folder = try TemporaryFolder()
      let log = SimulatedLog()
      for isPrepared in engine == "memory" ? [false] : [false, true] {
        try await withServer {
          $0.stores = [try! .init(name: "films", engine, engines: .known)]
          $0.dataPath = folder.file("data")
          $0.shareStores(in: log)
        } _: { client, _ in
          let films = client.store("films")
          if !isPrepared { try await prepare(films) }
          try await body(films)
        }
      }
    }
  }

  @Test func `ranges of a value are its bytes, in every engine and after reopening`() async throws {
    let size = 3 << 20 | 17
    let value = Self.value(size)
    let small = Array("small".utf8)
    try await withEveryEngine {
      try await $0.put("large", value)
      try await $0.put("small", small)
      try await $0.put("empty", [UInt8]())
    } _: { films in
      let large = try #require(try await films.value("large"))
      let revision = try await films.get("large")?.revision
      #expect(large.key == "large" && large.byteCount == size && large.revision == revision && large.expiresIn == nil)
      let ranges = [
        0..<1, 0..<size, 65_535..<65_537, 65_536..<131_072, size - 1..<size, size..<size, 100..<100, 1 << 20..<2 << 20,
      ]
      for range in ranges {
        #expect(try await large.bytes(in: range) == Array(value[range]), "\(range)")
        #expect(try await films.get("large", in: range) == Array(value[range]), "\(range)")
      }
      #expect(try await large.bytes(in: size - 5..<size + 5) == Array(value[(size - 5)...]))
      #expect(try await large.bytes(in: size + 1..<Int.max).isEmpty)
      for chunkSize in [300_000, 1 << 20, Int.max] {
        var chunks: [[UInt8]] = []
        for try await chunk in large.chunks(of: chunkSize) { chunks.append(chunk) }
        #expect(chunks.dropLast().allSatisfy { $0.count == chunkSize } && chunks.last?.isEmpty == false)
        #expect(chunks.flatMap { $0 } == value)
      }
      var middle: [UInt8] = []
      for try await chunk in large.chunks(in: 1_000..<9_000_000, of: 1_000_000) { middle += chunk }
      #expect(middle == Array(value[1_000...]))
      #expect(try await films.get("small", in: 1..<3) == Array("ma".utf8))
      #expect(try await films.value("empty")?.byteCount == 0)
      for try await chunk in try #require(try await films.value("empty")).chunks() { Issue.record("\(chunk)") }
    }
  }

  @Test func `parts of a value that has changed are refused`() async throws {
    try await withEveryEngine { _ in
    } _: { films in
      let changes: [@Sendable () async throws -> Void] = [
        { try await films.put("film", [UInt8](repeating: 2, count: 100_000)) },
        { try await films.delete("film") },
        { try await Task.sleep(for: .milliseconds(2)) },
      ]
      for (number, change) in changes.enumerated() {
        try await films.put(
          "film", [UInt8](repeating: 1, count: 100_000), expiresIn: number == 2 ? .milliseconds(500) : nil)
        let film = try #require(try await films.value("film"))
        #expect(number != 2 || film.expiresIn.map { $0 <= .milliseconds(500) } == true)
        var chunks = film.chunks(of: 60_000).makeAsyncIterator()
        #expect(try await chunks.next() == [UInt8](repeating: 1, count: 60_000))
        try await change()
        if number == 2 { while try await films.get("film") != nil { try await Task.sleep(for: .milliseconds(5)) } }
        await #expect(throws: LarderError.conditionFailed) { try await chunks.next() }
        await #expect(throws: LarderError.conditionFailed) { try await film.bytes(in: 0..<1) }
        try await films.deleteAll()
      }
    }
  }

  @Test func `a range of a missing value is nil, and an impossible range is an error`() async throws {
    try await withServer { client, _ in
      let films = client.store("items")
      #expect(try await films.value("absent")?.key == nil)
      #expect(try await films.get("absent", in: 0..<1) == nil)
      try await films.put("list", list: [[1], [2]])
      await #expect(throws: LarderError.illegalArgument) { _ = try await films.value("list") }
      await #expect(throws: LarderError.illegalArgument) { _ = try await films.get("list", in: 0..<1) }
      try await films.put("film", [1])
      await #expect(throws: LarderError.illegalArgument) { _ = try await films.get("film", in: -1..<1) }
      await #expect(throws: LarderError.keyInvalid) { _ = try await films.value("") }
    }
  }
}
