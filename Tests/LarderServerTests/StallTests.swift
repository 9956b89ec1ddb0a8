import Foundation
import LarderServer
import Platform
import Storage
import Synchronization
import TestSupport
import Testing
import Wire

extension ServerTests {
  /// A worker that serves a store whose disk stalls, and other stores: only requests that need that disk wait.
  @Suite struct StallTests {
    /// A server with one worker, and the log stores `slow` and `log` besides the memory store `test`.
    private final class Stores {
      let files = StallingFiles()
      let server: TestServer
      /// A client of the store `slow`.
      let slow: TestClient
      private let memory: TestClient
      private let log: TestClient

      init(limits: (inout ServerLimits) -> Void = { _ in }) throws {
        server = try TestServer(logs: ["slow", "log"], on: files, limits: limits)
        slow = try server.connect(credit: 16 << 20, store: "slow")
        memory = try server.connect()
        log = try server.connect(store: "log")
        for client in [memory, log] { try #require(client.call(Request.put("a", [1], id: 3)).isDone) }
        // Too many for a find that runs at once.
        try memory.putNumbered(100)
        for key in keys { try #require(slow.call(Request.put(key, StallTests.value(key), id: 3)).isDone) }
        try #require(try eventually { try slow.figures(store: 1)["values_on_disk"] == UInt64(keys.count) })
      }

      deinit {
        files.resume()
        server.stop()
      }

      let keys = ["a", "b", "c", "d"]

      func stall() { files.stall(server.folder(of: "slow")) }

      /// Whether the other stores are served, by the worker and by the thread that runs finds.
      func othersAreServed() throws -> Bool {
        let deadline = monotonicMilliseconds() + 10_000
        for _ in 0..<100 {
          for client in [memory, log] {
            try client.send(Request.get("a", id: 9))
            let left = Double(max(deadline, monotonicMilliseconds()) - monotonicMilliseconds()) / 1_000
            guard try client.receive(within: left).entries.map(\.value) == [[1]] else { return false }
          }
        }
        return try memory.find(#"{"none":{"$gt":1}}"#).documents.isEmpty
      }
    }

    private static func value(_ key: String) -> [UInt8] {
      Array(#"{"name":"\#(key)","rest":""#.utf8) + [UInt8](repeating: key.utf8.first!, count: 40_000)
        + Array("\"}".utf8)
    }

    @Test func `gets from a stalled disk don't keep other clients waiting`() throws {
      let stores = try Stores()
      stores.stall()
      try stores.slow.send(Request.get("a", id: 10) + Request.put("e", [1], id: 11) + Request.ping(12))
      #expect(try stores.othersAreServed())
      #expect(stores.slow.isSilent(for: 0.05))
      stores.files.resume()
      #expect(try stores.slow.receive().entries.map(\.value) == [Self.value("a")])
      #expect(try [stores.slow.receive().id, stores.slow.receive().id] == [11, 12])
    }

    @Test func `reply streams from a stalled disk don't keep other clients waiting`() throws {
      let stores = try Stores()
      let requests: [(UInt32) -> [UInt8]] = [
        { Request.all(id: $0) }, { Request.page(id: $0, limit: 3, after: "a") },
        { Request.keys(.getMany, ["d", "x", "a", "b"], id: $0) }, { Request.find(id: $0) },
        { Request.find(id: $0, fields: #"["name"]"#) },
      ]
      for (number, request) in requests.enumerated() {
        let id = 10 + UInt32(number)
        func reply() throws -> [TestEntry] {
          let frames = try stores.slow.receiveReplyStream(id)
          return number < 3 ? frames.flatMap(\.entries) : try FoundReply(frames).documents
        }
        try stores.slow.send(request(id))
        let expected = try reply()
        #expect(expected.count >= 3)
        stores.stall()
        try stores.slow.send(request(id))
        #expect(try stores.othersAreServed())
        stores.files.resume()
        #expect(try reply() == expected)
      }
      #expect(try stores.slow.figures(store: 1)["snapshots"] == 0)
    }

    @Test func `a disk may answer late, out of order, or never`() throws {
      let stores = try Stores()
      let clients = try (0..<3).map { _ in try stores.server.connect(credit: 16 << 20, store: "slow") }
      stores.stall()
      for (number, client) in clients.enumerated() {
        try client.send(Request.get(stores.keys[number], id: 10))
        #expect(eventually { stores.files.waitingCount == number + 1 })
      }
      for number in [2, 0] {
        stores.files.release(number)
        #expect(try clients[number].receive().entries.map(\.value) == [Self.value(stores.keys[number])])
      }
      #expect(clients[1].isSilent(for: 0.02))
      // The last one is never answered: its client gives up.
      var leaving: TestClient? = try stores.server.connect(store: "slow")
      try leaving?.send(Request.get("d", id: 10))
      #expect(eventually { stores.files.waitingCount == 2 })
      let before = try clients[0].figures()["connections"]!
      leaving = nil
      #expect(try eventually { try clients[0].figures()["connections"] == before - 1 })
      #expect(try stores.othersAreServed())
      stores.files.resume()
      #expect(try clients[1].receive().entries.map(\.value) == [Self.value("b")])
    }

    @Test func `a store whose disk stalls leaves threads for the reads of others`() throws {
      let stores = try Stores()
      let other = try stores.server.connect(credit: 16 << 20, store: "log")
      try #require(other.call(Request.put("b", Self.value("b"), id: 4)).isDone)
      try #require(try eventually { try other.figures(store: 1)["values_on_disk"] == 1 })
      let clients = try (0..<20).map { _ in try stores.server.connect(store: "slow") }
      stores.stall()
      for client in clients { try client.send(Request.get("a", id: 10)) }
      #expect(eventually { stores.files.waitingCount > 0 })
      // Nothing is in the page cache, as far as the test's disk says.
      stores.files.hidesCache = true
      #expect(try other.call(Request.get("b", id: 5)).entries.map(\.value) == [Self.value("b")])
      stores.files.resume()
      for client in clients { #expect(try client.receive().isDone) }
    }

    @Test func `finds on a stalled disk don't keep other finds waiting or trip the watchdog`() throws {
      let stores = try Stores()
      let silent = Mutex<Set<String>>([])
      let watchdog = Watchdog(stores.server.server, every: .milliseconds(20)) {
      } onSilent: { names in
        silent.withLock { $0.formUnion(names) }
      }
      stores.stall()
      try stores.slow.send(Request.find(id: 10, countOnly: true, selector: #"{"name":{"$gt":"b"}}"#))
      let other = try stores.server.connect(store: "slow")
      try other.send(Request.get("a", id: 11))
      #expect(eventually { stores.files.waitingCount > 0 })
      usleep(100_000)
      #expect(try stores.othersAreServed())
      watchdog.stop()
      // A commit thread that hangs is reported, as always.
      #expect(silent.withLock { $0.subtracting(["the commit writer of slow"]) }.isEmpty)
      stores.files.resume()
      #expect(try stores.slow.receive().isDone && other.receive().isDone)
    }

    @Test func `the server stops serving while a disk stalls, and has stopped once the disk goes on`() throws {
      let stores = try Stores { $0.shutdownTimeout = .milliseconds(100) }
      stores.stall()
      try stores.slow.send(Request.get("a", id: 10) + Request.put("b", [1], id: 11))
      #expect(eventually { stores.files.waitingCount > 0 })
      let stopping = BackgroundThread { [server = stores.server] in _ = server.stop() }
      // What has not been executed is said not to be.
      #expect(try stores.slow.receive().isNotice(.shuttingDown))
      #expect(try stores.slow.isClosed())
      stores.files.resume()
      try stopping.wait()
    }

    @Test func `a connection that ends while a store is created does not say that it was not`() throws {
      let stores = try Stores { $0.shutdownTimeout = .milliseconds(100) }
      stores.files.stall(stores.server.folder(of: ""))
      try stores.slow.send(Request.create("new", engine: "log", id: 10))
      #expect(eventually { stores.files.waitingCount > 0 })
      let stopping = BackgroundThread { [server = stores.server] in _ = server.stop() }
      #expect(try stores.slow.isClosed())
      stores.files.resume()
      try stopping.wait()
    }

    @Test func `writes to a log without space don't keep other clients waiting`() throws {
      let stores = try Stores()
      let clients = try (0..<20).map { _ in try stores.server.connect(store: "slow") }
      stores.stall()
      let value = [UInt8](repeating: 1, count: 500_000)
      for client in clients { try client.send(Request.put("large", value, id: 4)) }
      #expect(try stores.othersAreServed())
      stores.files.resume()
      for client in clients { #expect(try client.receive().id == 4) }
    }

    @Test(arguments: [1, 8, 9, 40])
    func `puts of any number of connections are answered once the disk goes on, and not before`(count: Int) throws {
      let stores = try Stores()
      let clients = try (0..<count).map { _ in try stores.server.connect(store: "slow") }
      stores.stall()
      for (number, client) in clients.enumerated() { try client.send(Request.put("k\(number)", [1], id: 4)) }
      #expect(eventually { stores.files.waitingCount > 0 })
      #expect(try stores.othersAreServed())
      #expect(clients.allSatisfy { $0.isSilent(for: 0.01) })
      stores.files.resume()
      for client in clients { #expect(try client.receive().isDone) }
      for client in clients { #expect(try client.pings()) }
    }

    @Test func `the last connection may end while its commit is written`() throws {
      let files = StallingFiles()
      let server = try TestServer(logs: ["slow"], on: files)
      for number in 0..<20 {
        let client = try server.connect(store: "slow")
        files.stall(server.folder(of: "slow"))
        try client.send(Request.put("a", [UInt8(number)], id: 4))
        #expect(eventually { files.waitingCount > 0 })
        client.endSending()
        files.resume()
        #expect(try client.receive().isDone)
        #expect(try client.isClosed())
      }
      #expect(server.stop() != nil)
    }

    @Test func `changes of stores and indexes on a stalled disk don't keep other clients waiting`() throws {
      let stores = try Stores()
      let clients = try (0..<3).map { _ in try stores.server.connect(store: "slow") }
      stores.files.stall(stores.server.folder(of: ""))
      let index = Array(#"{"name":"by-name","fields":["name"]}"#.utf8)
      try clients[0].send(Request.make(.indexEnsure, id: 4, index))
      try clients[1].send(Request.create("new", engine: "log", id: 5) + Request.open("new", id: 6))
      #expect(try stores.othersAreServed())
      try clients[2].send(Request.drop("slow", id: 7))
      #expect(try stores.othersAreServed())
      #expect(clients.allSatisfy { $0.isSilent(for: 0.01) })
      stores.files.resume()
      #expect(try clients[0].receive().id == 4)
      #expect(try clients[1].receive().isDone && clients[1].receive().isDone)
      #expect(try clients[2].receive().isDone)
    }
  }
}
