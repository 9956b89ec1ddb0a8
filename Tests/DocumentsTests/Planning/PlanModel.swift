import DocumentTestSupport
import Documents

/// A store's documents and their keys in indexes, sorted in memory: what plans are run on.
///
/// Keys are made from trees, in the plainest way.
struct PlanModel {
  /// The entries in the order of their ids. Some are no documents.
  let entries: [Document]
  let indexes: [PlannedIndex]
  /// The keys of each index with the positions of their entries, in order.
  private let keys: [[(key: [UInt8], entry: Int)]]

  /// - Parameter maxKeyCount: The number of a document's keys in an index beyond which it has the overflow key.
  init(_ documents: [Document], _ definitions: [(index: DocumentIndex, isComplete: Bool)], maxKeyCount: Int) throws {
    entries = documents.sorted { $0.id!.utf8.lexicographicallyPrecedes($1.id!.utf8) }
    var indexes: [PlannedIndex] = []
    var allKeys: [[(key: [UInt8], entry: Int)]] = []
    for (index, isComplete) in definitions {
      let selector = try index.selector.map { try CompiledSelector($0) }
      var (keys, multiFields, overflowCount) = ([(key: [UInt8], entry: Int)](), UInt32(0), 0)
      for (position, document) in entries.enumerated() {
        guard let tree = try? document.value(), selector?.matches(document) ?? true else { continue }
        let fields = index.fields.map { Self.keys(of: $0.path, in: tree) }
        let count = fields.reduce(1) { $0 * $1.keys.count }
        if count > maxKeyCount {
          overflowCount += 1
          keys.append((IndexRange.overflowKey, position))
          continue
        }
        for (field, values) in fields.enumerated() where values.isMulti { multiFields |= 1 << UInt32(field) }
        keys += Self.products(fields.map(\.keys), IndexLayout(index)).map { ($0, position) }
      }
      keys.sort { left, right in
        left.key == right.key ? left.entry < right.entry : left.key.lexicographicallyPrecedes(right.key)
      }
      allKeys.append(isComplete ? keys : [])
      indexes.append(
        PlannedIndex(
          index, isComplete: isComplete, multiFields: multiFields, overflowCount: overflowCount, entryCount: keys.count)
      )
    }
    self.indexes = indexes
    keys = allKeys
  }

  // MARK: Keys

  /// The keys of a field in a document, and whether there are several or the value is an array.
  private static func keys(of path: FieldPath, in document: JSONValue) -> (keys: [[UInt8]], isMulti: Bool) {
    let values = TreeOracle.values(document, path.names[...])
    var keys = Set(values.map(OrderKey.key))
    var isMulti = false
    for case .array(let elements) in values {
      isMulti = true
      for element in elements { keys.insert(OrderKey.key(of: element)) }
    }
    if keys.isEmpty { keys.insert(OrderKey.missing) }
    // An array in an array, in the field or on the way to it.
    for count in 1...path.names.count {
      for case .array(let elements) in TreeOracle.values(document, path.names.prefix(count)) {
        for case .array in elements { keys.insert(OrderKey.nested) }
      }
    }
    return (Array(keys), isMulti || keys.count > 1)
  }

  private static func products(_ fields: [[[UInt8]]], _ layout: IndexLayout) -> [[UInt8]] {
    var keys: [[UInt8]] = [[]]
    for (field, values) in fields.enumerated() {
      keys = keys.flatMap { key in
        values.map { value in
          var whole = key
          layout.append(value, asField: field, to: &whole)
          return whole
        }
      }
    }
    return keys
  }

  // MARK: Running

  /// The entries that a plan leads to, in its order. An entry can occur more than once.
  func candidates(_ plan: FindPlan) -> [Document] { positions(plan.source, plan.isReversed).map { entries[$0] } }

  private func positions(_ source: FindPlan.Source, _ isReversed: Bool) -> [Int] {
    switch source {
    case .nothing: return []
    case .ids(let ranges):
      check(ranges)
      let found = ranges.flatMap { range in entries.indices.filter { range.contains(Array(entries[$0].id!.utf8)) } }
      return isReversed ? found.reversed() : found
    case .index(let number, let ranges):
      check(ranges)
      precondition(indexes[number].isComplete && !ranges.contains { $0.contains(IndexRange.overflowKey) })
      let found = ranges.flatMap { range in keys[number].filter { range.contains($0.key) } }
      let overflow = keys[number].filter { $0.key == IndexRange.overflowKey }
      return ((isReversed ? found.reversed() : found) + overflow).map(\.entry)
    case .union(let sources): return sources.flatMap { positions($0, isReversed) }
    case .intersection(let sources):
      let sets = sources.map { Set(positions($0, isReversed)) }
      return sets.dropFirst().reduce(sets[0]) { $0.intersection($1) }.sorted()
    }
  }

