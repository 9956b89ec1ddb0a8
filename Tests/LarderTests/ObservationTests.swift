import DataSources
import Documents
import Foundation
import LarderServer
import LarderTesting
import Platform
import TestSupport
import Testing

@testable import Larder

/// Live results, on real servers.
@Suite(.serialized) struct ObservationTests {
  /// What a task has observed, and the set that the changes make.
  private struct Result {
    private(set) var documents: [String: Document] = [:]
    private(set) var changeCount = 0
    private(set) var initialCount = 0

    /// Applies a change, which must fit to the documents.
    mutating func apply(_ change: LiveChange<Document>) {
      switch change {
      case .initial(let documents):
        #expect(initialCount == 0 && changeCount == 0)
        initialCount += 1
        for document in documents { self.documents[document.key] = document.value }
        #expect(self.documents.count == documents.count)
      case .inserted(let document):
        #expect(documents.updateValue(document.value, forKey: document.key) == nil, "\(document.key) again")
      case .updated(let document):
        let old = documents.updateValue(document.value, forKey: document.key)
        #expect(old != nil && old?.revision != document.revision, "\(document.key) at \(document.revision) again")
      case .removed(let key): #expect(documents.removeValue(forKey: key) != nil, "\(key)")
      }
      changeCount += 1
    }

    /// The documents' keys, revisions and texts, in order.
    var lines: [String] { Self.lines(Array(documents.values)) }

    static func lines(_ documents: [Document]) -> [String] {
      documents.map { "\($0.id!) \($0.revision!) \(String(decoding: $0.text, as: UTF8.self))" }.sorted()
    }
  }

