import DocumentTestSupport
import Documents
import TestSupport
import Testing

@Suite struct EntryFinderTests {
  private let count = SeededGenerator.isThorough ? 5_000 : 150

  /// Finds with an `EntryFinder` whose handles are positions.
  private func find(
    _ query: DocumentQuery, in documents: [Document], isOrdered: Bool
  ) throws -> (ids: [String], bookmark: String?, matchCount: Int, keptByteCount: Int) {
    var budget = WorkBudget()
    var finder = try EntryFinder(query, isOrdered: isOrdered && query.sort.isEmpty)
    for (position, document) in documents.enumerated() where !finder.isFinished {
      let count = try with(document, handle: UInt32(position)) { try finder.examine([$0].span, &budget) }
      #expect(count == 1)
    }
    let (matchCount, keptByteCount) = (finder.matchCount, finder.keptByteCount)
    let page = try finder.page(&budget)
    return (page.handles.map { documents[Int($0)].id! }, page.bookmark, matchCount, keptByteCount)
  }

  /// Calls `body` with a document as an entry, which is trusted if it is an I-JSON object.
  private func with<Result>(
    _ document: Document, handle: UInt32 = 0, _ body: (StoredEntry) throws -> Result
  ) rethrows -> Result {
    try StoredEntry.withTrust(key: document.id!, document.text, revision: document.revision!, handle: handle, body)
  }

  /// Returns documents in the order of their ids' bytes.
  private func documents(_ generator: inout QueryGenerator) -> [Document] {
    let ids = generator.ids(20).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    return ids.map { Document(generator.text(), id: $0, revision: UInt64(generator.number(9))) }
  }

  private func query(_ generator: inout QueryGenerator) -> DocumentQuery {
    while true {
      guard var query = try? DocumentQuery(generator.query()) else { continue }
      query.skip = generator.number(4)
      query.limit = generator.pick([nil, 0, 1, 3, 30, .max])
      return query
    }
  }

  @Test func `entries are found like documents, and have the same fields`() throws {
    var generator = QueryGenerator(.announced())
    for _ in 0..<count {
      let (documents, query) = (documents(&generator), query(&generator))
      let expected = try documents.find(query)
      for isOrdered in [false, true] {
        let found = try find(query, in: documents, isOrdered: isOrdered)
        #expect(found.ids == expected.documents.map { $0.id! }, "\(query)")
        #expect(found.bookmark == expected.bookmark, "\(query)")
      }
      let matchCount = try documents.find(query.selector).count
      #expect(try find(query, in: documents, isOrdered: false).matchCount == matchCount, "\(query)")
      guard !query.fields.isEmpty else { continue }
      let projection = EntryProjection(query.fields)
      for found in expected.documents {
        let source = documents.first { $0.id == found.id }!
        let object = with(source) { projection.object(of: $0) }
        #expect(object == found.text, "\(query)")
      }
    }
  }

  @Test func `pages in the order of keys start after the key in their bookmark`() throws {
    var generator = QueryGenerator(.announced())
    for _ in 0..<count {
      let documents = documents(&generator)
      var query = query(&generator)
      (query.sort, query.skip, query.limit) = ([], 0, 1 + generator.number(5))
      let whole = try documents.find(DocumentQuery(query.selector)).documents.map { $0.id! }
      var (ids, rest) = ([String](), documents[...])
      while true {
        let page = try find(query, in: Array(rest), isOrdered: true)
        ids += page.ids
        guard let bookmark = page.bookmark else { break }
        query.bookmark = bookmark
        let start = Array(page.ids.last!.utf8)
        rest = documents.drop { !start.lexicographicallyPrecedes($0.id!.utf8) }
      }
      #expect(ids == whole, "\(query)")
    }
  }

  @Test func `without a sort, a handle is all that is kept of a document`() throws {
    let documents = (0..<100).map { Document("{}", id: "\($0)", revision: 1) }.sorted { $0.id! < $1.id! }
    #expect(try find(DocumentQuery(), in: documents, isOrdered: true).keptByteCount == 400)
    let sorted = DocumentQuery(sort: [.descending("_id")])
    #expect(try find(sorted, in: documents, isOrdered: true).keptByteCount > 2_000)
    let limited = DocumentQuery(sort: [.descending("_id")], limit: 1)
    #expect(try find(limited, in: documents, isOrdered: true).keptByteCount < 400)
  }

  @Test func `a query is read from the texts of its parts`() throws {
    func query(_ selector: String, _ sort: String = "", _ fields: String = "", _ bookmark: String = "")
      throws(SelectorError) -> DocumentQuery
    {
      let (selector, sort) = (Array(selector.utf8), Array(sort.utf8))
      let (fields, bookmark) = (Array(fields.utf8), Array(bookmark.utf8))
      return try DocumentQuery(selector: selector.span, sort: sort.span, fields: fields.span, bookmark: bookmark.span)
    }
    #expect(try query("") == DocumentQuery())
    #expect(
      try query(#"{"a":1}"#, #"["b",{"c":"desc"}]"#, #"["d.e"]"#, "x")
        == DocumentQuery(
          .field("a", .equal(1)), sort: [.ascending("b"), .descending("c")], fields: ["d.e"], bookmark: "x"))
    for (texts, code, path) in [
      (["{"], .notJSON, "$"), (["[]"], .notAnObject, "$"), (["", "x"], .notJSON, "$"),
      (["", "{}"], .badSort, "$.sort"),
      (["", "[1]"], .badSort, "$.sort[0]"), (["", "", "["], .notJSON, "$"),
      (["", "", "[1]"], .badFields, "$.fields[0]"),
    ] as [([String], SelectorError.Code, String)] {
      let error = #expect(throws: SelectorError.self) {
        try query(texts[0], texts.count > 1 ? texts[1] : "", texts.count > 2 ? texts[2] : "")
      }
      #expect(error?.code == code && error?.path == path, "\(texts): \(String(describing: error))")
    }
  }
}
