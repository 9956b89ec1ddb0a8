/// Groups documents that are passed to it one by one, and computes aggregates of each group.
///
/// A document belongs to the group of each element of an array that it is grouped by, and to the group of missing
/// values if it has none. With several fields, it belongs to the group of each combination.
public struct DocumentAggregator: Sendable {
  private struct State {
    let key: [JSONValue?]
    var aggregates: [AggregateState]
  }

  /// The maximum number of groups.
  public static let maxGroupCount = 1_000_000
  /// What a combination of values takes.
  private static let groupUnits = 16
  /// What making the key takes by which a group is sorted.
  private static let orderUnits = 32
  /// What making the result of a group takes.
  private static let resultUnits = 128

  private let program: Program
  private let groupPaths: [Int]
  private let aggregates: [(aggregate: Aggregate, path: Int?)]
  private let aggregation: DocumentAggregation
  /// By the order keys of the values that they are grouped by.
  private var groups: [[UInt8]: State] = [:]
  /// The groups that `takeGroups` has yet to pass on.
  private var sortedGroups: [(key: [UInt8], state: State)] = []
  private var metadata = EntryMetadata()
  /// The aggregates of the document that is added.
  private var parts: [AggregateState]
  /// The memory of the groups that were added, in bytes, approximately.
  package private(set) var keptByteCount = 0
  /// The memory beyond which nothing is added any more.
  package var maxKeptByteCount = Int.max

  /// Creates an aggregator without documents.
  /// - Parameters:
  ///   - selector: Which documents are aggregated.
  ///   - fields: The fields to group by. Without any, all documents are one group.
  ///   - aggregates: What is computed from each group, in this order.
  /// - Throws: `SelectorError` if the selector needs a text index, or if it was built in Swift and exceeds a limit.
  public init(
    _ selector: Selector = .all, groupedBy fields: [FieldPath] = [], computing aggregates: [Aggregate] = [.count]
  ) throws(SelectorError) {
    try self.init(selector, DocumentAggregation(by: fields, computing: aggregates))
  }

  /// Creates an aggregator without documents.
  /// - Parameter selector: Which documents are aggregated.
  /// - Throws: `SelectorError` if the selector needs a text index, if it was built in Swift and exceeds a limit, or if
  ///   groups are sorted by what they don't have.
  public init(_ selector: Selector, _ aggregation: DocumentAggregation) throws(SelectorError) {
    try aggregation.check()
    let (fields, aggregates) = (aggregation.fields, aggregation.aggregates)
    self.aggregation = aggregation
    var paths = PathTrie()
    let groupPaths = fields.map { paths.add($0) }
    let numbered = aggregates.map { aggregate in (aggregate, aggregate.path.map { paths.add($0) }) }
    program = try Program(selector.checkedTree(), after: paths)
    self.groupPaths = groupPaths
    self.aggregates = numbered
    parts = aggregates.map { AggregateState($0) }
  }

  /// Adds a document to its groups if it matches.
  /// - Throws: `SelectorError` with the code `tooLarge` if there are more than `maxGroupCount` groups.
  /// - Complexity: O(*n*) in the size of the document, and O(*g*) in the number of its groups.
  public mutating func add(_ document: Document) throws(SelectorError) {
    var budget = WorkBudget()
    _ = try Self.check(document.withSource { addSource($0, documentCount: 1, &budget) })
  }

  /// Adds the value of an entry to its groups if it is a document and matches.
  /// - Parameters:
  ///   - text: The value. It need not be JSON: values that aren't JSON objects match no selector.
  ///   - key: The key, in UTF-8.
  ///   - documentCount: The number of documents that it stands for: those that match, too, and have the same single
  ///     values in the aggregation's `decidingFields`.
  ///   - budget: Once it is exhausted, neither the result nor the groups mean anything.
  /// - Returns: Whether it matches.
  /// - Throws: `SelectorError` with the code `tooLarge` if there are more than `maxGroupCount` groups, or they need more
  ///   memory than permitted.
  package mutating func add(
    _ text: Span<UInt8>, key: Span<UInt8>, revision: UInt64, documentCount: Int = 1, _ budget: inout WorkBudget
  ) throws(SelectorError) -> Bool {
    metadata.set(key: key, revision: revision, for: program.paths)
    let metadata = metadata
    return try Self.check(
      metadata.withSource(of: text) { addSource($0, documentCount: documentCount, &budget) })
  }

