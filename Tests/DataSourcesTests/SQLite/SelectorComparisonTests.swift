import DataSources
import DocumentTestSupport
import Documents
import Foundation
import Larder
import LarderTesting
import SQLiteDataSource
import TestSupport
import Testing

/// The same requests, evaluated in memory, translated to SQL and sent to a server.
@Suite struct SelectorComparisonTests {
  /// The number of requests of one seed: of so many for each store.
  private static let (storeCount, requestCount) = (10, 100)

  /// For a thorough run, set `LARDER_SEEDS` to the number of seeds. Each compares the answers to 1,000 requests.
  @Test func `random requests have the same answers in memory, in SQLite and on a server`() async throws {
    var (count, matchCount) = (0, 0)
    for seed in SeededGenerator.seeds(1) {
      var random = SeededGenerator(seed: seed)
      let folder = try TemporaryFolder()
      let database = try SQLiteDatabase(file: folder.url.appendingPathComponent("stores"))
      let server = try TestServer.start()
      for number in 0..<Self.storeCount {
        let batch = try RequestBatch(&random, count: Self.requestCount)
        let table = try await batch.table(in: database, named: "s\(number)")
        let store = try await batch.store(on: server.client, named: "s\(number)")
        for request in batch.requests {
          let expected = try batch.documents.find(request).documents.map { KeyAndValue($0) }
          let (inTable, inStore) = (try await table.answer(request), try await store.answer(request))
          let context = "LARDER_SEED=\(seed) \(request.json)\n\(batch)"
          #expect(inTable == expected, "SQLite, \(context)")
          #expect(inStore == expected, "the server, \(context)")
          count += 1
          if !expected.isEmpty { matchCount += 1 }
        }
      }
      await server.stop()
    }
    print("\(count) requests, \(matchCount) with matches")
    #expect(matchCount > count / 10)
  }
}

/// A document of an answer.
private struct KeyAndValue: Equatable {
  let key: String
  let value: JSONValue

  init(_ document: Document) {
    key = document.id!
    value = try! JSONValue(parsing: document.text.span)
  }

  init(_ entry: KeyValueEntry<JSONValue>) {
    key = entry.key
    value = entry.value.single ?? .null
  }
}

extension KeyValueDataSource<JSONValue> {
  fileprivate func answer(_ request: DocumentQuery) async throws -> [KeyAndValue] {
    try await entries(matching: request).map { KeyAndValue($0) }
  }
}

/// Values, most of which are documents, and requests about them.
private struct RequestBatch: CustomStringConvertible {
  let requests: [DocumentQuery]
  /// The values as documents, in the order of their keys.
  let documents: [Document]
  private let values: [(key: String, value: JSONValue)]
  private let indexes: [DocumentIndex]

  init(_ random: inout SeededGenerator, count: Int) throws {
    var plans = PlanGenerator(
      SeededGenerator(seed: random.next()), PlanGenerator.Style.allCases.randomElement(using: &random)!)
    var anything = QueryGenerator(SeededGenerator(seed: random.next()))
    var documents: [Document] = []
    var values: [(key: String, value: JSONValue)] = []
    let texts =
      plans.documents(plans.pick([1, 10, 20])).map { (key: $0.id!, text: String(decoding: $0.text, as: UTF8.self)) }
      + (0..<10).map { (key: "other \($0)", text: anything.text()) } + [("number", "1"), ("array", "[{}]")]
    for (key, text) in texts {
      // Values are stored as Foundation's encoder writes them. It doesn't write all of them.
      guard let value = try? JSONValue(parsing: text), let bytes = try? JSONEncoder().encode(value) else { continue }
      values.append((key, value))
      documents.append(Document([UInt8](bytes), id: key))
    }
    self.values = values
    self.documents = documents
    indexes = try plans.indexes().map(\.index)
    var requests: [DocumentQuery] = []
    while requests.count < count {
      let json = plans.isLucky(0.5) ? anything.query() : plans.query(like: indexes).json
      // A database has no revisions.
      guard var request = try? DocumentQuery(json), !"\(json)".contains("_rev") else { continue }
      request.fields = []
      requests.append(request)
    }
    self.requests = requests
  }

  var description: String {
    documents.map { "\($0.id!): \(String(decoding: $0.text, as: UTF8.self))" }.joined(separator: "\n")
  }

  private var entries: [KeyValueEntry<JSONValue>] {
    values.map { KeyValueEntry(key: $0.key, value: .single($0.value)) }
      + [KeyValueEntry(key: "list", value: .list([["a": 1]]))]
  }

  /// Writes the values to a store of a database that has indexes on some fields.
  func table(in database: SQLiteDatabase, named name: String) async throws -> SQLiteDataSource<JSONValue, JSONValue> {
    let paths = Set(indexes.flatMap { $0.fields.map(\.path) }).filter { $0.names[0] != "_id" }
    let source = try SQLiteDataSource(database, store: name, of: JSONValue.self, indexes: Array(paths))
    try await source.store(entries)
    return source
  }

  /// Writes the values to a store of a server that has indexes.
  func store(on client: LarderClient, named name: String) async throws -> RemoteDataSource<JSONValue> {
    let source = client.dataSource(of: JSONValue.self, store: name, creating: "memory")
    try await source.store(entries)
    for index in indexes { try await source.store.ensureIndex(index) }
    return source
  }
}
