/// Finds the page of a query among documents that are examined one by one, and keeps an item for each document that can
/// be on the page: the core of all finders, which differ in what they keep.
///
/// If the query has a limit, no more is kept than the page needs. If the documents come in the order of the page, no
/// keys are kept.
struct PageFinder<Item: Sendable>: Sendable {
  private struct Match {
    /// Where the sort key is among `keys`.
    let keyStart: Int
    let keyCount: Int
    let item: Item
  }

  /// What documents are tested and sorted by. Code that examines many documents takes it out of the finder first, so that
  /// it counts no references for each of them.
  private final class Criteria: Sendable {
    let program: Program
    let order: SortOrder
    /// The paths of the sort, if keys are made of few documents; nil if `program` finds their values in every document.
    let keyPaths: PathTable.Storage?
    /// Whether a key is made of every match.
    let makesKeys: Bool
    /// Whether all documents are known to match.
    let isExact: Bool
    /// Whether documents are counted, and none is on the page.
    let isCounting: Bool

    init(
      _ program: Program, _ order: SortOrder, keyPaths: PathTable.Storage?, makesKeys: Bool, isExact: Bool,
      isCounting: Bool
    ) {
      (self.program, self.order, self.keyPaths) = (program, order, keyPaths)
      (self.makesKeys, self.isExact, self.isCounting) = (makesKeys, isExact, isCounting)
    }
  }

  private let query: DocumentQuery
  private let criteria: Criteria
  /// Whether the documents come in the order of the page.
  private let isOrdered: Bool
  /// The number of documents to leave out at the start. Those before a bookmark were left out by the first page.
  private let skip: Int
  /// The number of documents to keep: those that are skipped, those of the page, and one more to know whether the page
  /// is the last one. nil if there is no limit.
  private let keptCount: Int?
  /// The number of documents up to the end of the page; -1 if there is no limit.
  private let countThroughPage: Int
  /// Only documents whose key follows this one are on the page.
  private let start: [UInt8]?
  /// Documents whose key doesn't precede this one are not on the page.
  private var end: [UInt8]?
  /// The key of the document that is examined.
  private var key: [UInt8] = []

  /// What is kept of documents in the order of the page, and the key of the last one on the page.
  private var items: [Item] = []
  private var lastKey: [UInt8] = []
  /// What is kept of documents in any other order, and their keys one after the other.
  private var matches: [Match] = []
  private var keys: [UInt8] = []

  /// Creates a finder that has not examined any documents.
  /// - Parameters:
  ///   - isOrdered: Whether the documents will be examined in the order of the query, ties included.
  ///   - isExact: Whether all documents that will be examined are known to match.
  ///   - isCounting: Whether documents are only counted.
  /// - Throws: `SelectorError` if the bookmark isn't one of this query, or the selector needs a text index.
  init(
    _ query: DocumentQuery, isOrdered: Bool, isExact: Bool = false, isCounting: Bool = false
  ) throws(SelectorError) {
    var paths = PathTrie()
    let order = SortOrder(query.sort, &paths)
    var start: [UInt8]?
    if let bookmark = query.bookmark { start = try Bookmark(bookmark, of: query).key }
    // In order and from the start, only the last document of the page needs a key.
    let needsKeys = !isCounting && (!isOrdered || start != nil)
    self.query = query
    self.isOrdered = isOrdered
    let program: Program
    if isExact, !needsKeys {
      program = .everything
    } else {
      let tree = isExact ? .everything : try query.selector.checkedTree()
      program = try Program(tree, after: needsKeys ? paths : PathTrie())
    }
    criteria = Criteria(
      program, order,
      keyPaths: needsKeys ? nil : query.sort.isEmpty ? SortOrder.tiePaths : PathTable.storage(of: paths),
      makesKeys: needsKeys, isExact: isExact,
      isCounting: isCounting)
    self.start = start
    let skip = start == nil ? query.skip : 0
    self.skip = skip
    keptCount = query.limit.map { limit in
      let (sum, isTooLarge) = skip.addingReportingOverflow(limit)
      return isTooLarge ? .max : sum == .max ? .max : sum + 1
    }
    countThroughPage = keptCount.map { $0 - 1 } ?? -1
  }

