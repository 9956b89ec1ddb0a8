/// Finds the documents of a query among the values of entries, which are passed to it in groups. Of a match, it keeps
/// only a handle, by which its owner finds the entry again.
///
///     var finder = try EntryFinder(query, isOrdered: true)
///     while !finder.isFinished { _ = try finder.examine(nextEntries, maxKeptByteCount: limit, &budget) }
///     let page = try finder.page(&budget)
///
/// It isn't copyable, so that examining an entry counts no references.
package struct EntryFinder: ~Copyable {
  private var finder: PageFinder<UInt32>
  private var metadata = EntryMetadata()

  /// The number of entries that match, on the page or not.
  package private(set) var matchCount = 0

  /// Creates a finder that has not examined any entries.
  /// - Parameters:
  ///   - isOrdered: Whether the entries will be examined in the order of the query, ties included.
  ///   - isExact: Whether all entries that will be examined are documents that are known to match.
  ///   - isCounting: Whether only the number of matches is of interest.
  /// - Throws: `SelectorError` if the bookmark isn't one of this query, or the selector needs a text index.
  package init(
    _ query: DocumentQuery, isOrdered: Bool, isExact: Bool = false, isCounting: Bool = false
  ) throws(SelectorError) {
    finder = try PageFinder(query, isOrdered: isOrdered, isExact: isExact, isCounting: isCounting)
  }

  /// Whether further entries can't change the page.
  package var isFinished: Bool { finder.isFinished }

  /// Whether the values of entries matter.
  package var looksAtValues: Bool { finder.looksAtDocuments }

  /// The memory of the handles and sort keys that are kept, in bytes.
  package var keptByteCount: Int { finder.keptByteCount }

  /// Adds those entries to the page that are documents and match, until the page is complete or more is kept than
  /// permitted.
  /// - Returns: The number of entries that were examined.
  /// - Throws: If the budget is exhausted. The finder means nothing then.
  package mutating func examine(
    _ entries: Span<StoredEntry>, maxKeptByteCount: Int = .max, _ budget: inout WorkBudget
  ) throws(ExhaustedBudgetError) -> Int {
    try finder.examine(
      entries, &metadata, matchCount: &matchCount, maxKeptByteCount: maxKeptByteCount, &budget)
  }

  /// Adds what another finder of the same query has found.
  /// - Throws: If the budget is exhausted. The finder means nothing then.
  /// - Precondition: The entries don't come in the order of the query, or are only counted.
  package mutating func join(
    _ other: borrowing EntryFinder, _ budget: inout WorkBudget
  ) throws(ExhaustedBudgetError) {
    matchCount += other.matchCount
    try finder.join(other.finder, &budget)
  }

  /// Returns the handles of the page's documents in its order, and the bookmark of the next page if there is one.
  /// - Throws: If the budget is exhausted.
  /// - Precondition: Neither `skip` nor `limit` of the query is negative.
  /// - Complexity: O(*k* log *k*) comparisons of keys, where *k* is the number of handles that are kept.
  package consuming func page(
    _ budget: inout WorkBudget
  ) throws(ExhaustedBudgetError) -> (handles: [UInt32], bookmark: String?) {
    let page = try finder.page(&budget)
    return (page.items, page.bookmark)
  }
}

/// Makes bookmarks of pages in the order of a sort, which end with entries.
struct PageEnd: Sendable {
  private let order: SortOrder
  private let storage: PathTable.Storage

  init(_ sort: [SortField]) {
    var paths = PathTrie()
    order = SortOrder(sort, &paths)
    storage = PathTable.storage(of: paths)
  }

  /// Returns the bookmark of the page that follows one which ends with an entry.
  /// - Parameter queryHash: The hash of the query that the entry matches.
  func bookmark(after entry: StoredEntry, queryHash: UInt64) -> String {
    var metadata = EntryMetadata()
    var key: [UInt8] = []
    var budget = WorkBudget()
    entry.withSource(
      &metadata, needsID: storage.table.idEdge >= 0, needsRevision: storage.table.revisionEdge >= 0
    ) { source in
      _ = FieldValues.with(of: source, storage.table, &budget) { values, budget in
        order.makeKey(of: values, before: nil, in: &key, &budget)
      }
    }
    return Bookmark(after: key, queryHash: queryHash).text
  }
}

/// The fields that a query returns, for the values of entries.
package struct EntryProjection: Sendable {
  private let projection: Projection

  /// - Parameter fields: The paths of the fields. There is at least one.
  package init(_ fields: [FieldPath]) { projection = Projection(fields) }

  /// Returns an object with the fields that an entry has, as JSON.
  /// - Precondition: The value is a JSON object, which a finder has found.
  /// - Complexity: O(*n*) in the size of the value.
  package func object(of entry: StoredEntry) -> [UInt8] {
    var metadata = EntryMetadata()
    return entry.withSource(
      &metadata, needsID: projection.needsID, needsRevision: projection.needsRevision, projection.object)
  }
}

/// A selector for the values of entries.
package struct EntrySelector: Sendable {
  private let program: Program
  private var metadata = EntryMetadata()

  /// - Throws: `SelectorError` if the selector needs a text index, or if it was built in Swift and exceeds a limit.
  package init(_ selector: Selector) throws(SelectorError) { program = try Program(selector.checkedTree()) }

  /// Returns whether an entry is a document and matches. Its value need not be JSON.
  /// - Throws: If the budget is exhausted.
  /// - Complexity: O(*n*) in the size of the text, and for each condition O(*m*) in the size of its values.
  package mutating func matches(
    _ entry: StoredEntry, _ budget: inout WorkBudget
  ) throws(ExhaustedBudgetError) -> Bool {
    let isMatch = entry.withSource(
      &metadata, needsID: program.needsID, needsRevision: program.needsRevision
    ) { source in program.holds(for: source, &budget) }
    try budget.check()
    return isMatch
  }

  /// Returns whether an entry is a document and matches, whatever work that takes.
  package mutating func matches(_ entry: StoredEntry) -> Bool {
    WorkBudget.withoutLimit { budget throws(ExhaustedBudgetError) in try matches(entry, &budget) }
  }
}
