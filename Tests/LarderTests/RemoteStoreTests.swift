import Larder
import LarderServer
import Platform
import Storage
import Testing

/// Every operation of the library with a real server.
@Suite struct RemoteStoreTests {
  @Test func `a get from a remote store returns the value that was put`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      #expect(try await items.get("a") == nil)
      let first = try await items.put("a", "one".utf8)
      let second = try await items.put("a", [0, 255, 10])
      #expect(second > first)
      #expect(try await items.get("a") == Entry(key: "a", value: .single([0, 255, 10]), revision: second))
      let list = try await items.put("l", list: [[1], [], [2, 3]])
      #expect(try await items.get("l") == Entry(key: "l", value: .list([[1], [], [2, 3]]), revision: list))
      try await items.put("empty", [UInt8]())
      #expect(try await items.get("empty")?.bytes == [])
    }
  }

  @Test func `a write whose condition does not hold is refused`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      let revision = try await items.put("a", [1], if: .absent)
      await #expect(throws: LarderError.self) { try await items.put("a", [2], if: .absent) }
      await #expect(throws: LarderError.self) { try await items.put("a", [2], if: .revision(revision + 1)) }
      let next = try await items.put("a", [2], if: .revision(revision))
      do throws(LarderError) {
        _ = try await items.delete("a", ifRevision: revision)
        Issue.record("an outdated revision deleted")
      } catch {
        #expect(error.kind == .conditionFailed && error.outcome == .rejected && !error.isSafeToRetry)
      }
      #expect(try await items.delete("a", ifRevision: next))
      #expect(try await items.delete("a") == false)
    }
  }

  @Test func `many keys are written and read in one step`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      let writes = (0..<1_000).map { Write("k\($0)", [UInt8($0 & 255)]) }
      let revision = try await items.putMany(writes)
      let found = try await items.getMany(["k7", "absent", "k999", "k7"])
      #expect(found.map { $0?.key } == ["k7", nil, "k999", "k7"])
      #expect(found.compactMap { $0?.revision } == [revision, revision, revision])
      await #expect(throws: LarderError.self) {
        try await items.putMany([Write("new", [1]), Write("k1", [1], if: .absent)])
      }
      #expect(try await items.get("new") == nil)
      #expect(try await items.deleteMany(["k1", "k1", "absent", "k2"]) == 2)
      #expect(try await items.count(prefix: "k99") == 11)
      #expect(try await items.deleteAll() == 998)
      #expect(try await items.count() == 0)
    }
  }

  @Test func `pages begin at an offset or a cursor, in both directions`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      let keys = (0..<500).map { "p:\(String($0 + 1_000))" }
      _ = try await items.putMany(keys.map { Write($0, [UInt8](repeating: 7, count: 1_000)) } + [Write("z", [0])])
      #expect(try await items.page(offset: 498, limit: 10).map(\.key) == ["p:1498", "p:1499", "z"])
      #expect(try await items.page(offset: 1_000).isEmpty)
      #expect(try await items.page(limit: 2, after: "p:1003", reverse: true).map(\.key) == ["p:1002", "p:1001"])
      #expect(try await items.page(limit: 1, keysOnly: true).first?.bytes == [])
      var collected: [String] = []
      for try await page in items.pages(of: 64, prefix: "p:") { collected += page.map(\.key) }
      #expect(collected == keys)
      var all: [String] = []
      for try await entry in items.all(prefix: "p:", reverse: true) { all.append(entry.key) }
      #expect(all == keys.reversed())
    }
  }

  @Test func `all returns the store as it was at one point in time, however slowly it is read`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      let value = [UInt8](repeating: 1, count: 20_000)
      _ = try await items.putMany((0..<100).map { Write("k\($0 + 100)", value) })
      var seen = 0
      for try await entry in items.all() {
        if seen == 0 { _ = try await items.deleteAll() }
        #expect(entry.bytes == value)
        seen += 1
      }
      #expect(seen == 100)
      #expect(try await items.count() == 0)
    }
  }

  @Test func `entries of a remote store expire`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      try await items.put("brief", [1], expiresIn: .milliseconds(300))
      let left = try await items.get("brief")?.expiresIn
      #expect(left.map { $0 > .zero && $0 <= .milliseconds(300) } == true)
      try await Task.sleep(for: .milliseconds(310))
      #expect(try await items.get("brief") == nil)
      #expect(try await items.count() == 0)
    }
  }

  @Test func `stores are created and dropped`() async throws {
    try await withServer { client, _ in
      try await client.createStore("other")
      await #expect(throws: LarderError.self) { try await client.createStore("other") }
      let other = client.store("other")
      try await other.put("a", [1])
      #expect(try await client.stores().map(\.name) == ["items", "other"])
      #expect(try await other.stats()["entries"] == 1)
      try await client.dropStore("other")
      do throws(LarderError) {
        _ = try await other.get("a")
        Issue.record("a dropped store answered")
      } catch {
        #expect(error.kind == .storeUnknown)
      }
      // The old handle of the name is stale now. The client opens the store again.
      try await client.createStore("other")
      #expect(try await other.get("a") == nil)
      #expect(try await client.stats()["stores"] == 2)
    }
  }
}

/// What callers see of rules that refuse their calls.
@Suite struct RefusalTests {
  private func isRefused(_ body: () async throws -> Void) async -> Bool {
    do {
      try await body()
      return false
    } catch {
      guard let error = error as? LarderError else { return false }
      return error.kind == .notPermitted && error.code == 37 && error.outcome == .rejected && !error.isSafeToRetry
        && error.message.hasPrefix("a TCP client may not ") && "\(error)".contains("larderd's setting access")
    }
  }

  @Test func `a call that is not permitted fails at once, and a later one succeeds once it is`() async throws {
    try await withServer {
      $0.addresses = [.tcp(host: "127.0.0.1", port: 0)]
      $0.accessRules = [AccessRule(.unix, .admin)]
    } _: { client, server in
      let items = client.store("items").with(timeout: .seconds(60))
      func change(_ rules: [AccessRule]) throws {
        try server.change(stores: [], limits: ServerLimits(), rules: rules)
      }
      let clock = ContinuousClock()
      let time = await clock.measure { #expect(await isRefused { _ = try await items.get("a") }) }
      #expect(time < .seconds(30), "the call waited for its timeout")
      try change([AccessRule(.tcp, .read)])
      #expect(try await items.get("a") == nil)
      #expect(await isRefused { try await items.put("a", [1]) })
      #expect(await isRefused { try await client.createStore("new", engine: "memory") })
      try change([AccessRule(.tcp, .admin)])
      try await items.put("a", [1])
      // The connection ends with a notice.
      try change([AccessRule(.unix, .admin)])
      #expect(await isRefused { try await items.put("a", [2]) })
      try change([])
      #expect(try await items.get("a")?.bytes == [1])
    }
  }
}
