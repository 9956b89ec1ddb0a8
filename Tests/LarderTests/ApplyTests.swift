import Documents
import Platform
import Testing
import Wire

@testable import Larder

/// Several operations in one step, with a real server and with one that replies what a test says.
@Suite(.serialized) struct ApplyTests {
  @Test func `all operations of a batch take effect in one step`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      let first = try await items.put("mike12", #"{"name":"mike","age":12,"pet":"cat"}"#.utf8)
      try await items.put("old", [1])
      let revision = try await items.apply { batch in
        batch.check("mike12", hasRevision: first)
        batch.checkAbsent("new")
        try batch.increment("age", of: "mike12")
        try batch.merge(["pet": nil], into: "mike12")
        batch.put("new", [1, 2], if: .absent, expiresIn: .seconds(60))
        batch.put("list", list: [[1], []])
        batch.delete("old")
        try batch.increment("n", of: "visits", by: 5, orCreate: true)
        #expect(batch.count == 8 && !batch.isEmpty)
      }
      #expect(revision == first + 2)
      let mike = try await items.get("mike12")
      #expect(mike?.revision == revision && mike?.bytes == Array(#"{"name":"mike","age":13}"#.utf8))
      let new = try await items.get("new")
      #expect(new?.bytes == [1, 2] && new?.expiresIn != nil && new?.revision == revision)
      #expect(try await items.get("list")?.value == .list([[1], []]))
      #expect(try await items.get("old") == nil)
      #expect(try await items.get("visits")?.bytes == Array(#"{"n":5}"#.utf8))
      #expect(try await items.apply(WriteBatch()) == nil)
      #expect(try await items.apply { $0.check("mike12", hasRevision: revision!) } == nil)
    }
  }

  @Test func `a condition that does not hold, and an update without an entry, change nothing`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      let revision = try await items.put("a", "{}".utf8)
      var batch = WriteBatch()
      batch.put("b", [1])
      batch.check("a", hasRevision: revision + 1)
      let (failed, _) = await failure { () async throws(LarderError) in try await items.apply(batch) }
      #expect(failed?.kind == .conditionFailed && failed?.outcome == .rejected)
      #expect(failed?.message == #"operation 2 on "a": the entry has revision 1, not 2"#)
      batch = WriteBatch()
      batch.put("b", [1])
      batch.update("c", try DocumentUpdate(["x": 1]))
      let (missing, _) = await failure { () async throws(LarderError) in try await items.apply(batch) }
      #expect(missing?.kind == .notFound && missing?.message.hasPrefix(#"operation 2 on "c": "#) == true)
      #expect(try await items.count() == 1)
      struct Stop: Error {}
      await #expect(throws: Stop.self) {
        try await items.apply { batch in
          batch.put("b", [1])
          throw Stop()
        }
      }
      #expect(try await items.count() == 1)
    }
  }

  @Test func `a batch is checked before it is sent`() async throws {
    let server = try FakeServer()
    let items = try LarderClient(server.address, configuration: configuration()).store("items")
    let batches: [((inout WriteBatch) -> Void, LarderError.Kind)] = [
      ({ $0.delete("") }, .keyInvalid), ({ $0.checkAbsent(String(repeating: "k", count: 5_000)) }, .keyInvalid),
      ({ $0.put("a", [UInt8](repeating: 0, count: 1 << 19 + 1)) }, .valueTooLarge),
      ({ $0.put("a", [], expiresIn: .zero) }, .illegalArgument),
      ({ for number in 0...1_000 { $0.delete("\(number)") } }, .illegalArgument),
    ]
    for (add, kind) in batches {
      var batch = WriteBatch()
      add(&batch)
      let complete = batch
      let (error, _) = await failure { () async throws(LarderError) in try await items.apply(complete) }
      #expect(error?.kind == kind, "\(kind)")
      // Half of a batch is another one.
      #expect(error?.message.contains("split") == false, "\(kind)")
      if batch.count > 1 { #expect(error?.message.hasPrefix("the call has 1001 operations; ") == true) }
    }
    #expect(server.count(of: .apply) == 0)
    var batch = WriteBatch()
    #expect(throws: DocumentUpdateError.self) { try batch.merge(["$set": ["a": 1]], into: "a") }
    #expect(throws: DocumentUpdateError.self) { try batch.merge([1], into: "a") }
    #expect(throws: DocumentUpdateError.self) { try batch.increment("a..b", of: "a") }
    #expect(throws: DocumentUpdateError.self) { try batch.increment("a", of: "a", by: "1") }
    #expect(batch.isEmpty)
  }

  @Test func `an apply is not repeated when the connection is lost`() async throws {
    let server = try FakeServer { $0.operation == .apply ? .hangUp([]) : .answer }
    let items = try LarderClient(server.address, configuration: configuration()).store("items")
    var batch = WriteBatch()
    batch.put("a", [1])
    let complete = batch
    let (error, _) = await failure { () async throws(LarderError) in try await items.apply(complete) }
    #expect(error?.kind == .disconnected && error?.outcome == .unknown && error?.isSafeToRetry == false)
    #expect(server.count(of: .apply) == 1)
  }
}
