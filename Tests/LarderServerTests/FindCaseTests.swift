import Documents
import Foundation
import LarderServer
import Storage
import TestSupport
import Testing
import Wire

extension ServerTests {
  /// The cases of the semantics of selectors, on the server: by a scan, with indexes, and by each index that can serve.
  struct FindCaseTests {
    private struct Case {
      let json: JSONValue
      var name: String { json["name"]?.string ?? "" }
      var isError: Bool { json["error"] == true }

      /// Checks what a find has found.
      func check(_ found: FoundReply, _ context: String) throws {
        var ids = found.keys
        var expected = json["expect"]?.array?.compactMap(\.string) ?? []
        if json["ordered"] != true {
          ids.sort()
          expected.sort()
        }
        #expect(!isError && ids == expected, "\(name) \(context)")
        guard let projections = json["expect_docs"] else { return }
        let documents = try found.documents.map { try JSONValue(parsing: $0.value.span) }
        #expect(JSONValue.array(documents) == projections, "\(name) \(context)")
      }

      func request(id: UInt32, index: String? = nil) -> [UInt8] {
        func text(_ name: String) -> String { json[name]?.description ?? "" }
        func count(_ name: String) -> UInt32 { json[name].flatMap { UInt32($0.description) } ?? 0 }
        let limit = count("limit")
        return Request.find(
          id: id, limit: limit == 0 ? nil : limit, skip: UInt64(count("skip")), selector: text("selector"),
          sort: text("sort"), fields: text("fields"), index: index)
      }

      /// Whether the wire can express it: an error may be in what is no text there.
      var isExpressible: Bool {
        ["limit", "skip"].allSatisfy { json[$0].map { UInt32($0.description) != nil } ?? true }
      }
    }

    @Test func `on every engine, every selector case finds the expected documents by scan and by index`() throws {
      let file = ProjectFiles.url("Protocol/vectors/documents/selectors.json")
      let json = try JSONValue(parsing: Array(Data(contentsOf: file)).span)
      guard case .object(let sets)? = json["sets"] else { throw TestClient.Failure.timedOut }
      let cases = try #require(json["cases"]?.array).filter { $0["requires"] == nil }.map { Case(json: $0) }
      let opened = try StoresOfAllEngines()
      let server = try TestServer(serving: opened.stores)
      var hintedCount = 0
      for store in opened.stores {
        let client = try server.connect(credit: 1 << 30, store: store.name.text)
        for (set, documents) in sets {
          let cases = cases.filter { $0.json["set"]?.string == set && $0.isExpressible }
          let documents = try #require(documents.array)
          for document in documents {
            guard case .object(var members) = document, let id = document["_id"]?.string else { continue }
            members["_id"] = nil
            #expect(try client.call(Request.put(id, JSONValue.object(members).encoded(), id: 3)).isDone)
          }
          try check(cases, client, index: nil)
          let names = try ensureIndexes(of: documents, client)
          #expect(
            try eventually { try client.call(Request.make(.indexList, id: 5)).message.contains("building") == false })
          try check(cases, client, index: nil)
          for name in names { hintedCount += try check(cases, client, index: name) }
          for name in names { #expect(try client.call(Request.make(.indexDelete, id: 6, Array(name.utf8))).isDone) }
          #expect(try client.call(Request.make(.deleteAll, id: 7)).isDone)
        }
      }
      #expect(hintedCount > 200)
    }

    /// - Parameter index: The index to use; nil to let the server choose.
    /// - Returns: The number of cases that were found.
    @discardableResult
    private func check(_ cases: [Case], _ client: TestClient, index: String?) throws -> Int {
      var foundCount = 0
      for test in cases {
        try client.send(test.request(id: 9, index: index))
        let first = try client.receive()
        guard first.isDone else {
          #expect(first.isError(.illegalArgument, id: 9), "\(first)")
          #expect(test.isError || index != nil && first.message.contains("index"), "\(test.name) \(first)")
          continue
        }
        var frames = [first]
        while frames.last!.more { frames.append(try client.receive()) }
        try test.check(FoundReply(frames), index ?? "without a hint")
        foundCount += 1
      }
      return foundCount
    }

    /// Creates an index for each path in some documents, up to two names deep, and one for each two of them.
    private func ensureIndexes(of documents: [JSONValue], _ client: TestClient) throws -> [String] {
      var paths: Set<String> = []
      func add(_ value: JSONValue, _ names: [String]) {
        switch value {
        case .object(let members):
          for (name, member) in members {
            let path = names + [FieldPath(names: [name]).description]
            paths.insert(path.joined(separator: "."))
            if path.count < 2 { add(member, path) }
          }
        case .array(let elements): for element in elements { add(element, names) }
        default: break
        }
      }
      for document in documents { add(document, []) }
      let sorted = paths.sorted().prefix(30)
      var definitions = sorted.map { path in [path] }
      for (first, second) in zip(sorted, sorted.dropFirst()) { definitions.append([second, first]) }
      return try definitions.map { fields in
        let fields: [JSONValue] = fields.enumerated().map { $0 == 0 ? .string($1) : [$1: "desc"] }
        let definition: JSONValue = ["fields": .array(fields)]
        let reply = try client.call(Request.make(.indexEnsure, id: 8, definition.encoded()))
        return try #require(unsafe EnsuredIndex(reply.body.span.bytes), "\(reply)").name
      }
    }
  }
}
