/// Finds the documents of a query among documents that are passed to it one by one.
///
/// If the query has a limit, only as many documents are kept as can be in the result.
///
///     var finder = try DocumentFinder(query)
///     for document in documents { finder.examine(document) }
///     let result = finder.result()
public struct DocumentFinder: Sendable {
  private struct Match {
    let key: [UInt8]
    let document: Document
  }

  private let query: DocumentQuery
  private let program: Program
  private let order: SortOrder
  private let projection: Projection?
  /// Only documents whose key follows this one are in the result.
  private let start: [UInt8]?
  /// Documents whose key doesn't precede this one are not in the result.
  private var end: [UInt8]?
  private var matches: [Match] = []
  private var key: [UInt8] = []
  private let isOrdered: Bool
  private var examinedCount = 0
  private let startTime = ContinuousClock.now

  /// Creates a finder that has not examined any documents.
  /// - Parameters:
  ///   - query: What to find.
  ///   - isOrdered: Whether the documents will be examined in ascending order of `_id`. The finder then finishes early
  ///     if the query has a limit and no sort.
  /// - Throws: `SelectorError` if the bookmark isn't one of this query, or the selector needs a text index.
  public init(_ query: DocumentQuery, isOrdered: Bool = false) throws(SelectorError) {
    var paths = PathTrie()
    let order = SortOrder(query.sort, &paths)
    let program = try Program(query.selector.checkedTree(), after: paths)
    var start: [UInt8]?
    if let bookmark = query.bookmark { start = try Bookmark(bookmark, of: query).key }
    self.query = query
    self.isOrdered = isOrdered && query.sort.isEmpty
    self.order = order
    self.program = program
    self.start = start
    projection = query.fields.isEmpty ? nil : Projection(query.fields)
  }

  /// The number of documents to leave out at the start. Those before a bookmark were left out by the first page.
  private var skip: Int { query.bookmark == nil ? query.skip : 0 }

  /// The number of documents to keep: those that are skipped, those of the result, and one more to know whether the
  /// result is the last page. nil if there is no limit.
  private var keptCount: Int? {
    query.limit.map { limit in
      let (sum, isTooLarge) = skip.addingReportingOverflow(limit)
      return isTooLarge ? .max : sum == .max ? .max : sum + 1
    }
  }

  /// A Boolean value that indicates whether further documents can't change the result.
  public var isFinished: Bool { isOrdered && keptCount.map { matches.count >= $0 } ?? false }

  /// Adds a document to the result if it matches.
  /// - Returns: Whether it matches.
  /// - Complexity: O(*n*) in the size of the document; amortized O(log *k*) comparisons of keys, where *k* is the
  ///   number of documents to keep.
  @discardableResult
  public mutating func examine(_ document: Document) -> Bool {
    examinedCount += 1
    var isKept = false
    let isMatch = document.withSource { source in
      guard source.isObject else { return false }
      return FieldValues.with(of: source, program.paths) { values in
        guard program.holds(values) else { return false }
        isKept = order.makeKey(of: values, before: end, in: &key)
        return true
      } ?? false
    }
    if isKept { keep(document) }
    return isMatch
  }

  private mutating func keep(_ document: Document) {
    if let start, key.span.order(start.span) <= 0 { return }
    matches.append(Match(key: key, document: document))
    guard let keptCount, matches.count / 2 >= keptCount else { return }
    sort()
    matches.removeSubrange(keptCount...)
    end = matches.last?.key
  }

  private mutating func sort() { matches.sort { $0.key.span.order($1.key.span) < 0 } }

  /// Returns what has been found in the documents that were examined.
  /// - Precondition: Neither `skip` nor `limit` of the query is negative.
  /// - Complexity: O(*k* log *k*) comparisons of keys, where *k* is the number of documents to keep.
  public consuming func result() -> DocumentResult {
    sort()
    let found = matches.dropFirst(skip)
    let page = query.limit.map { found.prefix($0) } ?? found
    let bookmark = page.count < found.count ? page.last.map { Bookmark(after: $0.key, of: query).text } : nil
    let documents = page.map { match in projection.map(match.document.projected) ?? match.document }
    let statistics = DocumentStatistics(
      examinedDocumentCount: examinedCount, returnedDocumentCount: documents.count,
      duration: startTime.duration(to: .now))
    return DocumentResult(documents: documents, bookmark: bookmark, statistics: statistics)
  }
}

/// What a query finds.
public struct DocumentResult: Sendable {
  /// The documents, in the order of the query.
  public let documents: [Document]
  /// What to set as the bookmark of the same query to find the documents that follow; nil if there are none.
  public let bookmark: String?
  /// What finding the documents took.
  public let statistics: DocumentStatistics

  package init(documents: [Document], bookmark: String?, statistics: DocumentStatistics) {
    self.documents = documents
    self.bookmark = bookmark
    self.statistics = statistics
  }
}

/// What finding documents took.
public struct DocumentStatistics: Sendable {
  /// The number of documents that were evaluated.
  public let examinedDocumentCount: Int
  /// The number of documents in the result.
  public let returnedDocumentCount: Int
  /// The time from the creation of the finder to its result.
  public let duration: Duration

  package init(examinedDocumentCount: Int, returnedDocumentCount: Int, duration: Duration) {
    self.examinedDocumentCount = examinedDocumentCount
    self.returnedDocumentCount = returnedDocumentCount
    self.duration = duration
  }
}

extension Sequence<Document> {
  /// Returns the documents that a query finds.
  ///
  /// Without a sort, documents are in ascending order of `_id`; documents without an `_id` keep their order.
  /// - Precondition: Neither `skip` nor `limit` of the query is negative.
  /// - Throws: `SelectorError` if the bookmark isn't one of this query, if the selector needs a text index, or if it
  ///   was built in Swift and exceeds a limit.
  /// - Complexity: O(*n*) in the size of all documents, and O(*m* log *m*) comparisons of keys, where *m* is the number
  ///   of documents that match. With a limit, O(log *k*) comparisons for each of them, where *k* is `skip` + `limit`.
  public func find(_ query: DocumentQuery) throws(SelectorError) -> DocumentResult {
    var finder = try DocumentFinder(query)
    for document in self { finder.examine(document) }
    return finder.result()
  }

  /// Returns the documents that match a selector; see `find(_:)` for a query.
  /// - Throws: `SelectorError` if the selector needs a text index, or if it was built in Swift and exceeds a limit.
  public func find(_ selector: Selector) throws(SelectorError) -> [Document] {
    try find(DocumentQuery(selector)).documents
  }
}
