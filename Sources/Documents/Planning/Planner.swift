/// Chooses how to find the documents of a query.
///
/// What a selector says is split into what it says about single fields. Each index whose first fields are among them can
/// be read in ranges of keys, which are counted. The planner compares these ways with each other, with their unions and
/// intersections, with ranges of ids and with a scan. All find the same documents.
///
/// Planning is bounded: alternatives that are found after that are not considered.
package struct Planner {
  private let query: DocumentQuery
  private let order: RequestedOrder
  private let ignoresOrder: Bool
  /// The fields that decide about groups; nil if groups don't matter.
  private let grouping: [FieldPath]?
  /// Where an ordered plan starts; nil if at the first document.
  private let start: PageStart?
  private let conjunction: Conjunction
  private let indexes: [UsableIndex]
  private let planned: [PlannedIndex]
  private let entryCount: Int
  /// Whether each entry is a document.
  private let areAllDocuments: Bool
  /// The position of the index that the query asks for.
  private let hint: Int?
  private var notes: [PlanExplanation.Note?]
  /// The number of indexes and ranges that may still be considered: each takes up to a microsecond.
  private var remainingWork = Self.maxWork

  private static let maxWork = 1 << 18
  /// The maximum number of alternatives that are planned one by one.
  private static let maxAlternativeCount = 1_000
  /// The maximum number of candidates that are intersected with each other.
  private static let maxIntersectedCount = 4
  /// What an intersection must save to be worth it.
  private static let maxIntersectionWork = 0.7
  /// The maximum number of ranges whose groups are counted, and the work of that beyond the ranges.
  private static let maxGroupedRangeCount = 256
  private static let groupCountWork = 32

  /// - Parameters:
  ///   - indexes: The indexes of the store. Plans name them by their positions.
  ///   - entryCount: The number of entries of the store.
  ///   - ignoresOrder: Whether all documents are needed, in any order: the sort and the limit of the query don't matter.
  ///   - grouping: The fields with the same values in all documents that can be represented by one of them and their
  ///     number; nil if each document is needed.
  ///   - hint: The name of the index to use; nil to choose.
  /// - Throws: `SelectorError` if the index of the hint doesn't exist, isn't complete or can't serve the query, if the
  ///   bookmark isn't one of the query, or if the selector was built in Swift and exceeds a limit.
  package init(
    _ query: DocumentQuery, indexes: [PlannedIndex], entryCount: Int, ignoresOrder: Bool = false,
    grouping: [FieldPath]? = nil, hint: String? = nil
  ) throws(SelectorError) {
    let tree = try query.selector.checkedTree()
    var paths = PathNumbers()
    self.query = query
    self.entryCount = entryCount
    self.ignoresOrder = ignoresOrder
    self.grouping = grouping
    planned = indexes
    notes = indexes.map { $0.isComplete ? nil : .incomplete }
    self.hint = try hint.map { (name) throws(SelectorError) in
      guard let position = indexes.firstIndex(where: { $0.index.name.hasSameScalars(as: name) }) else {
        throw SelectorError(.badIndex, "there is no index \(JSONPath.shown(name))")
      }
      return position
    }
    let queryPaths = QueryPaths(tree, query.sort)
    var usable: [UsableIndex] = []
    var areAllDocuments = false
    for (number, index) in indexes.enumerated() where index.isComplete {
      if index.index.selector == nil {
        let hasOneKeyEach = index.multiFields == 0 && index.overflowCount == 0
        if hasOneKeyEach, index.entryCount == entryCount { areAllDocuments = true }
        guard queryPaths.contains(index.index.fields[0].path) else {
          notes[number] = .unusedField
          continue
        }
      }
      usable.append(UsableIndex(index, number: number, &paths))
    }
    self.indexes = usable
    self.areAllDocuments = areAllDocuments
    let order = RequestedOrder(query.sort, paths)
    self.order = order
    start = try query.bookmark.flatMap { (text) throws(SelectorError) in
      PageStart(try Bookmark(text, of: query).key, order)
    }
    conjunction = Conjunction(tree, paths)
    if self.hint != nil { try checkHint() }
  }

  private mutating func checkHint() throws(SelectorError) {
    guard let hint, !conjunction.isImpossible else { return }
    var counter = ZeroCounter()
    guard candidates(&counter).isEmpty else {
      remainingWork = Self.maxWork
      return
    }
    let reason = notes[hint]?.text(planned[hint].index) ?? "it serves neither the selector nor the sort"
    throw SelectorError(.badIndex, "the index \(planned[hint].index.name) can't be used: \(reason)")
  }

  /// Returns the plan that is expected to take the least work, and why it was chosen.
  package mutating func plan(_ counter: inout some KeyCounter) -> PlanChoice {
    guard !conjunction.isImpossible else { return choice(.nothing) }
    var candidates = candidates(&counter)
    let conditions = Candidate.Conditions(
      matchCount: candidates.map(\.keyCount).min() ?? 0, window: ignoresOrder ? nil : window,
      ignoresOrder: ignoresOrder, readsDocuments: grouping != nil)
    if hint == nil { addIntersections(to: &candidates, conditions) }
    // Of those that take the same work, the most specific one is the least likely to take more than expected.
    let best = candidates.min { left, right in
      (left.work(conditions), -left.limitedFieldCount) < (right.work(conditions), -right.limitedFieldCount)
    }
    // The union of a hint's index can have too many ranges, which isn't known until keys are counted.
    guard let best else { return choice(Candidate(.scan([.all]), keyCount: entryCount)) }
    return choice(best, fallback: fallback(from: best, candidates, conditions))
  }

  /// Returns what is done instead once a plan has taken as much work as that, because the page that it should complete
  /// early is not complete. So no plan takes more than twice the work of the best one without luck.
  /// - Returns: nil if nothing else takes much less work than the whole plan.
  private func fallback(
    from best: Candidate, _ candidates: [Candidate], _ conditions: Candidate.Conditions
  ) -> PlanChoice.Fallback? {
    let wholeWork = best.work(conditions, endsEarly: false)
    guard best.work(conditions) < wholeWork,
      let other = candidates.min(by: { $0.work(conditions, endsEarly: false) < $1.work(conditions, endsEarly: false) })
    else { return nil }
    let otherWork = other.work(conditions, endsEarly: false)
    guard otherWork < wholeWork / 2 else { return nil }
    return PlanChoice.Fallback(
      plan: other.plan, explanation: explanation(of: other, insteadOf: best),
      examinedCount: Int(max(otherWork, best.work(conditions)) / best.workPerKey(conditions)))
  }

  /// The number of matches after which the page is complete; nil if all are needed.
  private var window: Int? {
    guard let limit = query.limit else { return nil }
    let (sum, isTooLarge) = limit.addingReportingOverflow(query.bookmark == nil ? query.skip : 0)
    return isTooLarge || sum == .max ? nil : sum + 1
  }

  private func choice(_ candidate: Candidate, fallback: PlanChoice.Fallback? = nil) -> PlanChoice {
    PlanChoice(plan: candidate.plan, explanation: explanation(of: candidate), fallback: fallback)
  }

  private func explanation(of candidate: Candidate, insteadOf abandoned: Candidate? = nil) -> PlanExplanation {
    PlanExplanation(
      query, grouping: grouping ?? [], candidate, insteadOf: abandoned, planned, notes, isHint: hint != nil)
  }

  // MARK: Candidates

  /// Returns all ways to find the documents but intersections: with a hint, those that use its index only.
  private mutating func candidates(_ counter: inout some KeyCounter) -> [Candidate] {
    var candidates: [Candidate] = []
    if hint == nil {
      candidates.append(scan(&counter))
      if let ids = ids(conjunction, &counter) { candidates.append(ids) }
    }
    candidates += indexCandidates(conjunction, isWhole: true, &counter)
    for alternatives in conjunction.disjunctions {
      if let union = union(of: alternatives, conjunction, &counter) { candidates.append(union) }
    }
    return candidates
  }

  private mutating func scan(_ counter: inout some KeyCounter) -> Candidate {
    let isReversed = order.isReverse(of: [])
    let isExact = conjunction.parts.isEmpty && areAllDocuments
    let ranges = part(of: [.all], isReversed)
    if ranges == [.all] {
      return Candidate(.scan(ranges), keyCount: entryCount, isReversed: isReversed, isExact: isExact)
    }
    return Candidate(
      .scan(ranges), keyCount: count(ranges, ofIndex: nil, &counter), isReversed: isReversed, isExact: false)
  }

  /// Returns the part of ranges of ids that an ordered plan reads behind the last page.
  private func part(of ranges: [KeyRange], _ isReversed: Bool?) -> [KeyRange] {
    guard let isReversed, let id = start?.id else { return ranges }
    return KeyRange.part(of: ranges, upTo: isReversed, isReversed ? id : id + [0])
  }

  /// Returns the ranges of ids that a conjunction limits documents to; nil if there are none.
  private mutating func ids(_ conjunction: Conjunction, _ counter: inout some KeyCounter) -> Candidate? {
    var values: [ValueRange]?
    var said: UInt64 = 0
    for constraint in conjunction.constraints where constraint.field == PathNumbers.id {
      values = values.map { $0.intersection(constraint.ranges.ranges) } ?? constraint.ranges.ranges
      if let part = constraint.part, part < 64 { said |= 1 << UInt64(part) }
    }
    guard let values else { return nil }
    let isReversed = order.isReverse(of: [])
    var ranges = values.coarsened(to: UsableIndex.maxRangeCount).compactMap(\.ids)
    guard ranges != [.all] else { return nil }
    ranges = part(of: ranges, isReversed)
    let isExact =
      areAllDocuments && query.bookmark == nil && values.count <= UsableIndex.maxRangeCount
      && conjunction.parts.count <= 64
      && conjunction.parts.indices.allSatisfy { said >> UInt64($0) & 1 == 1 }
    return Candidate(
      .ids(ranges, values), keyCount: count(ranges, ofIndex: nil, &counter), isReversed: isReversed,
      isExact: isExact)
  }

  private mutating func count(_ ranges: [KeyRange], ofIndex number: Int?, _ counter: inout some KeyCounter) -> Int {
    remainingWork -= ranges.count
    return ranges.reduce(0) { $0 + counter.count($1, ofIndex: number) }
  }

  /// Returns the ways to use one index for a conjunction.
  /// - Parameter isWhole: Whether the conjunction is the whole selector. Otherwise, only ranges count, and not the order.
  private mutating func indexCandidates(
    _ conjunction: Conjunction, isWhole: Bool, _ counter: inout some KeyCounter
  ) -> [Candidate] {
    var candidates: [Candidate] = []
    for index in indexes where hint == nil || hint == index.number {
      guard remainingWork > 0 else { break }
      remainingWork -= 8 + conjunction.rangeCount / 8 * (1 + index.selectorParts.count)
      guard index.selectorParts.allSatisfy({ conjunction.implies($0) }) else {
        if isWhole { notes[index.number] = .notImplied }
        continue
      }
      for alternative in 0..<index.alternativeCount(conjunction) {
        let use = index.use(conjunction, alternative: alternative, order, from: isWhole ? start : nil)
        remainingWork -= use.work
        let isLimited = !use.fields.isEmpty || !index.selectorParts.isEmpty
        guard isLimited || isWhole && (use.isReversed != nil || use.isExact) else {
          if isWhole { notes[index.number] = .unusedField }
          continue
        }
        let keyCount =
          use.ranges == [.allKeys]
          ? index.entryCount : count(use.ranges, ofIndex: index.number, &counter) + index.overflowCount
        candidates.append(
          Candidate(
            .index(index.number, use.ranges, [use.fields]), keyCount: keyCount,
            isReversed: isWhole ? use.isReversed : nil, isExact: isWhole && query.bookmark == nil && use.isExact))
        if isWhole, let groups = groups(index, use, &counter) {
          candidates.append(
            Candidate(.index(index.number, use.ranges, [use.fields]), keyCount: keyCount, isExact: true, groups: groups)
          )
        }
        if isWhole { notes[index.number] = .moreWork(min(keyCount, notes[index.number]?.keyCount ?? .max)) }
      }
    }
    return candidates
  }

  /// Returns the groups of the keys that an exact way to use an index has; nil if one document of each isn't enough.
  private mutating func groups(
    _ index: UsableIndex, _ use: IndexUse, _ counter: inout some KeyCounter
  ) -> Candidate.Groups? {
    guard let grouping, use.isExact, query.bookmark == nil, use.ranges.count <= Self.maxGroupedRangeCount,
      let fieldCount = index.fieldCount(including: grouping)
    else { return nil }
    remainingWork -= Self.groupCountWork + use.ranges.count
    return Candidate.Groups(
      fieldCount: fieldCount, count: counter.groupCount(use.ranges, ofIndex: index.number, fieldCount: fieldCount))
  }

  /// Returns the union of the best ways to find the documents of each alternative; nil if one of them needs a scan.
  private mutating func union(
    of alternatives: [SelectorTree], _ conjunction: Conjunction, _ counter: inout some KeyCounter
  ) -> Candidate? {
    guard alternatives.count <= Self.maxAlternativeCount else { return nil }
    var parts: [Candidate] = []
    for alternative in alternatives {
      guard remainingWork > 0 else { return nil }
      let whole = conjunction.and(alternative)
      if whole.isImpossible { continue }
      var candidates = indexCandidates(whole, isWhole: false, &counter)
      if hint == nil, let ids = ids(whole, &counter) { candidates.append(ids) }
      for inner in whole.disjunctions {
        if let union = union(of: inner, whole, &counter) { candidates.append(union) }
      }
      guard let best = candidates.min(by: { $0.keyCount < $1.keyCount }) else { return nil }
      parts.append(best)
    }
    return Candidate.union(of: parts)
  }

  // MARK: Intersections

  /// Adds the intersections of two candidates that are worth it.
  private func addIntersections(to candidates: inout [Candidate], _ conditions: Candidate.Conditions) {
    guard candidates.count > 2, entryCount > 0, let least = candidates.map({ $0.work(conditions) }).min() else {
      return
    }
    let narrow = candidates.filter { $0.hasRanges && $0.groups == nil }.sorted { $0.keyCount < $1.keyCount }
      .prefix(Self.maxIntersectedCount)
    for (position, first) in narrow.enumerated() {
      for second in narrow.dropFirst(position + 1) where first.isIndependent(of: second) {
        let bothCount = Double(first.keyCount) * Double(second.keyCount) / Double(entryCount)
        let work = Double(first.keyCount + second.keyCount) + bothCount * Candidate.evaluationWork
        guard work < least * Self.maxIntersectionWork else { continue }
        candidates.append(.intersection(first, second, keyCount: Int(bothCount.rounded(.up))))
      }
    }
  }
}

/// Counts nothing, to see whether an index can be used at all.
private struct ZeroCounter: KeyCounter {
  mutating func count(_ range: KeyRange, ofIndex number: Int?) -> Int { 0 }
  mutating func groupCount(_ ranges: [KeyRange], ofIndex number: Int, fieldCount: Int) -> Int { 0 }
}

extension ValueRange {
  /// The ids in the range; nil if there are none.
  fileprivate var ids: KeyRange? {
    switch (lower.idBound, upper.idBound) {
    case (.end, _), (_, .start): nil
    case (.start, .end): .all
    case (.start, .id(let upper)): KeyRange(lower: [], upper: upper)
    case (.id(let lower), .end): KeyRange(lower: lower, upper: nil)
    case (.id(let lower), .id(let upper)): KeyRange(lower: lower, upper: upper)
    }
  }
}