  /// Whether further documents can't change the page.
  var isFinished: Bool { isOrdered && keptCount.map { items.count >= $0 } ?? false }

  /// Whether anything but the number of documents matters, besides the key of the last one on the page.
  var looksAtDocuments: Bool { !criteria.isExact || criteria.makesKeys }

  /// The memory of what is kept, in bytes.
  var keptByteCount: Int {
    items.count * MemoryLayout<Item>.stride + matches.count * MemoryLayout<Match>.stride + keys.count
  }

  /// Keeps the item of a document if it matches and can be on the page.
  /// - Returns: Whether it matches.
  /// - Throws: If the budget is exhausted. The finder means nothing then.
  /// - Complexity: O(*n*) in the size of the document; amortized O(log *k*) comparisons of keys, where *k* is the
  ///   number of documents to keep.
  mutating func examine(
    _ source: DocumentSource, _ budget: inout WorkBudget, _ item: @autoclosure () -> Item
  ) throws(ExhaustedBudgetError) -> Bool {
    let isMatch = examine(source, criteria, &budget, item())
    try budget.check()
    try keepFirst(&budget)
    return isMatch
  }

  /// - Parameter budget: Once it is exhausted, neither the result nor the finder means anything.
  @inline(__always)
  private mutating func examine(
    _ source: DocumentSource, _ criteria: Criteria, _ budget: inout WorkBudget,
    _ item: @autoclosure () -> Item
  ) -> Bool {
    guard criteria.makesKeys else {
      guard criteria.isExact || criteria.program.holds(for: source, &budget) else { return false }
      if criteria.isCounting { return true }
      if needsKey { makeKey(of: source, &budget) }
      items.append(item())
      return true
    }
    guard source.isObject else { return false }
    var isKept = false
    let isMatch =
      FieldValues.with(of: source, criteria.program.paths, &budget) { values, budget in
        guard criteria.program.holds(values, &budget) else { return false }
        isKept = criteria.order.makeKey(of: values, before: end, in: &key, &budget)
        return true
      } ?? false
    if isKept { keep(item()) }
    return isMatch
  }

  /// Whether the key of the next match is kept, if documents come in the order of the page: it is the page's last one.
  private var needsKey: Bool { items.count &+ 1 == countThroughPage }

  /// Makes the key of the last document on the page.
  @inline(never)
  private mutating func makeKey(of source: DocumentSource, _ budget: inout WorkBudget) {
    guard let paths = criteria.keyPaths else { return }
    let order = criteria.order
    _ = FieldValues.with(of: source, paths.table, &budget) { values, budget in
      order.makeKey(of: values, before: nil, in: &lastKey, &budget)
    }
  }

  private mutating func keep(_ item: Item) {
    if let start, key.span.order(start.span) <= 0 { return }
    guard !isOrdered else {
      items.append(item)
      if items.count == countThroughPage { lastKey = key }
      return
    }
    matches.append(Match(keyStart: keys.count, keyCount: key.count, item: item))
    keys += key
  }

  /// Adds what another finder of the same query has found.
  /// - Throws: If the budget is exhausted. The finder means nothing then.
  /// - Precondition: No documents come in the order of the page.
  mutating func join(_ other: PageFinder, _ budget: inout WorkBudget) throws(ExhaustedBudgetError) {
    try budget.require(bytes: other.keptByteCount)
    for match in other.matches {
      matches.append(Match(keyStart: keys.count + match.keyStart, keyCount: match.keyCount, item: match.item))
    }
    keys += other.keys
    try keepFirst(&budget)
  }

