import TestSupport
import Testing
import Wire

extension ServerTests {
  /// What watches get of an apply: `Protocol/wire.md` §6.5.
  struct ApplyRecordTests {
    /// A change record in short: the key, and the number in the document, or nil if the entry was deleted.
    private struct Record: Equatable {
      let key: String
      let number: Int?

      init(_ key: String, _ number: Int?) { (self.key, self.number) = (key, number) }

      init(_ change: TestChange) throws {
        let isDeleted = change.kind == .deleted
        self.init(change.key, isDeleted ? nil : try ApplyTests.number(in: change.value))
      }
    }

    private static let increment = #"{"$inc":{"n":1}}"#

    private static func put(_ key: String, _ number: Int) -> TestOperation {
      .put(key, ApplyTests.document(number))
    }

    /// Operations on a store in which the number of a is 1 and that of b is 2, and their records.
    private static let cases: [(operations: [TestOperation], records: [Record])] = [
      // An entry that is updated has one record, in the place of its last operation.
      ([.update("a", increment), .update("a", increment)], [Record("a", 3)]),
      ([put("a", 5), .update("a", increment)], [Record("a", 6)]),
      ([.update("a", increment), put("a", 5)], [Record("a", 5)]),
      ([.update("a", increment), .delete("a")], [Record("a", nil)]),
      ([.delete("a"), .update("a", increment, creates: true)], [Record("a", 1)]),
      ([.update("a", increment), .delete("a"), put("a", 7)], [Record("a", 7)]),
      ([.update("a", increment), .update("b", increment), .update("a", increment)], [Record("b", 3), Record("a", 3)]),
      // What makes no difference has none.
      ([.update("a", #"{"$set":{"n":1}}"#), .update("b", increment)], [Record("b", 3)]),
      ([.update("new", increment, creates: true), .delete("new")], []),
      ([put("new", 1), .update("new", increment), .delete("new")], []),
      ([.update("a", increment), .delete("absent"), .check("b", revision: 1)], [Record("a", 2)]),
      // Any other entry has one for each operation that changes it.
      ([.update("a", increment), put("b", 5), put("b", 6)], [Record("a", 2), Record("b", 5), Record("b", 6)]),
      ([put("b", 5), .update("a", increment), .delete("b")], [Record("b", 5), Record("a", 2), Record("b", nil)]),
      ([put("a", 5), put("a", 6)], [Record("a", 5), Record("a", 6)]),
      ([put("new", 5), .delete("new")], [Record("new", 5), Record("new", nil)]),
      ([.delete("a"), .delete("a")], [Record("a", nil)]),
    ]

    /// - Parameter isLarge: Whether the request is so large that a job makes its updates.
    @Test(arguments: [false, true])
    func `a watch reports applies as section 6.5 specifies, also updates made by a job`(isLarge: Bool)
      throws
    {
      let filler = isLarge ? [TestOperation.put("filler", ApplyTests.document(0, size: 8_000))] : []
      for (number, (operations, records)) in Self.cases.enumerated() {
        let server = try TestServer()
        let (client, watcher) = (try server.connect(), try server.connect())
        let entries = [("a", 1), ("b", 2)].map { (key: $0.0, value: ApplyTests.document($0.1)) }
        try #require(client.call(Request.putMany(entries, id: 3)).number == 1)
        try watcher.send(Request.watch(id: 9))
        try #require(watcher.receive().through == 1)
        let expected = records.isEmpty && filler.isEmpty ? 0 : 2
        #expect(try client.call(Request.apply(filler + operations, id: 5)).number == UInt64(expected), "case \(number)")
        // Another write, which shows that nothing more follows.
        try #require(client.call(Self.lastPut).isDone)
        var changes: [TestChange] = []
        while changes.last?.key != "last" { changes += try watcher.receive().changes }
        let found = try changes.dropLast().map { try Record($0) }
        #expect(found.filter { $0.key != "filler" } == records, "case \(number)")
        #expect(changes.dropLast().allSatisfy { $0.revision == 2 }, "case \(number)")
      }
    }

    private static let lastPut = Request.put("last", [], id: 6)
  }
}
