import Documents
import LarderServer
import Platform
import Testing

@testable import Larder

/// Documents of a real server: indexes, finds that use them, groups and changes.
@Suite(.serialized) struct DocumentTests {
  private static let species = ["cat", "dog", "fish"]

  /// Puts documents with the ages 0 to 49, and arrays of ages now and then.
  private func putDocuments(_ count: Int, in store: RemoteStore) async throws {
    for start in stride(from: 0, to: count, by: 500) {
      try await store.putMany(
        (start..<min(start + 500, count)).map { number in
          let age = number % 10 == 0 ? "[\(number % 50),99]" : "\(number % 50)"
          let text = #"{"age":\#(age),"pet":{"species":"\#(Self.species[number % 3])"},"n":\#(number)}"#
          return Write("\(10_000 + number)", Array(text.utf8))
        })
    }
  }

  private enum Work: CaseIterable {
    case count, group, update

    /// Returns the number of documents or groups that match.
    func run(_ selector: Selector, in store: RemoteStore) async throws -> UInt64 {
      switch self {
      case .count: try await store.count(selector)
      case .group: UInt64(try await store.groups(of: selector, by: ["n"]).count)
      case .update:
        try await store.update(where: selector, DocumentUpdate(changes: [.set("seen", to: true)]), dryRun: true).matched
      }
    }
  }