  private enum Addition { case noMatch, added, tooLarge }

  /// Static, because a method would have a copy of the groups made before they change.
  private static func check(_ addition: Addition) throws(SelectorError) -> Bool {
    guard addition != .tooLarge else {
      throw SelectorError(.tooLarge, "documents can be in up to \(maxGroupCount) groups")
    }
    return addition == .added
  }

  private mutating func addSource(
    _ source: DocumentSource, documentCount: Int, _ budget: inout WorkBudget
  ) -> Addition {
    guard source.isObject else { return .noMatch }
    return FieldValues.with(of: source, program.paths, &budget) { values, budget in
      guard program.holds(values, &budget) else { return .noMatch }
      // Each value is looked at once, whatever the number of groups.
      for index in aggregates.indices {
        parts[index] = AggregateState(aggregates[index].aggregate)
        parts[index].add(values, aggregates[index].path, documentCount: documentCount, &budget)
      }
      let elements = groupPaths.map { path in Self.elements(of: path, values, &budget) }
      return add([], [], elements[...], &budget) ? .added : .tooLarge
    } ?? .noMatch
  }

  /// A value that documents are grouped by; nil for a missing one.
  private typealias Element = (key: [UInt8], value: JSONValue?)

  /// Returns the different elements that a path leads to, or a missing value.
  private static func elements(
    of path: Int, _ values: borrowing FieldValues, _ budget: inout WorkBudget
  ) -> [Element] {
    var elements: [Element] = []
    var known: Set<[UInt8]> = []
    values.forEachElement(of: path, &budget) { element, budget in
      // A tree takes some nanoseconds for each byte.
      guard budget.spend(element.text.end / 2) else { return }
      var key: [UInt8] = []
      OrderKey.append(element, to: &key)
      if let first = elements.first {
        // A single value, as most fields have, needs no set.
        if known.isEmpty { known = [first.key] }
        guard known.insert(key).inserted else { return }
      }
      elements.append((key, element.tree))
    }
    guard elements.isEmpty else { return elements }
    var missing: [UInt8] = []
    OrderKey.appendMissing(to: &missing)
    return [(missing, nil)]
  }

  /// Adds a document to the groups of all combinations of values that begin with those given.
  /// - Parameter elements: The values of the fields that are left.
  /// - Returns: Whether there is room for its groups.
  private mutating func add(
    _ key: [UInt8], _ group: [JSONValue?], _ elements: ArraySlice<[Element]>, _ budget: inout WorkBudget
  ) -> Bool {
    guard let first = elements.first else { return add(key, group, &budget) }
    for element in first {
      guard budget.spend(Self.groupUnits + (key.count + element.key.count) / 16) else { return true }
      guard add(key + element.key, group + [element.value], elements.dropFirst(), &budget) else { return false }
    }
    return true
  }

  private mutating func add(_ key: [UInt8], _ group: [JSONValue?], _ budget: inout WorkBudget) -> Bool {
    guard let position = groups.index(forKey: key) else {
      groups[key] = newState(key, group)
      return add(key, group, &budget)
    }
    // In place, because a copy of the state would have its aggregates copied, too.
    for index in aggregates.indices {
      keptByteCount += groups.values[position].aggregates[index].add(parts[index], &budget)
    }
    return groups.count <= Self.maxGroupCount && keptByteCount <= maxKeptByteCount
  }

