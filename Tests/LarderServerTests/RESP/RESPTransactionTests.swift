import Storage
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// The ways in which a transaction ends. None of them may leave it open: from then on, every command would be queued.
  @Suite struct RESPTransactionTests {
    /// What happens to a transaction that has a SET.
    enum Failure: String, CaseIterable {
      case wrongNumberOfWords, quotedName, unknownCommand, refusedCommand, tooLarge
      case watchedKey, fullStore, tooLargeForStore, fullDisk, slowDisk, failedDisk, lostRight, lostRightToKey
      case droppedStore, lostLease, lostLeaseWhileQueued, discarded, reset, subscribed
    }

    @Test(arguments: Failure.allCases) func `leave no transaction open`(_ failure: Failure) throws {
      let scene = try TransactionScene(failure)
      let client = try TestClient(scene.server.address)
      if failure == .watchedKey { #expect(try client.call("WATCH", "a") == .ok) }
      #expect(try client.call("MULTI") == .ok)
      #expect(try client.call("SET", "a", "1") == .simple("QUEUED"))
      try scene.break(client)
      let end = try scene.end(client)
      switch failure {
      case .watchedKey: #expect(end == .null)
      case .discarded: #expect(end == .ok)
      case .reset: #expect(end == .simple("RESET"))
      default:
        guard case .error(let text) = end else {
          Issue.record("\(end)")
          return
        }
        #expect(text.hasPrefix("EXECABORT Transaction discarded because of"), "\(text)")
      }
      scene.repair()
      let reply = try client.call("GET", "a")
      #expect(reply != .simple("QUEUED"))
      let second = try client.call("EXEC")
      if scene.servesEntries {
        #expect(reply == scene.value)
        #expect(second == .error("ERR EXEC without MULTI"))
      } else {
        #expect(reply.isError && second.isError)
      }
      #expect(try client.call("MULTI") == .ok)
      #expect(try client.call("DISCARD") == .ok)
    }

    @Test func `a transaction of deletions is executed on a full disk`() throws {
      let engine = TestEngine(removalReserve: 500)
      let store = Store(
        name: try StoreName("test"), engine: .memory, map: EntryMap(), writingTo: engine, durability: .always)
      let server = try TestServer(stores: [], serving: [store], speaking: .resp)
      let client = try TestClient(server.address)
      #expect(try client.call("SET", "a", "1") == .ok)
      engine.setSpace(2_000)
      let value = String(repeating: "v", count: 50)
      #expect(try eventually { try client.call("SET", "b", value).isError })
      #expect(try client.call("MULTI") == .ok)
      #expect(try client.call("SET", "c", value).isError)
      #expect(try client.call("EXEC") == .error("EXECABORT Transaction discarded because of previous errors."))
      #expect(try client.call("MULTI") == .ok)
      #expect(try client.call("DEL", "a", "none") == .simple("QUEUED"))
      #expect(try client.call("EXEC") == [1])
    }

    @Test func `errors of MULTI and WATCH abort no transaction`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      #expect(try client.call("MULTI") == .ok)
      #expect(try client.call("MULTI") == .error("ERR MULTI calls can not be nested"))
      #expect(try client.call("WATCH", "a") == .error("ERR WATCH inside MULTI is not allowed"))
      #expect(try client.call("EXEC") == [])
    }
  }
}

/// A server on which something goes wrong with a transaction.
private final class TransactionScene {
  typealias Failure = ServerTests.RESPTransactionTests.Failure
  private let failure: Failure
  private let engine: TestEngine
  private let lease = Lease()
  let server: TestServer

