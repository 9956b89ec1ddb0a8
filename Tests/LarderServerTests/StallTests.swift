import Foundation
import LarderServer
import Platform
import Storage
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
        for key in keys { try #require(slow.call(Request.put(key, StallTests.value(key), id: 3)).isDone) }
        try #require(try eventually { try slow.figures(store: 1)["values_on_disk"] == UInt64(keys.count) })
      }

      deinit {
        files.resume()
        server.stop()
      }

      let keys = ["a", "b", "c", "d"]

      func stall() { files.stall(server.folder(of: "slow")) }

      /// Whether the other stores are served.
      func othersAreServed() throws -> Bool {
        for _ in 0..<100 {
          for client in [memory, log] {
            try client.send(Request.get("a", id: 9))
            guard try client.receive(within: 5).entries.map(\.value) == [[1]] else { return false }
          }
        }
        return true
      }
    }

    private static func value(_ key: String) -> [UInt8] {
      Array(#"{"name":"\#(key)","rest":""#.utf8) + [UInt8](repeating: key.utf8.first!, count: 40_000) + Array("\"}".utf8)
    }

    @Test func `gets of values on a disk that stalls keep nobody else waiting`() throws {
      let stores = try Stores()
      stores.stall()
      try stores.slow.send(Request.get("a", id: 10) + Request.put("e", [1], id: 11) + Request.ping(12))
      #expect(try stores.othersAreServed())
      #expect(stores.slow.isSilent(for: 0.05))
      stores.files.resume()
      #expect(try stores.slow.receive().entries.map(\.value) == [Self.value("a")])
      #expect(try [stores.slow.receive().id, stores.slow.receive().id] == [11, 12])
    }

    @Test func `reply streams with values on a disk that stalls keep nobody else waiting`() throws {
      let requests: [(UInt32) -> [UInt8]] = [
        { Request.all(id: $0) }, { Request.page(id: $0, limit: 3, after: "a") },
        { Request.keys(.getMany, ["d", "x", "a", "b"], id: $0) }, { Request.find(id: $0) },
        { Request.find(id: $0, fields: #"["name"]"#) },
      ]
      let stores = try Stores()
      for (number, request) in requests.enumerated() {
        let id = 10 + UInt32(number)
        try stores.slow.send(request(id))
        let expected = try stores.slow.receiveReplyStream(id).flatMap(\.entries)
        stores.stall()
        try stores.slow.send(request(id))
        #expect(try stores.othersAreServed())
        stores.files.resume()
        #expect(try stores.slow.receiveReplyStream(id).flatMap(\.entries) == expected)
      }
      #expect(try stores.slow.figures(store: 1)["snapshots"] == 0)
    }

    @Test func `writes to a log that has no space keep nobody else waiting`() throws {
      let stores = try Stores()
      let clients = try (0..<20).map { _ in try stores.server.connect(store: "slow") }
      stores.stall()
      let value = [UInt8](repeating: 1, count: 500_000)
      for client in clients { try client.send(Request.put("large", value, id: 4)) }
      #expect(try stores.othersAreServed())
      stores.files.resume()
      for client in clients { #expect(try client.receive().id == 4) }
    }

    @Test func `changes of stores and indexes on a disk that stalls keep nobody else waiting`() throws {
      let stores = try Stores()
      let clients = try (0..<3).map { _ in try stores.server.connect(store: "slow") }
      stores.files.stall(stores.server.folder(of: ""))
      let index = Array(#"{"name":"by-name","fields":["name"]}"#.utf8)
      try clients[0].send(Request.make(.indexEnsure, id: 4, index))
      try clients[1].send(Request.create("new", engine: "log", id: 5) + Request.open("new", id: 6))
      #expect(try stores.othersAreServed())
      try clients[2].send(Request.drop("slow", id: 7))
      #expect(try stores.othersAreServed())
      stores.files.resume()
      #expect(try clients[0].receive().id == 4)
      #expect(try clients[1].receive().isDone && clients[1].receive().isDone)
      #expect(try clients[2].receive().isDone)
    }
  }
}