  /// The groups of the documents that a plan leads to: of all, or of one document for each group of keys.
  func groups(_ plan: FindPlan, _ selector: Selector, _ aggregation: DocumentAggregation) throws -> [DocumentGroup] {
    var aggregator = try DocumentAggregator(selector, aggregation)
    guard let fieldCount = plan.groupFieldCount, case .index(let number, let ranges) = plan.source else {
      for document in Set(positions(plan.source, false)).sorted() { try aggregator.add(entries[document]) }
      return aggregator.result()
    }
    check(ranges)
    let layout = IndexLayout(indexes[number].index)
    for range in ranges {
      let found = keys[number].filter { range.contains($0.key) }
      let values = found.map { $0.key.prefix(layout.size(ofFields: fieldCount, in: $0.key.span)) }
      for start in found.indices where start == 0 || values[start] != values[start - 1] {
        let document = entries[found[start].entry]
        let count = values[start...].prefix { $0 == values[start] }.count
        var budget = WorkBudget()
        let isMatch = try CompiledSelector(selector).matches(document)
        precondition(isMatch, "\(document) doesn't match")
        _ = try StoredEntry.withTrust(
          key: document.id!, document.text, revision: document.revision!, documentCount: count
        ) { try aggregator.add([$0].span, &budget) }
      }
    }
    return aggregator.result()
  }

  /// Stops the program unless ranges ascend and are disjoint.
  private func check(_ ranges: [KeyRange]) {
    for (range, next) in zip(ranges, ranges.dropFirst()) {
      precondition(range.upper.map { !next.lower.lexicographicallyPrecedes($0) } ?? false, "\(ranges)")
    }
    precondition(ranges.count <= 4_096)
  }

  /// A counter that counts, or makes up numbers, so that all kinds of plans are chosen.
  struct Counter<Random: RandomNumberGenerator>: KeyCounter {
    let model: PlanModel
    /// Where numbers come from; nil to count.
    var random: Random?
    private(set) var countedRanges = 0

    init(_ model: PlanModel, _ random: Random?) {
      self.model = model
      self.random = random
    }

    mutating func count(_ range: KeyRange, ofIndex number: Int?) -> Int {
      countedRanges += 1
      if random != nil { return Int.random(in: 0...Int.random(in: 1...100, using: &random!), using: &random!) }
      guard let number else { return model.entries.count { range.contains(Array($0.id!.utf8)) } }
      return model.keys[number].count { range.contains($0.key) }
    }

    mutating func groupCount(_ ranges: [KeyRange], ofIndex number: Int, fieldCount: Int) -> Int {
      if random != nil { return count(.all, ofIndex: number) }
      let layout = IndexLayout(model.indexes[number].index)
      let keys = model.keys[number].map(\.key).filter { key in ranges.contains { $0.contains(key) } }
      return Set(keys.map { $0.prefix(layout.size(ofFields: fieldCount, in: $0.span)) }).count
    }
  }

  // MARK: Checking

  /// Returns what is wrong with a plan; nil if it finds what a scan finds.
  func flaw(_ plan: FindPlan, _ query: DocumentQuery) throws -> String? {
    let whole = try entries.find(DocumentQuery(query.selector, sort: query.sort)).documents.map { $0.id! }
    let selector = try CompiledSelector(query.selector)
    let candidates = candidates(plan)
    let matches = candidates.filter(selector.matches).map { $0.id! }
    if Set(matches) != Set(whole).intersection(query.bookmark == nil ? whole : matches) {
      return "finds \(matches) instead of \(whole)"
    }
    if plan.isExact, query.bookmark == nil, candidates.count != whole.count || matches.count != whole.count {
      return "isn't exact: \(candidates.map { $0.id! }) instead of \(whole)"
    }
    if plan.isOrdered, matches != whole.suffix(matches.count) { return "isn't ordered: \(matches) instead of \(whole)" }
    if query.bookmark != nil {
      var rest = DocumentQuery(query.selector, sort: query.sort)
      rest.bookmark = query.bookmark
      let page = try entries.find(rest).documents.map { $0.id! }
      guard Set(page).isSubset(of: matches) else { return "finds \(matches) instead of \(page) after the bookmark" }
    }
    return nil
  }
}