  private mutating func newState(_ key: [UInt8], _ group: [JSONValue?]) -> State {
    keptByteCount +=
      2 * key.count + group.count * MemoryLayout<JSONValue?>.stride
      + aggregates.count * MemoryLayout<AggregateState>.stride + MemoryLayout<State>.stride
    return State(key: group, aggregates: aggregates.map { AggregateState($0.aggregate) })
  }

  /// Returns the groups of the documents that were added, in the order of the aggregation and then of the values that
  /// they are grouped by; the groups without a value come first. Without fields to group by, there is one group, even
  /// without documents.
  /// - Complexity: O(*g* log *g*) in the number of groups.
  public consuming func result() -> [DocumentGroup] {
    var budget = WorkBudget()
    var result: [DocumentGroup] = []
    takeGroups(&budget) { group in
      result.append(group)
      return true
    }
    return result
  }

  /// Calls `body` with the groups that `result` returns, and removes them one by one, until `body` returns false.
  /// - Parameter budget: Once it is exhausted, there are no more groups.
  package mutating func takeGroups(_ budget: inout WorkBudget, _ body: (DocumentGroup) -> Bool) {
    if groupPaths.isEmpty, groups.isEmpty { groups[[]] = newState([], []) }
    var count = aggregation.limit ?? .max
    // The next one is taken off the end.
    sortedGroups = groups.map { key, state in
      (key: budget.spend(Self.orderUnits) ? orderKey(of: state) + key : key, state: state)
    }
    .sorted { left, right in
      budget.spend(bytes: left.key.count) && left.key.span.order(right.key.span) > 0
    }
    groups = [:]
    while count > 0, budget.spend(Self.resultUnits), let (_, state) = sortedGroups.popLast() {
      count -= 1
      guard body(DocumentGroup(key: state.key, values: state.aggregates.map(\.result))) else { return }
    }
  }

  /// Returns the beginning of a group's order key, which its place in the result depends on first.
  private func orderKey(of state: State) -> [UInt8] {
    if aggregation.sort.isEmpty { return [] }
    return GroupOrder.key(
      of: DocumentGroup(key: state.key, values: state.aggregates.map(\.result)), aggregation.sort, in: aggregation)
  }
}

/// The documents that have the same values in the fields that they are grouped by.
public struct DocumentGroup: Equatable, Sendable {
  /// The values of the fields, in the order of the fields; nil for a missing one.
  public let key: [JSONValue?]
  /// The aggregates, in the order that they were asked for; nil for one that is missing.
  public let values: [JSONValue?]
}

extension Sequence<Document> {
  /// Returns the number of documents that match a selector.
  /// - Throws: `SelectorError` if the selector needs a text index, or if it was built in Swift and exceeds a limit.
  /// - Complexity: O(*n*) in the size of all documents.
  public func count(_ selector: Selector) throws(SelectorError) -> Int {
    let compiled = try CompiledSelector(selector)
    return reduce(0) { count, document in compiled.matches(document) ? count + 1 : count }
  }

  /// Returns the different values that a field has in the documents that match a selector, in their total order. Of an
  /// array, the elements count.
  /// - Throws: `SelectorError` if the selector needs a text index, or if there are more than 1,000,000 values.
  public func distinct(_ field: FieldPath, _ selector: Selector = .all) throws(SelectorError) -> [JSONValue] {
    try groups(of: selector, by: [field], computing: []).compactMap { $0.key[0] }
  }

  /// Returns the groups of the documents that match a selector, in the order of the values that they are grouped by.
  /// - Throws: `SelectorError` if the selector needs a text index, or if there are more than 1,000,000 groups.
  public func groups(
    of selector: Selector = .all, by fields: [FieldPath], computing aggregates: [Aggregate] = [.count]
  ) throws(SelectorError) -> [DocumentGroup] {
    var aggregator = try DocumentAggregator(selector, groupedBy: fields, computing: aggregates)
    for document in self { try aggregator.add(document) }
    return aggregator.result()
  }
}
