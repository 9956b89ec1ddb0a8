import Basics
import Documents
import Platform
import TestSupport
import Testing
import Wire

@testable import Larder

/// The client of a server that sends anything: each reply of the golden vectors with numbers at the limits in place of
/// its own, cut short, and extended. A call returns or throws, and nothing traps.
@Suite(.serialized) struct HostileServerTests {
  private typealias Call = @Sendable (LarderClient, RemoteStore) async throws -> Void

  /// The calls that decode the replies to an operation.
  private static let calls: [Wire.Operation: [Call]] = [
    .hello: [{ client, _ in try await client.ping() }],
    .ping: [{ client, _ in try await client.ping() }],
    .stats: [{ client, _ in _ = try await client.stats() }, { _, store in _ = try await store.stats() }],
    .slowLog: [{ client, _ in _ = try await client.slowLog() }],
    .connections: [{ client, _ in _ = try await client.busiestConnections() }],
    .whoami: [{ client, _ in _ = try await client.identity() }],
    .tokenList: [{ client, _ in _ = try await client.tokens() }],
    .cluster: [{ client, _ in _ = try await client.cluster() }],
    .consoleLink: [{ client, _ in _ = try await client.consoleLink() }],
    .storeMove: [{ client, _ in try await client.moveStore("s", to: "node") }],
    .storeOpen: [{ client, _ in _ = try await client.store("other").get("k") }],
    .storeOpenStale: [{ _, store in _ = try await store.with(maxStaleness: .seconds(1)).get("k") }],
    .storeCreate: [{ client, _ in try await client.createStore("s") }],
    .storeList: [{ client, _ in _ = try await client.stores() }],
    .storeDrop: [{ client, _ in try await client.dropStore("s") }],
    .get: [{ _, store in _ = try await store.get("k") }],
    .getRange: [
      { _, store in _ = try await store.get("k", in: 0..<100) },
      { _, store in
        guard let value = try await store.value("k") else { return }
        for try await _ in value.chunks(of: 1) { break }
      },
    ],
    .getMany: [{ _, store in _ = try await store.getMany(["a", "b", "c"]) }],
    .put: [{ _, store in _ = try await store.put("k", [1]) }],
    .putMany: [{ _, store in _ = try await store.putMany([Write("k", [])]) }],
    .delete: [{ _, store in _ = try await store.delete("k") }],
    .deleteMany: [{ _, store in _ = try await store.deleteMany(["k"]) }],
    .deleteAll: [{ _, store in _ = try await store.deleteAll() }],
    .count: [{ _, store in _ = try await store.count() }],
    .page: [{ _, store in _ = try await store.page() }],
    .all: [{ _, store in for try await _ in store.all() {} }],
    .watch: [
      { _, store in
        var commits = store.watch().makeAsyncIterator()
        _ = try await commits.start()
        while try await commits.next() != nil {}
      },
      { _, store in for try await _ in store.observe(.all) {} },
    ],
    .find: [
      { _, store in
        let result = try await store.find(.all).result()
        for document in result.documents { _ = try? document.json() }
      },
      { _, store in _ = try await store.count(.all) },
      { _, store in _ = try await store.find(.all).explanation() },
      { _, store in
        for try await change in store.observe(.all) { if case .initial = change { break } }
      },
    ],
    .aggregate: [
      { _, store in _ = try await store.groups(by: ["a"]) },
      { _, store in _ = try await store.explainGroups(by: ["a"]) },
    ],
    .changeMatching: [
      { _, store in _ = try await store.delete(where: .all) },
      { _, store in _ = try await store.deleteInBatches(where: .all) },
    ],
    .apply: [{ _, store in _ = try await store.apply { $0.put(Write("k", [])) } }],
    .indexEnsure: [{ _, store in _ = try await store.ensureIndex(on: ["a"]) }],
    .indexDelete: [{ _, store in _ = try await store.deleteIndex(named: "a") }],
    .indexList: [{ _, store in _ = try await store.indexes() }],
    .uploadBegin: [upload], .uploadPart: [upload], .uploadPut: [upload],
  ]

  private static let upload: Call = { _, store in
    _ = try await store.put("k", chunks: OneChunk(bytes: [UInt8](repeating: 1, count: 65_537)))
  }

  private struct OneChunk: AsyncSequence, AsyncIteratorProtocol, Sendable {
    var bytes: [UInt8]?
    func makeAsyncIterator() -> OneChunk { self }
    mutating func next() async -> [UInt8]? {
      defer { bytes = nil }
      return bytes
    }
  }

  private struct Vector: Decodable, Sendable {
    struct Frame: Decodable { let to: String, outcome: UInt8 }
    let name: String, hex: String, frame: Frame

    static let all: [Vector] = {
      do { return try ProjectFiles.vectors("replies.json") } catch { fatalError("\(error)") }
    }()

    var bytes: [UInt8] { [UInt8](hex: hex) }
    var hasMore: Bool { bytes[5] & Wire.Frame.more != 0 }

