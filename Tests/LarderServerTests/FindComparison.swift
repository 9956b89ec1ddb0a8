import DocumentTestSupport
import Documents
import LarderServer
import Storage
import TestSupport
import Testing
import Wire

/// Compares the replies to random finds with the answers of the reference, on stores of all engines: as the server
/// plans them and by each index, after documents were written before and behind the indexes' creation; then by a scan.
struct FindComparison: CustomStringConvertible {
  private(set) var counts: [String: Int] = [:]
  private(set) var matchCount = 0
  private(set) var refusalCount = 0

  /// The number of replies that were compared.
  var pairCount: Int { counts.values.reduce(0, +) }

  var description: String {
    let counts = counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
    return "\(pairCount) pairs, \(matchCount) with matches, \(refusalCount) refused: \(counts)"
  }

  mutating func run(seed: UInt64, batchCount: Int = 4) throws {
    var random = SeededGenerator(seed: seed)
    var revision: UInt64 = 0
    let batches = try (0..<batchCount).map { _ in try FindBatch(&random, revision: &revision) }
    let answers = try ReferenceBatch.answers(to: batches.map(\.reference))
    let opened = try StoresOfAllEngines()
    let server = try TestServer(serving: opened.stores) { $0.findTime = .seconds(60) }
    for store in opened.stores {
      let client = try server.connect(credit: 1 << 30, store: store.name.text)
      for (batch, answers) in zip(batches, answers) {
        try batch.write(to: client)
        let context = "LARDER_SEED=\(seed) \(store.name)"
        try compare(batch, answers, client, "planned", context)
        for index in batch.indexes { try compare(batch, answers, client, "by an index", index: index.name, context) }
        for index in batch.indexes {
          #expect(try client.call(Request.make(.indexDelete, id: 6, Array(index.name.utf8))).isDone)
        }
        try compare(batch, answers, client, "by a scan", context)
        try batch.delete(from: client)
      }
      #expect(try client.figures(store: 1)["snapshots"] == 0)
    }
  }

  // MARK: Replies

  /// - Parameters:
  ///   - way: How the finds are served.
  ///   - index: The index to use; nil to let the server choose.
  private mutating func compare(
    _ batch: FindBatch, _ answers: [ReferenceBatch.Answer], _ client: TestClient, _ way: String, index: String? = nil,
    _ context: String
  ) throws {
    for (query, answer) in zip(batch.queries, answers) {
      let context = "\(context), \(way) \(index ?? ""): \(query)"
      let count = try reply(to: query.request(countOnly: true, index: index), client)
      guard let ids = answer.ids else {
        // A count reads the whole query, too.
        let page = try reply(to: query.request(index: index), client)
        #expect(count == nil && page == nil, "\(context): should be refused")
        refusalCount += 1
        continue
      }
      if let count {
        #expect(count.documents.isEmpty && count.result.found == UInt64(ids.count), "\(context): \(count.result)")
      } else {
        #expect(index != nil, "\(context): should not be refused")
      }
      guard try comparePages(of: query, answer, batch, client, index, context) else {
        // An index may serve a count, which has no sort, and not the sort.
        #expect(index != nil, "\(context): should not be refused")
        continue
      }
      counts[way, default: 0] += 1
      if !ids.isEmpty { matchCount += 1 }
    }
  }

  /// Compares the documents of up to three pages.
  /// - Returns: false if the query is refused.
  private func comparePages(
    of query: FindBatch.Query, _ answer: ReferenceBatch.Answer, _ batch: FindBatch, _ client: TestClient,
    _ index: String?, _ context: String
  ) throws -> Bool {
    var (start, bookmark) = (min(query.skip, answer.ids!.count), "")
    for _ in 0..<3 {
      guard let page = try reply(to: query.request(bookmark: bookmark, index: index), client) else {
        #expect(bookmark.isEmpty, "\(context)")
        return false
      }
      let end = query.limit.map { min(start + $0, answer.ids!.count) } ?? answer.ids!.count
      #expect(page.keys == Array(answer.ids![start..<end]), "\(context)")
      #expect(page.documents.allSatisfy { $0.revision == batch.documents[$0.text]?.revision }, "\(context)")
      if let projections = answer.projections {
        let found = try page.documents.map { try JSONValue(parsing: $0.value.span) }
        #expect(found == Array(projections[start..<end]), "\(context)")
      } else {
        #expect(page.documents.allSatisfy { $0.value == batch.documents[$0.text]?.text }, "\(context)")
      }
      #expect(page.result.found == UInt64(page.documents.count), "\(context)")
      #expect(page.result.text.isEmpty == (end == answer.ids!.count), "\(context)")
      (start, bookmark) = (end, page.result.text)
      if bookmark.isEmpty { break }
    }
    return true
  }

