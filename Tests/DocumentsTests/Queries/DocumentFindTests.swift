import DocumentTestSupport
import Documents
import TestSupport
import Testing

@Suite struct DocumentFindTests {
  private let count = SeededGenerator.isThorough ? 5_000 : 150

  private func documents(_ count: Int, _ generator: inout QueryGenerator) -> [Document] {
    generator.ids(count).map { Document(generator.text(), id: $0, revision: UInt64(generator.number(9))) }
  }

  /// Returns a random query that is not malformed, without a skip and a limit.
  private func query(_ generator: inout QueryGenerator) -> DocumentQuery {
    while true {
      guard var query = try? DocumentQuery(generator.query()) else { continue }
      (query.skip, query.limit) = (0, nil)
      return query
    }
  }

  @Test func `finding filters, sorts, slices and projects`() throws {
    var generator = QueryGenerator(.announced())
    for _ in 0..<count {
      let documents = documents(20, &generator)
      var query = query(&generator)
      query.skip = generator.number(6)
      query.limit = generator.pick([nil, 0, 1, 3, 30, .max])
      let selector = try CompiledSelector(query.selector)
      let matching = try documents.filter { selector.matches($0) }.map { try $0.value() }
      let sorted = TreeOracle.sorted(matching, query.sort).dropFirst(query.skip)
      let page = query.limit.map { Array(sorted.prefix($0)) } ?? Array(sorted)

      let result = try documents.find(query)
      #expect(result.documents.map { $0.id! } == page.map { $0["_id"]!.string! }, "\(query)")
      let expected = query.fields.isEmpty ? page : page.map { TreeOracle.projection($0, query.fields) }
      #expect(try result.documents.map { try $0.value() } == expected, "\(query)")
      #expect((result.bookmark != nil) == (page.count < sorted.count && !page.isEmpty), "\(query)")
      #expect(result.statistics.examinedDocumentCount == documents.count)
      #expect(result.statistics.returnedDocumentCount == page.count)
    }
  }

  @Test func `a finder of documents in order finishes early with the same result`() throws {
    var generator = QueryGenerator(.announced())
    for _ in 0..<count {
      let documents = documents(20, &generator).sorted { $0.id!.utf8.lexicographicallyPrecedes($1.id!.utf8) }
      var query = query(&generator)
      (query.skip, query.limit) = (generator.number(4), generator.number(4))
      var finder = try DocumentFinder(query, isOrdered: true)
      for document in documents where !finder.isFinished { finder.examine(document) }
      let (result, expected) = (finder.result(), try documents.find(query))
      #expect(result.documents.map(\.id) == expected.documents.map(\.id), "\(query)")
      #expect(result.bookmark == expected.bookmark, "\(query)")
    }
  }

  // MARK: Pages

  /// Returns the keys of all pages. Calls `change` between them.
  private func pagedIDs(
    of query: DocumentQuery, _ documents: inout [Document], change: (inout [Document]) -> Void = { _ in }
  ) throws -> [String] {
    var (query, ids) = (query, [String]())
    while true {
      let result = try documents.find(query)
      ids += result.documents.map { $0.id! }
      guard let bookmark = result.bookmark else { return ids }
      query.bookmark = bookmark
      change(&documents)
    }
  }

  @Test func `pages by bookmarks have each document once, in the order of one page`() throws {
    var generator = QueryGenerator(.announced())
    for _ in 0..<count {
      var documents = documents(20, &generator)
      var query = query(&generator)
      let whole = try documents.find(query).documents.map { $0.id! }
      query.limit = 1 + generator.number(5)
      #expect(try pagedIDs(of: query, &documents) { $0.reverse() } == whole, "\(query)")
    }
  }

  @Test func `documents that are there throughout are in exactly one page`() throws {
    var generator = QueryGenerator(.announced())
    for _ in 0..<count {
      let all = documents(30, &generator)
      let (lasting, passing) = (Array(all[..<15]), Array(all[15...]))
      var query = query(&generator)
      let expected = try lasting.find(query).documents.map { $0.id! }
      query.limit = 1 + generator.number(4)
      var documents = all
      let ids = try pagedIDs(of: query, &documents) { documents in
        documents = lasting + passing.filter { _ in generator.isLucky(0.5) }
      }
      let lastingIDs = Set(lasting.map { $0.id! })
      #expect(ids.filter { lastingIDs.contains($0) } == expected, "\(query)")
      #expect(Set(ids).count == ids.count, "\(query)")
    }
  }

  @Test func `a bookmark of another query, or other text, is refused`() throws {
    let documents = (0..<9).map { Document("{}", id: "\($0)") }
    let bookmark = try #require(try documents.find(DocumentQuery(limit: 2)).bookmark)
    let sort: [SortField] = [.descending("_id")]
    for (query, text) in [
      (DocumentQuery(sort: sort, limit: 2), bookmark), (DocumentQuery(.field("a", .exists()), limit: 2), bookmark),
      (DocumentQuery(limit: 2), ""), (DocumentQuery(limit: 2), bookmark + "="), (DocumentQuery(), "AAAAAAAAAAAAAAAA"),
    ] {
      var query = query
      query.bookmark = text
      let error = #expect(throws: SelectorError.self) { try documents.find(query) }
      #expect(error?.code == .badBookmark)
    }
  }

  // MARK: Laws

  @Test func `nor and not are complements`() throws {
    var generator = QueryGenerator(.announced())
    for _ in 0..<count * 4 {
      let json = generator.selector()
      guard json["$text"] == nil, json != [:], let selector = try? CompiledSelector(Selector(json)) else { continue }
      let nor = try CompiledSelector(Selector(["$nor": [json]]))
      let not = try CompiledSelector(Selector(["$not": json]))
      for document in documents(10, &generator) {
        let isMatch = selector.matches(document)
        #expect(nor.matches(document) == !isMatch, "\(json) \(document)")
        #expect(not.matches(document) == !isMatch, "\(json) \(document)")
      }
    }
  }

  @Test func `a find sees the last of several members with the same name`() throws {
    var random = SeededGenerator.announced()
    var generator = QueryGenerator(random)
    for _ in 0..<count * 2 {
      let texts = (0..<6).map { _ in RandomDocument(hasDuplicates: true, using: &random).text() }
      let documents = texts.enumerated().map { Document($1, id: "\($0)") }
      let clean = try texts.enumerated().map { Document(try JSONValue(parsing: $1).encoded(), id: "\($0)") }
      let query = query(&generator)
      let (result, expected) = (try documents.find(query).documents, try clean.find(query).documents)
      #expect(result.map(\.id) == expected.map(\.id), "\(query) \(texts)")
      #expect(try result.map { try $0.value() } == expected.map { try $0.value() }, "\(query) \(texts)")
    }
  }
}
