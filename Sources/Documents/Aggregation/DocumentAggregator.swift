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

  private let program: Program
  private let groupPaths: [Int]
  private let aggregates: [(aggregate: Aggregate, path: Int?)]
  private let aggregation: DocumentAggregation
  /// By the order keys of the values that they are grouped by.
  private var groups: [[UInt8]: State] = [:]
  private var metadata = EntryMetadata()
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
  }

  /// Adds a document to its groups if it matches.
  /// - Throws: `SelectorError` with the code `tooLarge` if there are more than `maxGroupCount` groups.
  /// - Complexity: O(*n*) in the size of the document, times the number of its groups.
  public mutating func add(_ document: Document) throws(SelectorError) {
    _ = try Self.check(document.withSource { addSource($0) })
  }

  /// Adds the value of an entry to its groups if it is a document and matches.
  /// - Parameters:
  ///   - text: The value. It need not be JSON: values that aren't JSON objects match no selector.
  ///   - key: The key, in UTF-8.
  /// - Returns: Whether it matches.
  /// - Throws: `SelectorError` with the code `tooLarge` if there are more than `maxGroupCount` groups, or they need more
  ///   memory than permitted.
  package mutating func add(
    _ text: Span<UInt8>, key: Span<UInt8>, revision: UInt64
  ) throws(SelectorError) -> Bool {
    metadata.set(key: key, revision: revision, for: program.paths)
    let metadata = metadata
    return try Self.check(metadata.withSource(of: text) { addSource($0) })
  }

  private enum Addition { case noMatch, added, tooLarge }

  /// Static, because a method would have a copy of the groups made before they change.
  private static func check(_ addition: Addition) throws(SelectorError) -> Bool {
    guard addition != .tooLarge else {
      throw SelectorError(.tooLarge, "documents can be in up to \(maxGroupCount) groups")
    }
    return addition == .added
  }

  private mutating func addSource(_ source: DocumentSource) -> Addition {
    guard source.isObject else { return .noMatch }
    return FieldValues.with(of: source, program.paths) { values in
      guard program.holds(values) else { return .noMatch }
      return add(values, [], [], groupPaths[...]) ? .added : .tooLarge
    } ?? .noMatch
  }

  /// Adds a document to the groups of all combinations of values that begin with those given.
  /// - Returns: Whether there is room for its groups.
  private mutating func add(
    _ values: borrowing FieldValues, _ key: [UInt8], _ group: [JSONValue?], _ paths: ArraySlice<Int>
  ) -> Bool {
    guard let path = paths.first else { return add(values, key, group) }
    var elements: [[UInt8]: JSONValue?] = [:]
    values.forEachElement(of: path) { element in
      var elementKey: [UInt8] = []
      OrderKey.append(element, to: &elementKey)
      elements[elementKey] = .some(element.tree)
    }
    if elements.isEmpty {
      var missing: [UInt8] = []
      OrderKey.appendMissing(to: &missing)
      elements[missing] = .some(nil)
    }
    for (elementKey, element) in elements {
      guard add(values, key + elementKey, group + [element], paths.dropFirst()) else { return false }
    }
    return true
  }

  private mutating func add(_ values: borrowing FieldValues, _ key: [UInt8], _ group: [JSONValue?]) -> Bool {
    guard let position = groups.index(forKey: key) else {
      groups[key] = newState(key, group)
      return add(values, key, group)
    }
    // In place, because a copy of the state would have its aggregates copied, too.
    for index in aggregates.indices {
      keptByteCount += groups.values[position].aggregates[index].add(values, aggregates[index].path)
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
  /// they are grouped by; the groups without a value come first. Without fields to group by, there is one group, even without documents.
  /// - Complexity: O(*g* log *g*) in the number of groups.
  public consuming func result() -> [DocumentGroup] {
    if groupPaths.isEmpty, groups.isEmpty {
      let states = aggregates.map { AggregateState($0.aggregate) }
      return limited([DocumentGroup(key: [], values: states.map(\.result))])
    }
    let sorted = groups.sorted { $0.key.span.order($1.key.span) < 0 }.map { _, state in
      DocumentGroup(key: state.key, values: state.aggregates.map(\.result))
    }
    return limited(
      aggregation.sort.isEmpty ? sorted : GroupOrder.sort(sorted, by: aggregation.sort, of: aggregation))
  }

  private func limited(_ groups: [DocumentGroup]) -> [DocumentGroup] {
    aggregation.limit.map { Array(groups.prefix($0)) } ?? groups
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
