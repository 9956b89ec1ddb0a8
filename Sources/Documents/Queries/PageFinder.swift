/// Finds the page of a query among documents that are examined one by one, and keeps an item for each document that can
/// be on the page: the core of all finders, which differ in what they keep.
///
/// If the query has a limit, no more is kept than the page needs.
struct PageFinder<Item: Sendable>: Sendable {
  private struct Match {
    let key: [UInt8]
    let item: Item
  }

  private let query: DocumentQuery
  private let program: Program
  private let order: SortOrder
  /// Only documents whose key follows this one are on the page.
  private let start: [UInt8]?
  /// Documents whose key doesn't precede this one are not on the page.
  private var end: [UInt8]?
  private var matches: [Match] = []
  private var key: [UInt8] = []
  private let isOrdered: Bool

  /// Creates a finder that has not examined any documents.
  /// - Parameter isOrdered: Whether the documents will be examined in ascending order of `_id`.
  /// - Throws: `SelectorError` if the bookmark isn't one of this query, or the selector needs a text index.
  init(_ query: DocumentQuery, isOrdered: Bool) throws(SelectorError) {
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
  }

  /// The number of documents to leave out at the start. Those before a bookmark were left out by the first page.
  private var skip: Int { query.bookmark == nil ? query.skip : 0 }

  /// The number of documents to keep: those that are skipped, those of the page, and one more to know whether the page
  /// is the last one. nil if there is no limit.
  private var keptCount: Int? {
    query.limit.map { limit in
      let (sum, isTooLarge) = skip.addingReportingOverflow(limit)
      return isTooLarge ? .max : sum == .max ? .max : sum + 1
    }
  }

  /// Whether further documents can't change the page.
  var isFinished: Bool { isOrdered && keptCount.map { matches.count >= $0 } ?? false }

  /// Keeps the item of a document if it matches and can be on the page.
  /// - Returns: Whether it matches.
  /// - Complexity: O(*n*) in the size of the document; amortized O(log *k*) comparisons of keys, where *k* is the
  ///   number of documents to keep.
  @inline(__always)
  mutating func examine(_ source: DocumentSource, _ item: @autoclosure () -> Item) -> Bool {
    guard source.isObject else { return false }
    var isKept = false
    let isMatch =
      FieldValues.with(of: source, program.paths) { values in
        guard program.holds(values) else { return false }
        isKept = order.makeKey(of: values, before: end, in: &key)
        return true
      } ?? false
    if isKept { keep(item()) }
    return isMatch
  }

  private mutating func keep(_ item: Item) {
    if let start, key.span.order(start.span) <= 0 { return }
    matches.append(Match(key: key, item: item))
    guard let keptCount, matches.count / 2 >= keptCount else { return }
    sort()
    matches.removeSubrange(keptCount...)
    end = matches.last?.key
  }

  private mutating func sort() { matches.sort { $0.key.span.order($1.key.span) < 0 } }

  /// Returns the items of the page in its order, and the bookmark of the next page if there is one.
  /// - Precondition: Neither `skip` nor `limit` of the query is negative.
  /// - Complexity: O(*k* log *k*) comparisons of keys, where *k* is the number of documents to keep.
  consuming func page() -> (items: [Item], bookmark: String?) {
    sort()
    let found = matches.dropFirst(skip)
    let page = query.limit.map { found.prefix($0) } ?? found
    let bookmark = page.count < found.count ? page.last.map { Bookmark(after: $0.key, of: query).text } : nil
    return (page.map(\.item), bookmark)
  }
}