    /// The body, with anything that a server could put into its place.
    var bodies: [[UInt8]] {
      let body = Array(bytes[Wire.Frame.headerSize...])
      if let first = body.first, "[{".utf8.contains(first) { return Self.texts(like: body) }
      var bodies = [body, body + [0], body + [UInt8](repeating: 255, count: 8)]
      for offset in stride(from: 0, to: min(body.count, 64), by: 4) {
        bodies.append(Array(body[..<offset]))
        for number in [0, 1, UInt64(Int64.max), 1 << 63, .max] where offset + 8 <= body.count {
          bodies.append(Self.replacing(body, at: offset, 8, number))
        }
        for number in [0, UInt64(UInt16.max), 1 << 31, UInt64(UInt32.max)] where offset + 4 <= body.count {
          bodies.append(Self.replacing(body, at: offset, 4, number))
        }
      }
      return bodies
    }

    private static func replacing(_ body: [UInt8], at offset: Int, _ size: Int, _ number: UInt64) -> [UInt8] {
      var body = body
      for byte in 0..<size { body[offset + byte] = UInt8(truncatingIfNeeded: number >> (8 * UInt64(byte))) }
      return body
    }

    /// Returns JSON with other numbers in place of all of its own, cut JSON, and JSON of other kinds.
    private static func texts(like body: [UInt8]) -> [[UInt8]] {
      let numbers = [
        "0", "-1", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615",
        "1e308", "-1e308", "0.5", "null", "[]", "{}", "\"\"",
      ]
      let text = String(decoding: body, as: UTF8.self)
      var texts = [text, "[]", "{}", "null", "[[]]", "[{}]", "1", String(repeating: "[", count: 100_000)]
      texts += numbers.map { number in
        text.replacing(#/(?<before>[:\[,])-?[0-9][0-9.eE+-]*/#) { "\($0.before)\(number)" }
      }
      texts += stride(from: 0, to: text.utf8.count, by: 16).map { String(decoding: body[..<$0], as: UTF8.self) }
      return texts.map { Array($0.utf8) }
    }
  }

  private static let configuration: LarderClient.Configuration = {
    var configuration = LarderClient.Configuration()
    configuration.backoff = Backoff(base: .milliseconds(1), cap: .milliseconds(1))
    configuration.retriesReads = false
    return configuration
  }()

  @Test func `every operation is called`() {
    let others: Set<Wire.Operation> = [.credit, .cancel, .storeClose, .uploadDiscard, .rulesCheck]
    #expect(Set(Self.calls.keys).union(others) == Set(Wire.Operation.allCases))
    let replies = Set(Vector.all.map(\.frame.to))
    for operation in Self.calls.keys { #expect(replies.contains(Self.name(of: operation))) }
  }

  @Test(arguments: Wire.Operation.allCases)
  func `a call returns or throws whatever the reply has`(_ operation: Wire.Operation) async throws {
    let server = try FakeServer(features: Features.all)
    defer { server.stop() }
    let client = try LarderClient(server.address, configuration: Self.configuration)
    let store = client.store("s")
    for vector in Vector.all where vector.frame.to == Self.name(of: operation) && vector.frame.outcome == 0 {
      for body in vector.bodies {
        for call in Self.calls[operation] ?? [] {
          server.set(Self.script(operation, body, hasMore: vector.hasMore))
          do { try await call(client, store) } catch { #expect(!"\(error)".isEmpty) }
        }
      }
    }
    await client.shutdown()
  }

  /// Returns the name of an operation in the vectors, such as `get-many`.
  private static func name(of operation: Wire.Operation) -> String {
    "\(operation)".reduce(into: "") { $0 += $1.isUppercase ? "-\($1.lowercased())" : String($1) }
  }

  /// A cache follows changes for as long as its client is open.
  @Test func `a live cache begins again whatever a watch sends`() async throws {
    let server = try FakeServer(features: Features.all)
    defer { server.stop() }
    let client = try LarderClient(server.address, configuration: Self.configuration)
    let feed = LiveCacheFeed(client.store("s"), prefix: "", limit: 10, maxSilence: 1_000_000_000)
    feed.start()
    for vector in Vector.all where vector.frame.to == "watch" && vector.frame.outcome == 0 {
      for body in vector.bodies {
        server.set(Self.script(.watch, body, hasMore: vector.hasMore))
        let count = server.count(of: .watch)
        try await eventually("the cache doesn't watch again") { server.count(of: .watch) >= count + 2 }
      }
    }
    await client.shutdown()
  }

  /// Sends one reply with a body, and hangs up. A second one is an error, so that a watch that goes on ends.
  private static func script(_ operation: Wire.Operation, _ body: [UInt8], hasMore: Bool) -> FakeServer.Script {
    let isSent = Lock(false)
    return { request in
      guard request.operation == operation else { return .answer }
      let isSecond = isSent.withLock { isSent in
        defer { isSent = true }
        return isSent
      }
      if isSecond { return request.error(.notPermitted) }
      var output = ByteBuffer()
      let start = output.beginReply(id: request.id, more: hasMore)
      output.append(body)
      output.endFrame(start)
      return .hangUp(output.toArray())
    }
  }
}
