/// A way to find the documents of a query, with what it takes.
struct Candidate: Sendable {
  /// Where documents come from.
  indirect enum Access: Sendable {
    /// All entries, or those behind the last page.
    case scan([KeyRange])
    /// Ids, and the values of `_id` that they are.
    case ids([KeyRange], [ValueRange])
    /// Ranges of an index, and what they are made of: the values of the first fields, for each alternative.
    case index(Int, [KeyRange], [[(path: FieldPath, ranges: [ValueRange])]])
    case union([Candidate])
    case intersection([Candidate])
    case nothing
  }

  /// The groups of an index's keys by its first fields, if one document of each is enough.
  struct Groups {
    let fieldCount: Int
    /// The number of groups that are expected.
    let count: Int
  }

  let access: Access
  /// The number of keys in all ranges, with the overflow keys; of an intersection, the number of documents that are
  /// expected.
  let keyCount: Int
  /// The number of keys that are read before the first document is evaluated.
  private let gatheredCount: Int
  /// Whether documents come in the order of the query if they are read backwards (true) or forwards (false); nil if they
  /// don't.
  let isReversed: Bool?
  /// Whether all keys stand for different documents that match.
  let isExact: Bool
  /// nil if all documents are needed.
  let groups: Groups?

  init(
    _ access: Access, keyCount: Int, gatheredCount: Int = 0, isReversed: Bool? = nil, isExact: Bool = false,
    groups: Groups? = nil
  ) {
    self.access = access
    self.keyCount = keyCount
    self.gatheredCount = gatheredCount
    self.isReversed = isReversed
    self.isExact = isExact
    self.groups = groups
  }

  static let nothing = Candidate(.nothing, keyCount: 0, isReversed: false, isExact: true)

  /// Whether ranges of values limit the documents.
  var hasRanges: Bool {
    switch access {
    case .scan: false
    case .index(_, _, let alternatives): alternatives.allSatisfy { !$0.isEmpty }
    case .ids, .union, .intersection, .nothing: true
    }
  }

  /// Whether this candidate and another one limit different fields, or one field of an index in different ways.
  func isIndependent(of other: Candidate) -> Bool {
    if case .index(let number, _, _) = access, case .index(number, _, _) = other.access { return true }
    let paths = limitedPaths
    return !other.limitedPaths.contains { paths.contains($0) }
  }

  /// The number of fields whose values are limited, in all ranges together.
  var limitedFieldCount: Int { limitedPaths.count }

  /// The fields whose values are limited.
  private var limitedPaths: [FieldPath] {
    switch access {
    case .scan, .nothing: []
    case .ids: [PathNumbers.idPath]
    case .index(_, _, let alternatives): alternatives.flatMap { $0.map(\.path) }
    case .union(let parts), .intersection(let parts): parts.flatMap(\.limitedPaths)
    }
  }

  var plan: FindPlan {
    FindPlan(
      source, isReversed: isReversed ?? false, isOrdered: isReversed != nil, isExact: isExact,
      groupFieldCount: groups?.fieldCount)
  }

  private var source: FindPlan.Source {
    switch access {
    case .scan(let ranges), .ids(let ranges, _): .ids(ranges)
    case .index(let number, let ranges, _): .index(number, ranges)
    case .union(let parts): .union(parts.map(\.source))
    case .intersection(let parts): .intersection(parts.map(\.source))
    case .nothing: .nothing
    }
  }

  // MARK: Work

  /// What decides about the work of a plan, apart from the plan.
  struct Conditions {
    /// The number of documents that are expected to match, at most.
    let matchCount: Int
    /// The number of matches after which the page is complete; nil if all are needed.
    let window: Int?
    /// Whether documents are needed in any order.
    let ignoresOrder: Bool
    /// Whether all documents that match are evaluated, even if their number is known.
    let readsDocuments: Bool
  }

  /// The expected work, in units of an examined key.
  /// - Parameter endsEarly: Whether the plan ends when the page is complete, after as many keys as are expected if the
  ///   matches are spread evenly. Otherwise, it examines all keys.
  func work(_ conditions: Conditions, endsEarly: Bool = true) -> Double {
    if let groups { return Double(groups.count) * Self.groupWork }
    let matchCount = Double(max(conditions.matchCount, 1))
    let window = conditions.window.map(Double.init)
    var examinedCount = Double(keyCount)
    var sorting = 0.0
    if isReversed != nil {
      if let window, endsEarly { examinedCount = min(examinedCount, window * examinedCount / matchCount) }
    } else if !conditions.ignoresOrder {
      // Each match is compared with those that are kept.
      let sortedCount = min(matchCount, examinedCount)
      sorting = sortedCount * (1 + Double.log2(min(window ?? sortedCount, sortedCount) + 1) / 4)
    }
    return Double(gatheredCount) + examinedCount * workPerKey(conditions) + sorting
  }

