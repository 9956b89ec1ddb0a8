/// Groups documents that are passed to it one by one, and computes aggregates of each group.
///
/// A document belongs to the group of each element of an array that it is grouped by, and to the group of missing
/// values if it has none. With several fields, it belongs to the group of each combination.
public struct DocumentAggregator: Sendable {
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
  private let aggregates: [Aggregate]
  /// The numbers of the aggregates' paths.
  private let aggregatePaths: [Int?]
  private let aggregation: DocumentAggregation
  private var table = GroupTable()
  /// The values of each group, one group's after the other's.
  private var groupValues: [JSONValue?] = []
  /// The aggregates of each group, one group's after the other's.
  private var states: [AggregateState] = []
  /// The groups that `takeGroups` has yet to pass on, the next one last; nil before it is called.
  private var sortedGroups: [Int]?
  private var metadata = EntryMetadata()
  /// The aggregates of the document that is added, if it is in several groups.
  private var parts: [AggregateState]
  /// The key of the group of the document that is added.
  private var key: [UInt8] = []
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
    aggregatePaths = aggregates.map { aggregate in aggregate.path.map { paths.add($0) } }
    program = try Program(selector.checkedTree(), after: paths)
    self.groupPaths = groupPaths
    self.aggregates = aggregates
    parts = aggregates.map { AggregateState($0) }
  }

  /// Adds a document to its groups if it matches.
  /// - Throws: `SelectorError` with the code `tooLarge` if there are more than `maxGroupCount` groups.
  /// - Complexity: O(*n*) in the size of the document, and O(*g*) in the number of its groups.
  public mutating func add(_ document: Document) throws(SelectorError) {
    let program = program
    let hasRoom = document.withSource { source in
      WorkBudget.withoutLimit { budget in addSource(source, program, documentCount: 1, &budget) }
    }
    guard hasRoom else { throw AggregationError.tooManyGroups.selectorError }
  }

  /// Adds entries to their groups that are documents and match.
  /// - Returns: The number of entries that were examined.
  /// - Throws: If there are more than `maxGroupCount` groups, they need more memory than permitted, or the budget is
  ///   exhausted. The groups mean nothing then.
  package mutating func add(
    _ entries: Span<StoredEntry>, _ budget: inout WorkBudget
  ) throws(AggregationError) -> Int {
    let program = program
    var count = 0
    while count < entries.count {
      let entry = entries[count]
      count += 1
      // Taken out of this value, so that it isn't accessed twice at once.
      var metadata = EntryMetadata()
      swap(&metadata, &self.metadata)
      let hasRoom = entry.withSource(
        &metadata, needsID: program.needsID, needsRevision: program.needsRevision
      ) { source in addSource(source, program, documentCount: entry.documentCount, &budget) }
      swap(&metadata, &self.metadata)
      guard !budget.isExhausted else { throw .exhaustedBudget }
      guard hasRoom else { throw .tooManyGroups }
    }
    return count
  }

  /// Adds a document to its groups if it matches.
  /// - Parameter budget: Once it is exhausted, the groups mean nothing.
  /// - Returns: Whether there is room for the groups.
  @inline(__always)
  private mutating func addSource(
    _ source: DocumentSource, _ program: Program, documentCount: Int, _ budget: inout WorkBudget
  ) -> Bool {
    guard source.isObject else { return true }
    return FieldValues.with(of: source, program.paths, &budget) { values, budget in
      guard program.holds(values, &budget) else { return true }
      if let hasRoom = addToOneGroup(values, documentCount: documentCount, &budget) { return hasRoom }
      // Each value is looked at once, whatever the number of groups.
      for index in aggregates.indices {
        parts[index] = AggregateState(aggregates[index])
        _ = parts[index].add(values, aggregatePaths[index], documentCount: documentCount, &budget)
      }
      let elements = groupPaths.map { path in Self.elements(of: path, values, &budget) }
      return add([], [], elements[...], &budget)
    } ?? true
  }

  /// Adds a document whose fields have single values to its group.
  /// - Returns: Whether there is room for the group; nil if a field has several values.
  @inline(__always)
  private mutating func addToOneGroup(
    _ values: borrowing FieldValues, documentCount: Int, _ budget: inout WorkBudget
  ) -> Bool? {
    for case let path? in aggregatePaths where values.isPlural(path) { return nil }
    key.removeAll(keepingCapacity: true)
    for path in groupPaths {
      guard !values.isPlural(path) else { return nil }
      if let value = values.first(of: path) {
        guard budget.spend(bytes: value.text.end) else { return true }
        OrderKey.append(value, to: &key)
      } else {
        OrderKey.appendMissing(to: &key)
      }
    }
    guard budget.spend(bytes: key.count) else { return true }
    let group = table.find(key.span) ?? addGroup(key, values, &budget)
    var position = group &* aggregatePaths.count
    for path in aggregatePaths {
      keptByteCount += states[position].add(values, path, documentCount: documentCount, &budget)
      position &+= 1
    }
    return hasRoom
  }

  /// Adds the group of a document whose fields have single values.
  @inline(never)
  private mutating func addGroup(
    _ key: [UInt8], _ values: borrowing FieldValues, _ budget: inout WorkBudget
  ) -> Int {
    var group: [JSONValue?] = []
    for path in groupPaths {
      let value = values.first(of: path)
      // A tree takes some nanoseconds for each byte.
      if let value { budget.spend(value.text.end / 2) }
      group.append(value?.tree)
    }
    return addGroup(key, group)
  }

  private var hasRoom: Bool { table.count <= Self.maxGroupCount && keptByteCount <= maxKeptByteCount }

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
    let first = (table.find(key.span) ?? addGroup(key, group)) * aggregates.count
    for index in aggregates.indices { keptByteCount += states[first + index].add(parts[index], &budget) }
    return hasRoom
  }

  /// Adds the groups of another aggregator of the same selector and aggregation.
  /// - Throws: If there are more than `maxGroupCount` groups, or the budget is exhausted. The groups mean nothing then.
  package mutating func join(_ other: DocumentAggregator, _ budget: inout WorkBudget) throws(AggregationError) {
    let fieldCount = groupPaths.count
    for number in 0..<other.table.count {
      let key = Array(other.table.key(of: number))
      guard budget.spend(Self.groupUnits + key.count / 16) else { throw .exhaustedBudget }
      let first = number * aggregates.count
      for index in aggregates.indices { parts[index] = other.states[first + index] }
      let values = other.groupValues[number * fieldCount..<(number + 1) * fieldCount]
      let hasRoom = add(key, Array(values), &budget)
      guard !budget.isExhausted else { throw .exhaustedBudget }
      guard hasRoom else { throw .tooManyGroups }
    }
  }

  /// - Returns: The number of the group.
  private mutating func addGroup(_ key: [UInt8], _ group: [JSONValue?]) -> Int {
    keptByteCount +=
      2 * key.count + group.count * MemoryLayout<JSONValue?>.stride
      + aggregates.count * MemoryLayout<AggregateState>.stride + GroupTable.byteCountPerGroup
    table.add(key.span)
    groupValues += group
    states += aggregates.map { AggregateState($0) }
    return table.count - 1
  }

  /// Returns the groups of the documents that were added, in the order of the aggregation and then of the values that
  /// they are grouped by; the groups without a value come first. Without fields to group by, there is one group, even
  /// without documents.
  /// - Complexity: O(*g* log *g*) in the number of groups.
  public consuming func result() -> [DocumentGroup] {
    WorkBudget.withoutLimit { budget throws(ExhaustedBudgetError) in
      var result: [DocumentGroup] = []
      try takeGroups(&budget) { group in
        result.append(group)
        return true
      }
      return result
    }
  }

  /// Calls `body` with the groups that `result` returns, each one once, until `body` returns false.
  /// - Throws: If the budget is exhausted. The groups mean nothing then.
  package mutating func takeGroups(
    _ budget: inout WorkBudget, _ body: (DocumentGroup) -> Bool
  ) throws(ExhaustedBudgetError) {
    if groupPaths.isEmpty, table.count == 0 { _ = addGroup([], []) }
    var groups: [Int]
    if let sortedGroups = sortedGroups.take() { groups = sortedGroups } else { groups = try sorted(&budget) }
    while let group = groups.popLast() {
      try budget.require(Self.resultUnits)
      guard body(self.group(group)) else { break }
    }
    sortedGroups = groups
  }

  /// Returns the numbers of the groups in the result, the first one last.
  private func sorted(_ budget: inout WorkBudget) throws(ExhaustedBudgetError) -> [Int] {
    var keys: [[UInt8]] = []
    if !aggregation.sort.isEmpty {
      for group in 0..<table.count {
        try budget.require(Self.orderUnits)
        keys.append(GroupOrder.key(of: self.group(group), aggregation.sort, in: aggregation))
      }
    }
    let sorted: [Int]
    do {
      sorted = try (0..<table.count).sorted { left, right in
        if !keys.isEmpty {
          let (leftKey, rightKey) = (keys[left], keys[right])
          try budget.require(bytes: leftKey.count)
          let order = leftKey.span.order(rightKey.span)
          if order != 0 { return order > 0 }
        }
        try budget.require(bytes: table.key(of: left).count)
        return table.order(left, right) > 0
      }
    } catch { throw ExhaustedBudgetError() }
    return aggregation.limit.map { Array(sorted.suffix($0)) } ?? sorted
  }

  private func group(_ number: Int) -> DocumentGroup {
    let values = number * groupPaths.count..<(number + 1) * groupPaths.count
    let states = number * aggregates.count..<(number + 1) * aggregates.count
    return DocumentGroup(key: Array(groupValues[values]), values: self.states[states].map(\.result))
  }
}

/// Why groups can't be made.
package enum AggregationError: Error {
  case tooManyGroups
  /// The work ended early.
  case exhaustedBudget

  package var selectorError: SelectorError {
    switch self {
    case .tooManyGroups:
      SelectorError(.tooLarge, "documents can be in up to \(DocumentAggregator.maxGroupCount) groups")
    case .exhaustedBudget: preconditionFailure("nothing limits the work")
    }
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
