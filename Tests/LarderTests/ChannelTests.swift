import Platform
import TestSupport
import Testing

@testable import Larder
@testable import LarderServer

/// The client over a layer that scrambles bytes, keeps some back, and must write in order to read and the reverse.
@Suite(.serialized) struct ChannelTests {
  private let counters = ScramblingLayer.Counters()
  private let seed = SeededGenerator.seeds(1, "ChannelTests").lowerBound

  private func withScrambling(_ body: (LarderClient, Server) async throws -> Void) async throws {
    let layers = ScramblingLayer.factory(.server, seed: seed, counters)
    func scramble(_ configuration: inout ServerConfiguration) {
      configuration.protocols = [configuration.addresses[0]: ListenerProtocol(NativeSession(), over: layers)]
    }
    try await withServer(scramble) { _, server in
      let client = try scramblingClient("\(server.addresses[0])")
      try await body(client, server)
      await client.shutdown()
    }
  }

  private func scramblingClient(
    _ address: String, _ configuration: LarderClient.Configuration = .init()
  ) throws -> LarderClient {
    try LarderClient(
      address, configuration: configuration, makeLayer: ScramblingLayer.factory(.client, seed: seed, counters))
  }

  @Test func `many tasks share a connection`() async throws {
    try await withScrambling { client, _ in
      let store = client.store("items")
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<64 {
          group.addTask {
            for round in 0..<20 {
              let value = Array("\(number)-\(round)".utf8)
              try await store.put("key\(number)", value)
              #expect(try await store.get("key\(number)")?.bytes == value)
            }
          }
        }
        try await group.waitForAll()
      }
    }
  }

  @Test func `a single task makes call after call`() async throws {
    try await withScrambling { client, _ in
      let store = client.store("items")
      for round in 0..<500 {
        try await store.put("key", Array("\(round)".utf8))
        #expect(try await store.get("key")?.bytes == Array("\(round)".utf8))
      }
    }
  }

  @Test func `large values pass in both directions at the same time`() async throws {
    try await withScrambling { client, _ in
      let store = client.store("items")
      let value = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 13) }
      try await store.put("large", value)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<4 {
          group.addTask { try await store.put("copy\(number)", value) }
          group.addTask {
            let entry = try await store.get("large")
            #expect(entry?.bytes == value)
          }
        }
        try await group.waitForAll()
      }
      #expect(try await store.get("copy3")?.bytes == value)
      // Everything inconvenient has happened.
      for event in [.splitWrites, .deliveriesWithRest, .waitsToReadBeforeSending, .waitsToWriteBeforeReceiving]
        as [ScramblingLayer.Counters.Event]
      {
        #expect(counters[event] > 0, "\(event)")
      }
    }
  }

  @Test func `the reply streams of several readers arrive whole`() async throws {
    try await withScrambling { client, _ in
      let store = client.store("items")
      for number in 0..<50 { try await store.put("key\(number)", [UInt8](repeating: UInt8(number), count: 20_000)) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<4 {
          group.addTask {
            var count = 0
            for try await entry in store.all() {
              #expect(entry.bytes?.count == 20_000)
              count += 1
            }
            #expect(count == 50)
          }
        }
        try await group.waitForAll()
      }
    }
  }

  @Test func `a server that stops is a lost connection, and nothing hangs`() async throws {
    let folder = try TemporaryFolder()
    let address = try Address("unix:\(folder.path)/larder.sock")
    var configuration = ServerConfiguration(addresses: [address])
    configuration.stores = [try .init(name: "items", "memory")]
    let layers = ScramblingLayer.factory(.server, seed: seed, counters)
    configuration.protocols = [address: ListenerProtocol(NativeSession(), over: layers)]
    let server = try Server(configuration)
    let client = try scramblingClient("\(address)").with(timeout: .milliseconds(500))
    let store = client.store("items")
    try await store.put("key", [1])
    await withCheckedContinuation { continuation in server.stop { continuation.resume() } }
    await #expect(throws: LarderError.self) { try await store.get("key") }
    await client.shutdown()
  }

  @Test func `a client that is closed ends its stream properly`() async throws {
    try await withScrambling { client, _ in
      try await client.ping()
      #expect(counters[.ends] == 0)
      await client.shutdown()
      for _ in 0..<500 where counters[.ends] == 0 { try await Task.sleep(for: .milliseconds(10)) }
      #expect(counters[.ends] == 1)
    }
  }

  @Test func `a handshake that the server does not complete ends with the call's timeout`() async throws {
    let folder = try TemporaryFolder()
    let listener = try ListeningSocket.open(try Address("unix:\(folder.path)/silent.sock"))
    let client = try scramblingClient("\(listener.address)").with(timeout: .milliseconds(200))
    do throws(LarderError) {
      try await client.ping()
      Issue.record("The server can't have replied.")
    } catch {
      #expect(error.kind == .timedOut && error.outcome == .notExecuted, "\(error)")
      #expect(error.message.contains("did not complete the handshake"), "\(error)")
    }
    client.close()
  }

  @Test func `what a layer says about a failed handshake is in the error`() async throws {
    try await withServer { _, server in
      var configuration = LarderClient.Configuration()
      configuration.waitsForConnection = false
      let client = try scramblingClient("\(server.addresses[0])", configuration)
      do throws(LarderError) {
        try await client.ping()
        Issue.record("A server that does not scramble can't have replied.")
      } catch {
        #expect(error.kind == .connectFailed && error.message.contains("the peer's greeting is malformed"), "\(error)")
      }
      client.close()
    }
  }
}