  /// The work of examining a key, and the document that it stands for.
  func workPerKey(_ conditions: Conditions) -> Double {
    // The keys to sort by are made of documents.
    let evaluates = conditions.readsDocuments || !isExact || isReversed == nil && !conditions.ignoresOrder
    return keyWork + (evaluates ? Self.evaluationWork : 0)
  }

  /// The work of evaluating a document.
  static let evaluationWork = 8.0
  /// The work of finding a group's keys, and of evaluating one of its documents.
  private static let groupWork = 24.0

  /// The work of finding the document of a key.
  private var keyWork: Double {
    switch access {
    case .scan, .ids, .nothing: 0
    case .index: 1
    case .union, .intersection: 2
    }
  }
}

// MARK: Combining

extension Candidate {
  /// Returns the union of some candidates, with one part for each index and for ids; nil if it has too many ranges.
  static func union(of candidates: [Candidate]) -> Candidate? {
    var parts: [Candidate] = []
    for candidate in candidates {
      guard case .union(let inner) = candidate.access else {
        parts.append(candidate)
        continue
      }
      parts += inner
    }
    var merged: [Candidate] = []
    for part in parts {
      if let position = merged.firstIndex(where: { $0.hasSameSource(as: part) }) {
        merged[position].append(part)
      } else {
        merged.append(part)
      }
    }
    var rangeCount = 0
    for position in merged.indices { rangeCount += merged[position].mergeRanges() }
    guard rangeCount <= UsableIndex.maxRangeCount else { return nil }
    switch merged.count {
    case 0: return nothing
    case 1: return merged[0]
    default: return Candidate(.union(merged), keyCount: merged.reduce(0) { $0 + $1.keyCount })
    }
  }

  private func hasSameSource(as other: Candidate) -> Bool {
    switch (access, other.access) {
    case (.index(let left, _, _), .index(let right, _, _)): left == right
    case (.ids, .ids): true
    default: false
    }
  }

  /// Appends the ranges of another candidate for the same index or for ids.
  private mutating func append(_ other: Candidate) {
    switch (access, other.access) {
    case (.index(let number, let ranges, let alternatives), .index(_, let otherRanges, let otherAlternatives)):
      self = Candidate(
        .index(number, ranges + otherRanges, alternatives + otherAlternatives), keyCount: keyCount + other.keyCount)
    case (.ids(let ranges, let values), .ids(let otherRanges, let otherValues)):
      self = Candidate(.ids(ranges + otherRanges, values + otherValues), keyCount: keyCount + other.keyCount)
    default: preconditionFailure("candidates of different sources")
    }
  }

  /// Makes the ranges ascend and be disjoint, as a part of a union. Returns their number.
  private mutating func mergeRanges() -> Int {
    switch access {
    case .index(let number, let ranges, let alternatives):
      let merged = KeyRange.union(ranges)
      self = Candidate(.index(number, merged, alternatives), keyCount: keyCount)
      return merged.count
    case .ids(let ranges, let values):
      let merged = KeyRange.union(ranges)
      self = Candidate(.ids(merged, .union(values)), keyCount: keyCount)
      return merged.count
    case .scan, .union, .intersection, .nothing: return 0
    }
  }

  /// - Parameter keyCount: The number of documents that are expected in both.
  static func intersection(_ first: Candidate, _ second: Candidate, keyCount: Int) -> Candidate {
    Candidate(
      .intersection([first, second]), keyCount: keyCount, gatheredCount: first.keyCount + second.keyCount)
  }
}

extension KeyRange {
  /// Returns disjoint ranges, in ascending order, with the strings of some ranges.
  fileprivate static func union(_ ranges: [KeyRange]) -> [KeyRange] {
    var union: [KeyRange] = []
    for range in ranges.sorted(by: { $0.lower.span.order($1.lower.span) < 0 }) {
      guard let last = union.last, last.upper.map({ range.lower.span.order($0.span) < 0 }) ?? true else {
        union.append(range)
        continue
      }
      guard let lastUpper = last.upper else { continue }
      let isLonger = range.upper.map { lastUpper.span.order($0.span) < 0 } ?? true
      if isLonger { union[union.count - 1] = KeyRange(lower: last.lower, upper: range.upper) }
    }
    return union
  }
}

extension Double {
  /// Returns the exponent and an approximate fraction of a logarithm.
  fileprivate static func log2(_ value: Double) -> Double { Double(value.exponent) + value.significand - 1 }
}