  /// Removes the matches that can't be on the page, once they are half of all.
  private mutating func keepFirst(_ budget: inout WorkBudget) throws(ExhaustedBudgetError) {
    guard let keptCount, matches.count / 2 >= keptCount else { return }
    try sort(&budget)
    keep(first: keptCount)
    end = matches.last.map { key(of: $0) }
  }

  private func key(of match: Match) -> [UInt8] { Array(keys[match.keyStart..<match.keyStart + match.keyCount]) }

  private mutating func sort(_ budget: inout WorkBudget) throws(ExhaustedBudgetError) {
    let keys = keys
    do {
      try matches.sort { left, right in
        try budget.require(bytes: min(left.keyCount, right.keyCount))
        let leftKey = keys.span.extracting(left.keyStart..<left.keyStart + left.keyCount)
        return leftKey.order(keys.span.extracting(right.keyStart..<right.keyStart + right.keyCount)) < 0
      }
    } catch { throw ExhaustedBudgetError() }
  }

  /// Removes all matches but the first ones.
  private mutating func keep(first count: Int) {
    var kept: [Match] = []
    var keptKeys: [UInt8] = []
    kept.reserveCapacity(matches.count)
    keptKeys.reserveCapacity(keys.count)
    for match in matches.prefix(count) {
      kept.append(Match(keyStart: keptKeys.count, keyCount: match.keyCount, item: match.item))
      keptKeys += keys[match.keyStart..<match.keyStart + match.keyCount]
    }
    (matches, keys) = (kept, keptKeys)
  }

  /// Returns the items of the page in its order, and the bookmark of the next page if there is one.
  /// - Throws: If the budget is exhausted.
  /// - Precondition: Neither `skip` nor `limit` of the query is negative.
  /// - Complexity: O(*k* log *k*) comparisons of keys, where *k* is the number of documents to keep.
  mutating func page(_ budget: inout WorkBudget) throws(ExhaustedBudgetError) -> (items: [Item], bookmark: String?) {
    if !isOrdered { try sort(&budget) }
    let count = isOrdered ? items.count : matches.count
    let first = min(skip, count)
    let page = first..<first + min(query.limit ?? .max, count - first)
    var bookmark: String?
    if !page.isEmpty, page.upperBound < count {
      let key = isOrdered ? lastKey : key(of: matches[page.upperBound - 1])
      bookmark = Bookmark(after: key, of: query).text
    }
    return (isOrdered ? Array(items[page]) : matches[page].map(\.item), bookmark)
  }
}

extension PageFinder<UInt32> {
  /// Examines entries, whose handles are the items, until the page is complete or more is kept than permitted.
  /// - Parameter matchCount: Is increased by the number of entries that match.
  /// - Returns: The number of entries that were examined.
  /// - Throws: If the budget is exhausted. The finder means nothing then.
  mutating func examine(
    _ entries: Span<StoredEntry>, _ metadata: inout EntryMetadata, matchCount: inout Int, maxKeptByteCount: Int,
    _ budget: inout WorkBudget
  ) throws(ExhaustedBudgetError) -> Int {
    let criteria = criteria
    var count = 0
    while count < entries.count, !isFinished, keptByteCount <= maxKeptByteCount {
      let entry = entries[count]
      count += 1
      let makesKey = !criteria.makesKeys && !criteria.isCounting && needsKey
      let isMatch = entry.withSource(
        &metadata, needsID: criteria.program.needsID || makesKey && criteria.keyPaths?.table.idEdge ?? -1 >= 0,
        needsRevision: criteria.program.needsRevision || makesKey && criteria.keyPaths?.table.revisionEdge ?? -1 >= 0
      ) { source in examine(source, criteria, &budget, entry.handle) }
      try budget.check()
      guard isMatch else { continue }
      matchCount += 1
      try keepFirst(&budget)
    }
    return count
  }
}
