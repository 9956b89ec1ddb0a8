import Larder
import LarderServer
import Platform
import ReplicationTestSupport
import Storage
import TestSupport
import Testing

/// Values that are written from a sequence of chunks.
@Suite struct UploadTests {
  /// Chunks that are made when they are needed.
  private struct Chunks: AsyncSequence {
    typealias Element = [UInt8]
    let sizes: [Int]
    /// Called before each chunk, and at the end.
    var onNext: @Sendable (_ index: Int) async throws -> Void = { _ in }

    var value: [UInt8] { sizes.indices.flatMap { Self.chunk($0, sizes[$0]) } }

    fileprivate static func chunk(_ index: Int, _ size: Int) -> [UInt8] {
      var chunk = [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: size)
      for position in stride(from: 0, to: size, by: 1_000) {
        chunk[position] = UInt8(truncatingIfNeeded: position / 1_000 ^ index)
      }
      return chunk
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(chunks: self) }

    struct AsyncIterator: AsyncIteratorProtocol {
      let chunks: Chunks
      var index = 0

      mutating func next() async throws -> [UInt8]? { try await next(isolation: nil) }

      mutating func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
        try await chunks.onNext(index)
        guard index < chunks.sizes.count else { return nil }
        defer { index += 1 }
        return Chunks.chunk(index, chunks.sizes[index])
      }
    }
  }

  private struct Interruption: Error {}

  /// Waits until the server has no uploads.
  private func waitForUploads(_ client: LarderClient) async throws {
    while try await client.stats()["input_bytes"]! > 100_000 { try await Task.sleep(for: .milliseconds(5)) }
  }

  @Test(.timeLimit(.minutes(1)))
  func `the parts of a value go over one of several connections`() async throws {
    let folder = try TemporaryFolder()
    let server = try Server(
      {
        var configuration = ServerConfiguration(addresses: [.unix(path: folder.file("s"))])
        configuration.stores = [try .init(name: "films", "memory")]
        return configuration
      }())
    var configuration = LarderClient.Configuration()
    configuration.connections = 3
    let films = try LarderClient("unix:\(folder.file("s"))", configuration: configuration).store("films")
    let chunks = Chunks(sizes: Array(repeating: 100_000, count: 20))
    for number in 0..<4 {
      try await films.put("film \(number)", chunks: chunks)
      #expect(try await films.get("film \(number)")?.bytes == chunks.value)
    }
    await withCheckedContinuation { continuation in server.stop { continuation.resume() } }
  }

  @Test(.timeLimit(.minutes(1)), arguments: ["memory", "log", "directory", "replicated"])
  func `a value is written in one step, whatever its chunks`(engine: String) async throws {
    let log = SimulatedLog()
    let cases = [
      [], [0], [10], [65_536], [65_537], [30_000, 0, 40_000], [5_000_000], Array(repeating: 1, count: 500),
      Array(repeating: 100_000, count: 50), [200_000, 65_536, 131_072, 1],
    ].map { Chunks(sizes: $0) }
    let folder = try TemporaryFolder()
    var revisions: [UInt64] = []
    for isReopened in engine == "memory" ? [false] : [false, true] {
      try await withServer {
        $0.stores = [try! .init(name: "films", engine, engines: .known)]
        $0.dataPath = folder.file("data")
        $0.shareStores(in: log)
      } _: { client, _ in
        let films = client.store("films")
        for (number, chunks) in cases.enumerated() {
          if !isReopened { revisions.append(try await films.put("film \(number)", chunks: chunks)) }
          let entry = try #require(try await films.get("film \(number)"))
          #expect(entry.bytes == chunks.value && entry.revision == revisions[number], "\(chunks.sizes.prefix(5))")
        }
        if !isReopened { #expect(revisions == (1...UInt64(cases.count)).map { $0 }) }
        try await waitForUploads(client)
      }
    }
  }

  @Test(.timeLimit(.minutes(1))) func `an upload writes nothing before its end`() async throws {
    try await withServer { client, _ in
      let films = client.store("items")
      let chunks = Chunks(sizes: Array(repeating: 100_000, count: 5)) { _ in
        let entry = try await films.get("film")
        guard entry == nil else { throw Interruption() }
      }
      try await films.put("film", chunks: chunks, if: .absent, expiresIn: .seconds(60))
      let entry = try #require(try await films.get("film"))
      #expect(entry.bytes == chunks.value && entry.expiresIn.map { $0 <= .seconds(60) } == true)
    }
  }

  @Test(.timeLimit(.minutes(1))) func `a condition that does not hold, and other refusals, write nothing`() async throws
  {
    try await withServer { client, _ in
      let films = client.store("items")
      let chunks = Chunks(sizes: Array(repeating: 100_000, count: 5))
      let revision = try await films.put("film", [1])
      await #expect(throws: LarderError.conditionFailed) {
        try await films.put("film", chunks: chunks, if: .absent)
      }
      await #expect(throws: LarderError.conditionFailed) {
        try await films.put("film", chunks: chunks, if: .revision(revision + 1))
      }
      await #expect(throws: LarderError.valueTooLarge) {
        try await films.put("film", chunks: Chunks(sizes: Array(repeating: 1 << 20, count: 17)))
      }
      await #expect(throws: LarderError.illegalArgument) {
        try await films.put("film", chunks: chunks, expiresIn: .zero)
      }
      await #expect(throws: LarderError.storeUnknown) { try await client.store("none").put("film", chunks: chunks) }
      // A key that is invalid is noticed before much is sent.
      await #expect(throws: LarderError.keyInvalid) {
        try await films.put(
          "", chunks: Chunks(sizes: chunks.sizes) { if $0 > 1 { throw Interruption() } })
      }
      #expect(try await films.get("film")?.revision == revision)
      try await waitForUploads(client)
      #expect(try await films.put("film", chunks: chunks, if: .revision(revision)) == revision + 1)
    }
  }

  @Test(.timeLimit(.minutes(1))) func `an upload that is interrupted or cancelled is discarded`() async throws {
    try await withServer { client, _ in
      let films = client.store("items")
      let sizes = Array(repeating: 1 << 20, count: 5)
      await #expect(throws: Interruption.self) {
        try await films.put("film", chunks: Chunks(sizes: sizes) { if $0 == 3 { throw Interruption() } })
      }
      let isWaiting = Lock(false)
      let chunks = Chunks(sizes: sizes) {
        guard $0 == 3 else { return }
        isWaiting.withLock { $0 = true }
        try await Task.sleep(for: .seconds(100))
      }
      let task = Task { try await films.put("film", chunks: chunks) }
      while !isWaiting.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(5)) }
      #expect(try await client.stats()["input_bytes"]! >= 3 << 20)
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      try await waitForUploads(client)
      #expect(try await films.get("film") == nil)
    }
  }

  @Test(.timeLimit(.minutes(1))) func `an upload does not survive its connection`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.file("s")
    try await withServer {
      $0.addresses = [try! Address("unix:\(path)")]
    } _: { client, _ in
      let films = client.store("items")
      let error = await #expect(throws: LarderError.self) {
        try await films.put(
          "film", chunks: Chunks(sizes: Array(repeating: 100_000, count: 5)) { if $0 == 3 { cutConnections(to: path) } }
        )
      }
      #expect(error == .uploadUnknown || error == .disconnected, "\(error as Any)")
      #expect(try await films.get("film") == nil)
      try await waitForUploads(client)
    }
  }
}