  /// Returns the reply to a find; nil if the query is refused.
  private func reply(to request: [UInt8], _ client: TestClient) throws -> FoundReply? {
    var frames = [try client.call(request)]
    guard frames[0].isDone else {
      #expect(frames[0].code == .illegalArgument, "\(frames[0])")
      return nil
    }
    while frames.last!.more { frames.append(try client.receive()) }
    return try FoundReply(frames)
  }
}

/// Documents, indexes and queries for one comparison.
struct FindBatch {
  /// A query that the wire can express. It may be malformed.
  struct Query: CustomStringConvertible {
    private let json: JSONValue
    let skip: Int
    /// nil for all documents.
    let limit: Int?

    init?(_ json: JSONValue) {
      self.json = json
      let (skip, limit) = (json["skip"] ?? 0, json["limit"] ?? 0)
      guard let skip = UInt16(skip.description), let limit = UInt16(limit.description) else { return nil }
      self.skip = Int(skip)
      self.limit = limit == 0 ? nil : Int(limit)
    }

    var description: String { json.description }

    /// The query without skip and limit, for the reference.
    var whole: JSONValue {
      guard case .object(var members) = json else { return json }
      members["skip"] = nil
      members["limit"] = nil
      return .object(members)
    }

    func request(countOnly: Bool = false, bookmark: String = "", index: String?) -> [UInt8] {
      func text(_ name: String) -> String { json[name]?.description ?? "" }
      return Request.find(
        id: 7, countOnly: countOnly, limit: limit.map(UInt32.init), skip: UInt64(skip), selector: text("selector"),
        sort: text("sort"), fields: text("fields"), bookmark: bookmark, index: index)
    }
  }

  let indexes: [DocumentIndex]
  let queries: [Query]
  /// The documents in the end, by their keys. Some are no JSON objects.
  let documents: [String: Document]
  let reference: ReferenceBatch
  /// Each of these is one commit. The first one comes before the indexes.
  private let writes: [[(key: String, value: [UInt8])]]
  private let deletedKeys: [String]
  private let firstRevision: UInt64

  /// - Parameter revision: The revision of the store, which will have that after the comparison.
  init(_ random: inout SeededGenerator, revision: inout UInt64) throws {
    var generator = PlanGenerator(
      SeededGenerator(seed: random.next()), PlanGenerator.Style.allCases.randomElement(using: &random)!)
    var anything = QueryGenerator(SeededGenerator(seed: random.next()))
    var texts = generator.documents(generator.pick([1, 3, 10, 20, 40])).map { (key: $0.id!, value: $0.text) }
    if generator.isLucky(0.2) {
      // An index has one key for the first of these, and makes the keys of the other one later.
      texts.append(("many", Array(#"{"a":[\#((0..<1_200).map(String.init).joined(separator: ","))],"b":1}"#.utf8)))
      texts.append(("large", Array(#"{"a":1,"c":"\#(String(repeating: "c", count: 40_000))"}"#.utf8)))
    }
    texts.shuffle(using: &random)
    let replaced = texts.prefix(texts.count / 2).map { (key: $0.key, value: Array(anything.text().utf8)) }
    deletedKeys = ["gone 1", "gone 2"]
    let before = replaced + deletedKeys.map { (key: $0, value: Array(anything.text().utf8)) }
    // The last documents may be the only ones of a commit, which overwrites others of the same key.
    let (first, second) = (Array(texts.prefix(max(1, texts.count * 2 / 3))), Array(texts.suffix(texts.count / 2 + 1)))
    writes = [before, first, second]
    firstRevision = revision
    var documents: [String: Document] = [:]
    for (number, write) in writes.enumerated() {
      for (key, value) in write {
        documents[key] = Document(value, id: key, revision: revision + UInt64(number) + 1)
      }
    }
    for key in deletedKeys { documents[key] = nil }
    self.documents = documents
    // The writes, a deletion of two keys, and one of all.
    revision += UInt64(writes.count) + 2

    let indexes = try generator.indexes()
    self.indexes = indexes.map(\.index)
    var queries: [Query] = []
    while queries.count < 25 {
      let json = generator.isLucky(0.2) ? anything.query() : generator.query(like: indexes.map(\.index)).json
      if let query = Query(json) { queries.append(query) }
    }
    self.queries = queries
    reference = ReferenceBatch(Array(documents.values), queries.map(\.whole))
  }

  /// Writes the documents, and creates the indexes in between.
  func write(to client: TestClient) throws {
    for (number, write) in writes.enumerated() {
      let revision = try client.call(Request.putMany(write, id: 3)).number
      try #require(revision == firstRevision + UInt64(number) + 1)
      if number == 0 {
        for index in indexes {
          let reply = try client.call(Request.make(.indexEnsure, id: 4, index.json.encoded()))
          #expect(reply.isDone, "\(reply)")
        }
      }
    }
    #expect(try client.call(Request.keys(.deleteMany, deletedKeys, id: 5)).number == 2)
    try client.waitForIndexes()
  }

  func delete(from client: TestClient) throws {
    #expect(try client.call(Request.make(.deleteAll, id: 8)).number == UInt64(documents.count))
  }
}