  @Test(arguments: Work.allCases)
  private func `a find runs for the requested time, up to the server's limit`(_ work: Work) async throws {
    for isAllowed in [true, false] {
      try await withServer { configuration in
        configuration.limits.findTime = .milliseconds(1)
        configuration.limits.maxFindTime = isAllowed ? .seconds(60) : .milliseconds(1)
      } _: { client, _ in
        let (store, patient) = (client.store("items"), client.store("items").with(findTime: .seconds(60)))
        try await putDocuments(5_000, in: store)
        let selector = Selector.field("pet.species", try .regex("(a|b|c)*t$"))
        for store in isAllowed ? [store] : [store, patient] {
          do {
            _ = try await work.run(selector, in: store)
            Issue.record("it took less than a millisecond")
          } catch let error as LarderError {
            #expect(error.kind == .queryStopped && error.message.contains("limits.max-find-time"))
          }
        }
        if isAllowed { #expect(try await work.run(selector, in: patient) == 1_667) }
      }
    }
  }

  @Test(arguments: [1, 7, 100, 65_536])
  func `changes in batches change each document once, and go on after a document`(_ batchSize: Int) async throws {
    try await withServer { client, _ in
      let store = client.store("items")
      let count: UInt64 = batchSize == 1 ? 30 : 500
      try await putDocuments(Int(count), in: store)
      let update = try DocumentUpdate(changes: [.increment("n")])
      func sum() async throws -> JSONValue? { try await store.groups(by: [], computing: [.sum("n")]).first?.values[0] }
      let before = count * (count - 1) / 2
      var batches: [ChangedBatch] = []
      let all = try await store.updateInBatches(where: .all, update, batchSize: batchSize) { batches.append($0) }
      #expect(all.matched == count && all.changed == count && all.lastID == nil)
      #expect(try await sum() == .integer(Int64(before + count)))
      #expect(batches.last == all && batches.map(\.matched) == batches.map(\.matched).sorted())
      #expect(batches.count >= Int(count) / batchSize)
      // What comes after a document.
      let id = "\(10_000 + count / 2 - 1)"
      let rest = try await store.updateInBatches(where: .all, update, batchSize: batchSize, after: id)
      #expect(rest.changed == count / 2)
      #expect(try await sum() == .integer(Int64(before + count + count / 2)))
      let dry = try await store.deleteInBatches(where: .all, batchSize: batchSize, dryRun: true)
      #expect(dry.changed == count)
      #expect(try await store.count() == count)
      let deleted = try await store.deleteInBatches(where: .field("_id", .less(.string(id))), batchSize: batchSize)
      #expect(deleted.changed == count / 2 - 1)
      #expect(try await store.count() == count / 2 + 1)
    }
  }

  @Test func `an index is built, listed, used and deleted`() async throws {
    try await withServer { client, _ in
      let store = client.store("items")
      try await putDocuments(1_000, in: store)
      let selector = Selector.field("age", .greaterOrEqual(10) && .less(12))
      let expected = try await store.find(selector).result().documents.map(\.id)
      let name = try await store.ensureIndex(on: ["age"])
      let status = try await store.waitForIndex(named: name)
      #expect(status.state == .ready && status.progress == 1 && status.documents == 1_000)
      #expect(status.entries > 1_000 && status.arrayFields == ["age"] && status.memoryBytes > 1_000)
      #expect(try await store.indexes() == [status])
      let result = try await store.find(DocumentQuery(selector), using: name).result()
      #expect(result.documents.map(\.id) == expected)
      #expect(result.statistics.examinedDocumentCount < 400 && result.statistics.examinedKeyCount > 0)
      #expect(try await store.count(selector, using: name) == UInt64(expected.count))
      let explanation = try await store.find(selector).explanation()
      #expect(explanation.json["plan"]?["kind"] == "index" && explanation.json["plan"]?["index"] == "age")
      #expect(explanation.statistics.returnedDocumentCount == expected.count)
      #expect(try await store.deleteIndex(named: name))
      #expect(try await store.deleteIndex(named: name) == false)
      #expect(try await store.find(selector).explanation().json["plan"]?["kind"] == "scan")
      #expect(try await store.find(selector).result().documents.map(\.id) == expected)
    }
  }

  @Test func `a change that takes long keeps no other call waiting`() async throws {
    try await withServer {
      $0.limits.findTime = .seconds(60)
    } _: { client, _ in
      let store = client.store("items")
      try await putDocuments(20_000, in: store)
      func updates(_ count: Int) throws -> WriteBatch {
        var batch = WriteBatch()
        for number in 0..<count { try batch.increment("x", of: "\(10_000 + number)", by: 1) }
        return batch
      }
      try await store.apply(updates(64))
      #expect(try await client.busiestConnections().count == 1)
      try await store.apply(updates(65))
      #expect(try await client.busiestConnections().count == 2)
      let conditions = (0..<250).map { #"{"pet.species":{"$regex":"q+\#($0)$"}}"# }.joined(separator: ",")
      let slow = try Selector(parsing: "{\"$or\":[\(conditions)]}")
      let increment = try DocumentUpdate(changes: [.increment("n")])
      let update = Task { try await store.with(timeout: .seconds(60)).update(where: slow, increment) }
      while try await client.stats()["finds"] == 0 { try await Task.sleep(for: .milliseconds(1)) }
      try await store.put("a", [1])
      #expect(try await store.get("a")?.bytes == [1])
      // It goes on.
      #expect(try await client.stats()["finds"] == 1)
      update.cancel()
      await #expect(throws: LarderError.self) { try await update.value }
    }
  }

  @Test func `definitions that don't go together are refused`() async throws {
    try await withServer { client, _ in
      let store = client.store("items")
      let index = try DocumentIndex(["age"], where: .field("pet.species", .equal("cat")), name: "cats")
      #expect(try await store.ensureIndex(index))
      #expect(try await store.ensureIndex(index) == false)
      let other = try DocumentIndex(["age"] as [String], name: "cats")
      let (exists, _) = await failure { () async throws(LarderError) in try await store.ensureIndex(other) }
      #expect(exists?.kind == .indexExists)
      for number in 1..<64 { try await store.ensureIndex(on: [SortField(FieldPath(names: ["f\(number)"]))]) }
      let (full, _) = await failure { () async throws(LarderError) in try await store.ensureIndex(on: ["more"]) }
      #expect(full?.kind == .tooManyIndexes)
      let (unknown, _) = await failure { () async throws(LarderError) in try await store.waitForIndex(named: "more") }
      #expect(unknown?.kind == .indexUnknown)
      #expect(try await store.indexes().count == 64)
    }
  }

  @Test func `groups are those of the documents in memory`() async throws {
    try await withServer { client, _ in
      let store = client.store("items")
      try await putDocuments(300, in: store)
      let documents = try await store.find(.all).result().documents
      let selector = Selector.field("n", .less(250))
      let aggregates: [Aggregate] = [.count, .sum("age"), .average("age"), .min("n"), .max("none")]
      for fields: [FieldPath] in [[], ["age"], ["pet.species", "age"], ["none"]] {
        let groups = try await store.groups(of: selector, by: fields, computing: aggregates)
        #expect(try groups == documents.groups(of: selector, by: fields, computing: aggregates))
      }
      #expect(try await store.distinct("age", selector) == documents.distinct("age", selector))
    }
  }

  @Test func `documents that match are updated and deleted in one step`() async throws {
    try await withServer { client, _ in
      let store = client.store("items")
      try await putDocuments(300, in: store)
      try await store.put("other", Array("no document".utf8))
      let revision = try #require(try await store.get("other")).revision
      let cats = Selector.field("pet.species", .equal("cat"))
      let update = try DocumentUpdate(changes: [.set("pet.species", to: "dog")])
      let planned = try await store.update(where: cats, update, dryRun: true)
      #expect(planned.matched == 100 && planned.changed == 100 && planned.revision == nil)
      #expect(try await store.count(cats) == 100)
      let updated = try await store.update(where: cats, update)
      #expect(updated.matched == 100 && updated.changed == 100 && updated.revision == revision + 1)
      #expect(updated.statistics.examinedDocumentCount == 301)
      #expect(try await store.count(cats) == 0)
      let dogs = Selector.field("pet.species", .equal("dog"))
      let again = try await store.update(where: dogs, update)
      #expect(again.matched == 200 && again.changed == 0 && again.revision == nil)
      let deleted = try await store.delete(where: dogs)
      #expect(deleted.matched == 200 && deleted.changed == 200 && deleted.revision == revision + 2)
      #expect(try await store.count() == 101)
    }
  }

  @Test func `an update that is impossible in one document changes none`() async throws {
    try await withServer { client, _ in
      let store = client.store("items")
      try await putDocuments(20, in: store)
      let update = try DocumentUpdate(changes: [.increment("age")])
      for dryRun in [true, false] {
        let (error, _) = await failure { () async throws(LarderError) in
          try await store.update(where: .all, update, dryRun: dryRun)
        }
        #expect(error?.kind == .illegalArgument && error?.message.contains("10000") == true)
      }
      #expect(try await store.stats()["revision"] == 1)
    }
  }
}