  private static func text(_ age: Int) -> [UInt8] { Array(#"{"age":\#(age)}"#.utf8) }

  @Test func `documents that begin to match, change, and stop to match are reported in order`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      try await items.put("b", Self.text(30))
      try await items.put("a", Self.text(20))
      try await items.put("child", Self.text(3))
      var changes = items.observe(.field("age", .greater(17))).makeAsyncIterator()
      func next() async throws -> String {
        switch try await changes.next() {
        case .initial(let documents)?: "initial \(documents.map { "\($0.key) \($0.revision)" })"
        case .inserted(let document)?: "inserted \(document.key) \(try document.value.value()["age"] ?? .null)"
        case .updated(let document)?: "updated \(document.key) \(try document.value.value()["age"] ?? .null)"
        case .removed(let key)?: "removed \(key)"
        case nil: "end"
        }
      }
      #expect(try await next() == #"initial ["a 2", "b 1"]"#)
      try await items.put("child", Self.text(4))
      try await items.put("child", Self.text(18))
      try await items.put("child", Self.text(19))
      #expect(try await next() == "inserted child 18")
      #expect(try await next() == "updated child 19")
      try await items.put("child", Self.text(1))
      #expect(try await next() == "removed child")
      _ = try await items.putMany([Write("c", Self.text(40)), Write("a", Self.text(2)), Write("b", .list([]))])
      let together = Set([try await next(), try await next(), try await next()])
      #expect(together == ["inserted c 40", "removed a", "removed b"])
      _ = try await items.delete("child")
      _ = try await items.putMany([
        Write("d", Self.text(50)), Write("é", Self.text(50)), Write("e\u{301}", Self.text(51)),
      ])
      #expect(
        Set([try await next(), try await next(), try await next()])
          == ["inserted d 50", "inserted é 50", "inserted e\u{301} 51"])
      _ = try await items.delete("c")
      #expect(try await next() == "removed c")
      _ = try await items.deleteAll()
      #expect(
        [try await next(), try await next(), try await next()] == ["removed d", "removed e\u{301}", "removed é"])
    }
  }

  @Test func `documents can be observed as values of a type, and the error of the decoder ends that`() async throws {
    struct Person: Codable, Equatable { let age: Int }
    try await withServer { client, _ in
      let items = client.store("items")
      try await items.put("a", Self.text(20))
      var changes = items.observe(.field("age", .exists()), as: Person.self).makeAsyncIterator()
      #expect(
        try await changes.next() == .initial([LiveDocument(key: "a", revision: 1, value: Person(age: 20))]))
      try await items.put("b", Self.text(21))
      #expect(try await changes.next() == .inserted(LiveDocument(key: "b", revision: 2, value: Person(age: 21))))
      try await items.put("c", Array(#"{"age":"old"}"#.utf8))
      await #expect(throws: DecodingError.self) { try await changes.next() }
      #expect(try await changes.next() == nil)
    }
  }

  @Test func `a document is removed once it has expired, unless it was written again`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      let start = ContinuousClock.now
      try await items.put("a", Self.text(20), expiresIn: .milliseconds(300))
      try await items.put("b", Self.text(20), expiresIn: .milliseconds(350))
      var changes = items.observe(.field("age", .greater(17))).makeAsyncIterator()
      guard case .initial(let documents)? = try await changes.next() else { throw Unexpected() }
      #expect(documents.map(\.key) == ["a", "b"])
      try await items.put("b", Self.text(21))
      guard case .updated(let b)? = try await changes.next() else { throw Unexpected() }
      #expect(b.key == "b")
      try await items.put("c", Self.text(22), expiresIn: .milliseconds(600))
      guard case .inserted(let c)? = try await changes.next() else { throw Unexpected() }
      #expect(c.key == "c")
      for (key, expiry) in [("a", Duration.milliseconds(300)), ("c", .milliseconds(600))] {
        guard case .removed(key: key)? = try await changes.next() else { throw Unexpected() }
        #expect(ContinuousClock.now - start >= expiry)
      }
      #expect(try await items.find(.all).result().documents.map(\.id) == ["b"])
    }
  }

  private struct Unexpected: Error {}

  @Test func `an observed document is removed once it expires, even without a connection`() async throws {
    let server = try TestServer.start(stores: ["items": "log"])
    let items = server.client.store("items")
    try await items.put("a", Self.text(20), expiresIn: .seconds(1))
    try await items.put("b", Self.text(20))
    var changes = items.observe(.field("age", .greater(17))).makeAsyncIterator()
    guard case .initial(let documents)? = try await changes.next() else { throw Unexpected() }
    try #require(documents.map(\.key) == ["a", "b"])
    await server.stop()
    guard case .removed(key: "a")? = try await changes.next() else { throw Unexpected() }
    try server.restart()
    try await items.put("c", Self.text(20))
    guard case .inserted(let c)? = try await changes.next() else { throw Unexpected() }
    #expect(c.key == "c")
    await server.stop()
  }

  @Test func `with concurrent writes and lost connections, the changes make the set that matches`() async throws {
    let seed = SeededGenerator.seeds(1).lowerBound
    try await withServer { client, server in
      let path = String("\(server.addresses[0])".dropFirst("unix:".count))
      let items = client.store("items")
      let writer = try LarderClient("\(server.addresses[0])")
      let selector: Selector = .field("age", .less(50)) || .field("end", .exists())
      let observing = Task {
        var result = Result()
        for try await change in items.observe(selector) {
          result.apply(change)
          if case .inserted(let document) = change, document.key == "~end" { break }
        }
        return result
      }
      try await withThrowingTaskGroup { group in
        for number in 0..<4 {
          group.addTask {
            var random = SeededGenerator(seed: seed + UInt64(number))
            for _ in 0..<500 {
              let key = "k\(Int.random(in: 0..<40, using: &random))"
              // Whether a write was made before its connection was lost doesn't matter here.
              do throws(LarderError) {
                switch Int.random(in: 0..<20, using: &random) {
                case 0...3: _ = try await writer.store("items").delete(key)
                case 4: _ = try await writer.store("items").deleteAll()
                case 5...6:
                  let writes = (0..<10).map { Write("k\($0)", Self.text(Int.random(in: 0..<100, using: &random))) }
                  _ = try await writer.store("items").putMany(writes)
                default:
                  try await writer.store("items").put(key, Self.text(Int.random(in: 0..<100, using: &random)))
                }
              } catch { #expect(error.kind == .disconnected || error.kind == .connectFailed) }
            }
          }
        }
        group.addTask {
          for _ in 0..<20 {
            try await Task.sleep(for: .milliseconds(5))
            cutConnections(to: path)
          }
        }
        try await group.waitForAll()
      }
      let final = try await items.find(selector).result().documents
      try await items.put("~end", Array(#"{"end":true}"#.utf8))
      var result = try await observing.value
      result.apply(.removed(key: "~end"))
      #expect(result.lines == Result.lines(final), "LARDER_SEED=\(seed)")
      #expect(result.changeCount > 100)
      await writer.shutdown()
    }
  }

  @Test func `a slow consumer and a killed server neither lose nor repeat observed changes`() async throws {
    let folder = try TemporaryFolder()
    let address = "unix:\(folder.path)/larder.sock"
    let options = ["--data", "\(folder.path)/data", "--store", "items=log"]
    var server = try ServerProcess(address: address, options: options)
    let client = try LarderClient(address)
    let items = client.store("items").with(timeout: .seconds(20))
    for number in 0..<10 { try await items.put("k\(number)", Self.text(number)) }
    var changes = items.observe(.field("age", .less(1_000))).makeAsyncIterator()
    var result = Result()
    result.apply(try #require(try await changes.next()))
    for round in 1...3 {
      // The feed that a server keeps ends with the process.
      _ = server.end(with: SIGKILL)
      server = try ServerProcess(address: address, options: options)
      let writer = try LarderClient(address)
      _ = try await writer.store("items").delete("k\(round)")
      try await writer.store("items").put("k0", Self.text(round))
      try await writer.store("items").put("new \(round)", Self.text(round))
      await writer.shutdown()
      while result.documents["new \(round)"] == nil { result.apply(try #require(try await changes.next())) }
      #expect(result.documents["k\(round)"] == nil)
    }
    #expect(result.lines == Result.lines(try await items.find(.all).result().documents))
    // What did not change was not repeated: of each round's changes there are three.
    #expect(result.changeCount == 1 + 9)
    await client.shutdown()
    _ = server.end(with: SIGTERM)
  }

  @Test func `a consumer that falls behind gets the differences`() async throws {
    try await withServer {
      $0.limits.maxChangeFeedBytes = 1 << 20
    } _: { client, _ in
      let items = client.store("items")
      var changes = items.observe(.field("age", .less(1_000))).makeAsyncIterator()
      var result = Result()
      result.apply(try #require(try await changes.next()))
      let filling = String(repeating: "x", count: 10_000)
      for number in 0..<600 {
        try await items.put("k\(number % 300)", Array(#"{"age":\#(number),"filling":"\#(filling)"}"#.utf8))
      }
      _ = try await items.delete("k0")
      // In the differences, too, this document is the last one.
      try await items.put("~end", Self.text(1))
      while result.documents["~end"] == nil { result.apply(try #require(try await changes.next())) }
      #expect(result.lines == Result.lines(try await items.find(.all).result().documents))
      #expect(result.changeCount < 600, "some documents were read only once")
    }
  }

  @Test func `an observation that can't begin throws`() async throws {
    try await withServer { client, _ in
      func kind(_ store: String, _ selector: Selector) async -> LarderError.Kind? {
        var changes = client.store(store).observe(selector).makeAsyncIterator()
        do {
          _ = try await changes.next()
          return nil
        } catch { return (error as? LarderError)?.kind }
      }
      #expect(await kind("nothing", .all) == .storeUnknown)
      #expect(await kind("items", .text("a")) == .illegalArgument)
      await client.shutdown()
      #expect(await kind("items", .all) != nil)
    }
  }

  @Test func `an observation ends with its iterator, its task or its store`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      do {
        var changes = items.observe(.all).makeAsyncIterator()
        _ = try await changes.next()
        #expect(try await items.stats()["watches"] == 1)
      }
      while try await items.stats()["watches"] != 0 { try await Task.sleep(for: .milliseconds(1)) }
      let task = Task { () -> LarderError? in
        do {
          for try await _ in items.observe(.all) {}
          return nil
        } catch { return error as? LarderError }
      }
      while try await items.stats()["watches"] != 1 { try await Task.sleep(for: .milliseconds(1)) }
      task.cancel()
      #expect(await task.value?.kind == .cancelled)
      while try await items.stats()["watches"] != 0 { try await Task.sleep(for: .milliseconds(1)) }
      var changes = items.observe(.all).makeAsyncIterator()
      _ = try await changes.next()
      try await client.dropStore("items")
      let error = await #expect(throws: LarderError.self) { try await changes.next() }
      #expect(error?.kind == .storeUnknown)
      #expect(try await changes.next() == nil)
    }
  }

  @Test func `changes of a thousand documents are observed one by one`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      _ = try await items.putMany((0..<1_000).map { Write("k\($0)", Self.text($0)) })
      var changes = items.observe(.field("age", .greaterOrEqual(0))).makeAsyncIterator()
      guard case .initial(let documents)? = try await changes.next() else { throw Unexpected() }
      #expect(documents.count == 1_000)
      for number in 0..<200 {
        try await items.put("k\(number)", Self.text(number + 1))
        guard case .updated(let document)? = try await changes.next() else { throw Unexpected() }
        #expect(document.key == "k\(number)")
      }
    }
  }
}
