// A find over documents in memory:
//
// 1. `DocumentQuery+JSON` reads the query, and `SelectorParser` turns its selector into a tree (`SelectorTree`) or
//    throws an error with its place. A selector built in Swift (`Selector+Condition`) becomes the same tree.
// 2. `DocumentFinder` passes the documents to the core of all finders, `PageFinder`, which compiles the tree once, into
//    objects that hold prepared operands (`Program`). All paths of selector and sort get numbers, and are laid out in
//    one table (`PathTable`).
// 3. For each document, `FieldValues` passes over the text once with `JSONText`, checks it, and notes where the value
//    of each path is. Nothing is decoded. Of text that is known to be an I-JSON object (`IJSON`), it checks nothing, and
//    ends as soon as it has all values (`TrustedText`).
// 4. The program runs on these places: `SelectorTest` combines conditions, `ConditionTest` compares bytes with operands
//    (`Operand`), and `ExpressionTest` computes `$expr`.
// 5. Of a match, `SortOrder` makes a key whose bytes have the order of the result (`OrderKey`). With a limit, the
//    finder drops documents that are behind the page, most of them by the first field.
// 6. At the end, the page is cut, `Projection` copies its fields from the text as slices, and `Bookmark` encodes the
//    last key.

/// Finds the documents of a query among documents that are passed to it one by one.
///
/// If the query has a limit, only as many documents are kept as can be in the result.
///
///     var finder = try DocumentFinder(query)
///     for document in documents { finder.examine(document) }
///     let result = finder.result()
public struct DocumentFinder: Sendable {
  private var finder: PageFinder<Document>
  private let projection: Projection?
  private var examinedCount = 0
  private let startTime = ContinuousClock.now

  /// Creates a finder that has not examined any documents.
  /// - Parameters:
  ///   - query: What to find.
  ///   - isOrdered: Whether the documents will be examined in ascending order of `_id`. The finder then finishes early
  ///     if the query has a limit and no sort.
  /// - Throws: `SelectorError` if the bookmark isn't one of this query, or the selector needs a text index.
  public init(_ query: DocumentQuery, isOrdered: Bool = false) throws(SelectorError) {
    finder = try PageFinder(query, isOrdered: isOrdered && query.sort.isEmpty)
    projection = query.fields.isEmpty ? nil : Projection(query.fields)
  }

  /// A Boolean value that indicates whether further documents can't change the result.
  public var isFinished: Bool { finder.isFinished }

  /// Adds a document to the result if it matches.
  /// - Returns: Whether it matches.
  /// - Complexity: O(*n*) in the size of the document; amortized O(log *k*) comparisons of keys, where *k* is the
  ///   number of documents to keep.
  @discardableResult
  public mutating func examine(_ document: Document) -> Bool {
    examinedCount += 1
    return document.withSource { source in
      WorkBudget.withoutLimit { budget throws(ExhaustedBudgetError) in try finder.examine(source, &budget, document) }
    }
  }

  /// Returns what has been found in the documents that were examined.
  /// - Precondition: Neither `skip` nor `limit` of the query is negative.
  /// - Complexity: O(*k* log *k*) comparisons of keys, where *k* is the number of documents to keep.
  public consuming func result() -> DocumentResult {
    let (projection, examinedCount, startTime) = (projection, examinedCount, startTime)
    let page = WorkBudget.withoutLimit { budget throws(ExhaustedBudgetError) in try finder.page(&budget) }
    let documents = page.items.map { document in projection.map(document.projected) ?? document }
    let statistics = DocumentStatistics(
      examinedDocumentCount: examinedCount, returnedDocumentCount: documents.count,
      duration: startTime.duration(to: .now))
    return DocumentResult(documents: documents, bookmark: page.bookmark, statistics: statistics)
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
  /// The number of keys of indexes that were examined.
  public let examinedKeyCount: Int
  /// The number of documents in the result.
  public let returnedDocumentCount: Int
  /// The time from the creation of the finder to its result.
  public let duration: Duration

  package init(
    examinedDocumentCount: Int, examinedKeyCount: Int = 0, returnedDocumentCount: Int, duration: Duration
  ) {
    self.examinedDocumentCount = examinedDocumentCount
    self.examinedKeyCount = examinedKeyCount
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

extension Sequence where Element: Sendable {
  /// Returns the elements that a query finds, in its order. Those that are equal in it keep their order.
  /// - Parameter text: Returns the text of the document that an element stands for.
  package func find(_ query: DocumentQuery, _ text: (Element) throws -> [UInt8]) throws -> [Element] {
    var finder = try PageFinder<Element>(query, isOrdered: query.sort.isEmpty)
    for element in self where !finder.isFinished {
      let text = try text(element)
      _ = unsafe text.withUnsafeBufferPointer { bytes in
        WorkBudget.withoutLimit { budget throws(ExhaustedBudgetError) in
          try finder.examine(unsafe DocumentSource(bytes), &budget, element)
        }
      }
    }
    return WorkBudget.withoutLimit { budget throws(ExhaustedBudgetError) in try finder.page(&budget) }.items
  }
}
