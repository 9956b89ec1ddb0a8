/// Why a plan was chosen, for people.
package struct PlanExplanation: Sendable {
  /// What became of an index.
  enum Note: Sendable {
    case incomplete
    case notImplied
    case unusedField
    /// Another plan takes less work, or this index is part of the plan.
    case moreWork(Int)

    /// The number of keys that would have to be examined.
    var keyCount: Int? { if case .moreWork(let count) = self { count } else { nil } }

    /// Returns why an index is not used.
    func text(_ index: DocumentIndex) -> String {
      switch self {
      case .incomplete: "it is still being built"
      case .notImplied: "the query doesn't imply the index's selector"
      case .unusedField:
        "the selector doesn't limit its first field, \(index.fields[0].path), and the sort isn't its order"
      case .moreWork: "another plan takes less work"
      }
    }
  }

  private let query: DocumentQuery
  private let grouping: [FieldPath]
  private let candidate: Candidate
  private let abandoned: Candidate?
  private let indexes: [PlannedIndex]
  private let notes: [Note?]
  private let isHint: Bool

  /// The maximum number of ranges that are shown of each index.
  private static let maxShownCount = 16

  /// - Parameters:
  ///   - grouping: The fields of an index that could count groups.
  ///   - candidate: What was chosen.
  ///   - abandoned: What was begun before, and didn't end as early as expected; nil if nothing was.
  ///   - notes: What became of each index.
  ///   - isHint: Whether the query asked for the index.
  init(
    _ query: DocumentQuery, grouping: [FieldPath], _ candidate: Candidate, insteadOf abandoned: Candidate?,
    _ indexes: [PlannedIndex], _ notes: [Note?], isHint: Bool
  ) {
    self.query = query
    self.grouping = grouping
    self.candidate = candidate
    self.abandoned = abandoned
    self.indexes = indexes
    self.notes = notes
    self.isHint = isHint
  }

  /// The explanation as JSON: the selector in its normal form, the plan, what became of the indexes that are not in it,
  /// and the fields of an index that would help.
  package var json: JSONValue {
    var plan = object(candidate)
    plan["ordered"] = .bool(candidate.isReversed != nil)
    plan["reversed"] = .bool(isReadBackward)
    plan["covered"] = .bool(candidate.isExact)
    if let groups = candidate.groups { plan["estimatedGroups"] = .integer(Int64(groups.count)) }
    if let abandoned { plan["insteadOf"] = .object(self.object(abandoned)) }
    var object: JSONObject = ["selector": query.selector.json, "plan": .object(plan), "candidates": .array(others)]
    if let suggestion { object["suggestion"] = ["fields": .array(suggestion.map(Self.json))] }
    return .object(object)
  }

  // MARK: The plan

  /// Whether the documents are read against the order that their index declares. An index whose last field is descending
  /// is itself laid out backward.
  private var isReadBackward: Bool {
    guard let isReversed = candidate.isReversed else { return false }
    guard case .index(let number, _, _) = candidate.access else { return isReversed }
    return isReversed != IndexLayout(indexes[number].index).isReversed
  }

  private func object(_ candidate: Candidate) -> JSONObject {
    var object = JSONObject()
    switch candidate.access {
    case .scan: object["kind"] = "scan"
    case .nothing: object["kind"] = "nothing"
    case .ids(let ranges, let values):
      object["kind"] = "ids"
      object["rangeCount"] = .integer(Int64(ranges.count))
      object["ranges"] = Self.ranges([[(PathNumbers.idPath, values)]])
    case .index(let number, let ranges, let alternatives):
      object["kind"] = "index"
      object["index"] = .string(indexes[number].index.name)
      object["rangeCount"] = .integer(Int64(ranges.count))
      object["ranges"] = Self.ranges(alternatives)
    case .union(let parts):
      object["kind"] = "union"
      object["parts"] = .array(parts.map { .object(self.object($0)) })
    case .intersection(let parts):
      object["kind"] = "intersection"
      object["parts"] = .array(parts.map { .object(self.object($0)) })
    }
    object["estimatedKeys"] = .integer(Int64(candidate.keyCount))
    return object
  }

  /// Returns the first ranges: objects with the values of fields.
  private static func ranges(_ alternatives: [[(path: FieldPath, ranges: [ValueRange])]]) -> JSONValue {
    var shown: [JSONValue] = []
    for fields in alternatives {
      var objects = [JSONObject()]
      for (path, ranges) in fields {
        objects = Array(
          objects.lazy.flatMap { object in
            ranges.prefix(maxShownCount).map { range in
              var object = object
              object[path.description] = range.json
              return object
            }
          }.prefix(maxShownCount))
      }
      shown += objects.map(JSONValue.object)
      if shown.count >= maxShownCount { break }
    }
    return .array(Array(shown.prefix(maxShownCount)))
  }

  // MARK: Other indexes

  private var others: [JSONValue] {
    let used = usedIndexes(candidate)
    return indexes.indices.filter { !used.contains($0) }.map { number in
      let reason =
        notes[number]?.text(indexes[number].index)
        ?? (isHint ? "the query asks for another index" : "it was not considered")
      var object: JSONObject = ["index": .string(indexes[number].index.name), "reason": .string(reason)]
      if let count = notes[number]?.keyCount { object["estimatedKeys"] = .integer(Int64(count)) }
      return .object(object)
    }
  }

  private func usedIndexes(_ candidate: Candidate) -> Set<Int> {
    switch candidate.access {
    case .index(let number, _, _): [number]
    case .union(let parts), .intersection(let parts): parts.reduce(into: []) { $0.formUnion(usedIndexes($1)) }
    case .scan, .ids, .nothing: []
    }
  }

  // MARK: Suggestion

  /// The fields of an index that would help; nil if there is none, or if an index begins with these fields.
  private var suggestion: [SortField]? {
    let isUnsorted = !query.sort.isEmpty && candidate.isReversed == nil
    switch candidate.access {
    case .scan where candidate.isReversed == nil || !query.selector.tree.isEverything || !grouping.isEmpty: break
    case .index where isUnsorted: break
    case .scan, .ids, .index, .union, .intersection, .nothing: return nil
    }
    let parts: [SelectorTree] =
      if case .and(let parts) = query.selector.tree { parts } else { [query.selector.tree] }
    let limits = parts.flatMap { $0.limits() }.filter { $0.path != PathNumbers.idPath }
    var fields: [SortField] = []
    func append(_ field: SortField) {
      if !fields.contains(where: { $0.path == field.path }) { fields.append(field) }
    }
    for (path, isPoint) in limits where isPoint { append(.ascending(path)) }
    for field in query.sort {
      guard field.path != PathNumbers.idPath else { break }
      append(field)
    }
    // Other conditions must be on fields of the index, too.
    if limits.allSatisfy(\.isPoint) { for path in grouping { append(.ascending(path)) } }
    if query.sort.isEmpty, let (path, _) = limits.first(where: { !$0.isPoint }) { append(.ascending(path)) }
    fields = Array(fields.prefix(DocumentIndex.maxFieldCount))
    let exists = indexes.contains { planned in
      planned.index.selector == nil && planned.index.fields.starts(with: fields) { $0.path == $1.path }
    }
    return fields.isEmpty || exists ? nil : fields
  }

  private static func json(_ field: SortField) -> JSONValue {
    field.direction == .ascending ? .string(field.path.description) : field.json
  }
}

extension SelectorTree {
  /// Returns the fields that a part of a selector limits in an index, and whether to single values.
  fileprivate func limits(under parent: FieldPath? = nil) -> [(path: FieldPath, isPoint: Bool)] {
    guard case .field(let field, let condition) = self else { return [] }
    let path = field.map { parent + $0 } ?? parent
    guard let path else { return [] }
    switch condition {
    case .elemMatch(let inner), .allMatch(let inner):
      let parts: [SelectorTree] = if case .and(let parts) = inner { parts } else { [inner] }
      return parts.flatMap { $0.limits(under: path) }
    case .all(let values): return values.isEmpty ? [] : [(path, true)]
    case .regex(let expression, []): return expression.anchoredLiteralPrefix == nil ? [] : [(path, false)]
    default:
      guard let ranges = condition.keyRanges, ranges.isTight else { return [] }
      return [(path, ranges.ranges.arePoints)]
    }
  }
}