  init(_ failure: Failure) throws {
    self.failure = failure
    let hasLease = failure == .lostLease || failure == .lostLeaseWhileQueued
    lease.extend(to: .max)
    engine = TestEngine(lease: hasLease ? lease : nil)
    if failure == .slowDisk { engine.setSpace(100_000) }
    let name = try StoreName("test")
    let isLimited = failure == .fullStore || failure == .tooLargeForStore
    let store =
      isLimited
      ? Store(name: name, engine: .memory, limit: MemoryLimit("1MiB"))
      : Store(name: name, engine: .memory, map: EntryMap(), writingTo: engine, durability: .always)
    server = try TestServer(
      stores: [], serving: [store], tcp: true,
      rules: [AccessRule(.tcp, .write), AccessRule(.unix, .admin)],
      databases: [try #require(RESPDatabase(0, name))], speaking: .resp, alsoNative: true
    ) {
      if failure == .tooLarge { $0.maxFrameBytes = 1 << 17 }
    }
  }

  /// Whether the store can be used after the transaction.
  var servesEntries: Bool {
    switch failure {
    case .droppedStore, .lostRightToKey, .lostLease, .lostLeaseWhileQueued: false
    default: true
    }
  }

  /// The value of the key of the transaction afterward.
  var value: RESPValue { failure == .watchedKey ? "2" : .null }

  /// Does what the transaction fails for.
  func `break`(_ client: TestClient) throws {
    switch failure {
    case .wrongNumberOfWords, .quotedName, .discarded, .reset, .lostLease: break
    case .unknownCommand: #expect(try client.call("LPUSH", "a", "1").isError)
    case .refusedCommand: #expect(try client.call("AUTH", "x").isError)
    case .tooLarge:
      for _ in 0..<2 { _ = try client.call("SET", "b", String(repeating: "v", count: 70_000)) }
    case .watchedKey:
      #expect(try TestClient(server.address).call("SET", "a", "2") == .ok)
    case .fullStore:
      for _ in 0..<20 { _ = try client.call("SET", "b", String(repeating: "v", count: 100_000)) }
    case .tooLargeForStore: #expect(try client.call("SET", "b", String(repeating: "v", count: 2 << 20)).isError)
    case .fullDisk:
      engine.setSpace(0)
      #expect(try eventually { try TestClient(server.address).call("SET", "b", "1").isError })
    case .slowDisk:
      engine.holdReservations(true)
      #expect(try client.call("SET", "b", String(repeating: "v", count: 200_000)) == .simple("QUEUED"))
    case .failedDisk:
      engine.fail(EngineError.failed("the disk is broken"))
      #expect(
        try eventually {
          guard case .error(let text) = try TestClient(server.address).call("SET", "b", "1") else { return false }
          return text.hasPrefix("READONLY ")
        })
    case .lostRight: try setRules([AccessRule(.tcp, .read)])
    case .lostRightToKey: try setRules([AccessRule(.tcp, .write, store: try StoreName("test"), keyPrefix: "b")])
    case .droppedStore:
      let native = try TestClient(server.server.addresses[1])
      try native.handshake()
      #expect(try native.call(Request.drop("test", id: 2)).isDone)
    case .lostLeaseWhileQueued:
      lease.revoke()
      #expect(try client.call("SET", "b", "1").isError)
    case .subscribed: #expect(try client.call("SUBSCRIBE", "x").isError)
    }
    if failure == .lostLease { lease.revoke() }
  }

  func end(_ client: TestClient) throws -> RESPValue {
    switch failure {
    case .wrongNumberOfWords: return try client.call("EXEC", "x")
    case .quotedName:
      try client.send(Array("\"EXEC\"\r\n".utf8))
      return try client.reply()
    case .discarded: return try client.call("DISCARD")
    case .reset: return try client.call("RESET")
    default: return try client.call("EXEC")
    }
  }

  func repair() {
    if failure == .slowDisk || failure == .fullDisk {
      engine.holdReservations(false)
      engine.setSpace(1 << 20)
    }
  }

  private func setRules(_ rules: [AccessRule]) throws {
    try server.server.change(stores: [], limits: ServerLimits(), rules: rules + [AccessRule(.unix, .admin)])
  }
}
