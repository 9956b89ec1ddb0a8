/// An index that a plan can use, prepared for one query. It is a class so that no copies are made.
final class UsableIndex: Sendable {
  /// The position among the planner's indexes.
  let number: Int
  let overflowCount: Int
  let entryCount: Int
  /// What holds for all documents in the index.
  let selectorParts: [IndexSelectorPart]
  private let multiFields: UInt32
  private let layout: IndexLayout
  /// The numbers of the fields' paths.
  private let paths: [Int]

  init(_ planned: PlannedIndex, number: Int, _ paths: inout PathNumbers) {
    self.number = number
    overflowCount = planned.overflowCount
    entryCount = planned.entryCount
    multiFields = planned.multiFields
    layout = IndexLayout(planned.index)
    self.paths = layout.fields.map { paths.add($0.path) }
    let parts: [SelectorTree] =
      switch planned.index.selector?.tree {
      case nil: []
      case .and(let parts)?: parts
      case let tree?: [tree]
      }
    selectorParts = parts.map { IndexSelectorPart($0, &paths) }
  }

  private func isMulti(_ field: Int) -> Bool { multiFields >> UInt32(field) & 1 == 1 }

  /// Returns the number of ways to use the index for a conjunction. If documents have several keys in the first field,
  /// there is one way for each constraint on it, because different keys can satisfy different constraints.
  func alternativeCount(_ conjunction: Conjunction) -> Int {
    guard isMulti(0) else { return 1 }
    return max(1, min(Self.maxAlternativeCount, conjunction.constraints.count { $0.field == paths[0] }))
  }

  /// Returns the least number of first fields that include all of some fields; nil if one of these isn't a field of the
  /// index, or has several keys in a document.
  func fieldCount(including paths: [FieldPath]) -> Int? {
    var count = 0
    for path in paths {
      guard let field = layout.fields.firstIndex(where: { $0.path == path }), !isMulti(field) else { return nil }
      count = max(count, field + 1)
    }
    return count
  }

  private static let maxAlternativeCount = 8
  /// The maximum number of ranges of a first field, of combinations with those of further fields, and of their bytes.
  static let maxRangeCount = 4_096
  private static let maxCombinationCount = 1_000
  private static let maxByteCount = 1 << 20

  // MARK: Using

  /// What is known of a field.
  private struct FieldSet {
    /// The values that the field can have; nil if it can have any.
    var ranges: [ValueRange]?
    /// The parts of the selector that say nothing but this.
    var parts: UInt64 = 0

    /// The key of the only value that the field can have; nil if it can have others.
    var point: [UInt8]? {
      guard let ranges, ranges.count == 1, ranges[0].isPoint else { return nil }
      return ranges[0].lower.bytes
    }
  }

  /// Returns how to use the index.
  /// - Parameters:
  ///   - alternative: Which constraint of the first field to use, if documents have several keys in it.
  ///   - start: Where an ordered plan starts; nil if at the first document.
  func use(
    _ conjunction: Conjunction, alternative: Int, _ order: RequestedOrder, from start: PageStart?
  ) -> IndexUse {
    let sets = paths.indices.map { set(of: $0, conjunction, alternative: $0 == 0 ? alternative : nil) }
    var keys = Keys()
    for (field, set) in sets.enumerated() {
      guard let ranges = set.ranges, keys.append(ranges, asField: field, layout) else { break }
    }
    let pointCount = sets.prefix { $0.point != nil }.count
    let fixedCount = min(pointCount, keys.fieldCount)
    // A document has one key at most with given first values, unless a further field has several.
    let isOneKeyEach =
      overflowCount == 0 && sets.indices.allSatisfy { $0 < fixedCount || !isMulti($0) }
    let isReversed = isOneKeyEach ? isReversed(order, sets, fixedCount) : nil
    var ranges = keys.ranges
    if let start, let isReversed { ranges = part(of: ranges, from: start, isReversed, sets, fixedCount) }
    return IndexUse(
      fields: (0..<keys.fieldCount).map { (layout.fields[$0].path, sets[$0].ranges ?? []) },
      ranges: ranges,
      isReversed: isReversed,
      isExact: isOneKeyEach && !keys.isCoarse && isExact(conjunction, sets.prefix(keys.fieldCount)))
  }

  private func set(of field: Int, _ conjunction: Conjunction, alternative: Int?) -> FieldSet {
    var set = FieldSet()
    guard isMulti(field) else {
      for constraint in conjunction.constraints where constraint.field == paths[field] {
        let ranges = constraint.ranges.ranges
        set.ranges = set.ranges.map { $0.intersection(ranges) } ?? ranges
        if let part = constraint.part, part < 64 { set.parts |= 1 << UInt64(part) }
      }
      return set
    }
    var number = 0
    for constraint in conjunction.constraints where constraint.field == paths[field] {
      defer { number += 1 }
      let ranges = constraint.ranges.arrayRanges
      guard alternative.map({ $0 == number }) ?? Self.isNarrower(ranges, than: set.ranges) else { continue }
      set = FieldSet(ranges: ranges)
      if constraint.ranges.isTightForArrays, let part = constraint.part, part < 64 { set.parts = 1 << UInt64(part) }
    }
    return set
  }

  /// Returns whether ranges probably have fewer values than others: fewer points, or points at all.
  private static func isNarrower(_ ranges: [ValueRange], than others: [ValueRange]?) -> Bool {
    guard let others else { return true }
    let (arePoints, areOthersPoints) = (ranges.arePoints, others.arePoints)
    return arePoints == areOthersPoints ? ranges.count < others.count : arePoints
  }

  private func isReversed(_ order: RequestedOrder, _ sets: [FieldSet], _ fixedCount: Int) -> Bool? {
    var fields: [RequestedOrder.Field] = []
    var (fixed, isTieDescending) = ([Int](), false)
    for (field, set) in sets.enumerated() {
      if paths[field] == PathNumbers.id {
        isTieDescending = layout.fields[field].isDescending
        break
      }
      let isFixed = set.point != nil && !isMulti(field)
      if isFixed { fixed.append(paths[field]) }
      if field < fixedCount || isFixed { continue }
      fields.append(RequestedOrder.Field(path: paths[field], isDescending: layout.fields[field].isDescending))
    }
    return order.isReverse(of: fields, isTieDescending: isTieDescending, fixed: fixed)
  }

  /// Returns the part of ranges that an ordered plan reads behind the last page. It begins with the keys that the page's
  /// last document has.
  private func part(
    of ranges: [KeyRange], from start: PageStart, _ isReversed: Bool, _ sets: [FieldSet], _ fixedCount: Int
  ) -> [KeyRange] {
    var bound: [UInt8] = []
    for (field, set) in sets.enumerated() {
      let isFixed = field < fixedCount || !isMulti(field)
      guard let key = (isFixed ? set.point : nil) ?? start[paths[field]] else { break }
      layout.append(key, asField: field, to: &bound)
      if paths[field] == PathNumbers.id { break }
    }
    guard !bound.isEmpty else { return ranges }
    return KeyRange.part(of: ranges, upTo: isReversed, isReversed ? ValueBound.successor(of: bound) : bound)
  }

  /// Returns whether the values of fields, and the index's selector, are all that a conjunction says.
  private func isExact(_ conjunction: Conjunction, _ sets: ArraySlice<FieldSet>) -> Bool {
    guard conjunction.parts.count <= 64 else { return false }
    let said = sets.reduce(0) { $0 | $1.parts }
    return conjunction.parts.indices.allSatisfy { part in
      said >> UInt64(part) & 1 == 1 || selectorParts.contains { conjunction.isPart(part, impliedBy: $0) }
    }
  }

  // MARK: Keys

  /// The ranges of keys for the values of the first fields.
  private struct Keys {
    /// The beginnings of keys, each with one value of each field so far.
    private var prefixes: [[UInt8]] = [[]]
    /// The ranges if the last field has more than single values.
    private var ends: [KeyRange]?
    private(set) var fieldCount = 0
    /// Whether the ranges have more values than they should.
    private(set) var isCoarse = false

    /// Appends a field.
    /// - Returns: Whether another field can follow.
    mutating func append(_ values: [ValueRange], asField field: Int, _ layout: IndexLayout) -> Bool {
      let limit = field == 0 ? maxRangeCount : max(1, maxCombinationCount / max(1, prefixes.count))
      let ranges = values.coarsened(to: limit)
      if ranges.count < values.count { isCoarse = true }
      if field > 0 {
        let size = ranges.reduce(0) { $0 + $1.lower.bytes.count + $1.upper.bytes.count }
        let prefixSize = prefixes.reduce(0) { $0 + $1.count }
        guard size * prefixes.count + prefixSize * ranges.count * 2 <= maxByteCount else { return false }
      }
      fieldCount += 1
      let bounds = ranges.map { Self.bounds(of: $0, isDescending: layout.fields[field].isDescending) }
      let ordered = layout.fields[field].isDescending ? bounds.reversed() : bounds
      guard !ranges.arePoints else {
        prefixes = prefixes.flatMap { prefix in ordered.map { prefix + $0.lower } }
        return !prefixes.isEmpty
      }
      ends = prefixes.flatMap { prefix in ordered.map { KeyRange(lower: prefix + $0.lower, upper: prefix + $0.upper) } }
      return false
    }

    /// Returns a range's bounds as an index has them. The lower bound of a point is its key.
    private static func bounds(of range: ValueRange, isDescending: Bool) -> (lower: [UInt8], upper: [UInt8]) {
      guard isDescending else { return (range.lower.bytes, range.upper.bytes) }
      var (lower, upper) = (range.upper.bytes, range.lower.bytes)
      OrderKey.complement(&lower)
      OrderKey.complement(&upper)
      if range.isPoint { return (upper, ValueBound.successor(of: upper)) }
      return (ValueBound.successor(of: lower), ValueBound.successor(of: upper))
    }

    var ranges: [KeyRange] {
      if let ends { return ends }
      guard fieldCount > 0 else { return [.allKeys] }
      return prefixes.map { KeyRange(lower: $0, upper: ValueBound.successor(of: $0)) }
    }
  }
}

/// A way to use an index.
struct IndexUse: Sendable {
  /// The first fields, and the values that they can have.
  let fields: [(path: FieldPath, ranges: [ValueRange])]
  /// The ranges of keys, in the index's order.
  let ranges: [KeyRange]
  /// Whether documents come in the order of the query if they are read backwards (true) or forwards (false); nil if they
  /// don't.
  let isReversed: Bool?
  /// Whether each key in the ranges stands for a document that matches, and no document has two of them.
  let isExact: Bool

  /// What it took to make the ranges, in ranges.
  var work: Int { ranges.reduce(ranges.count) { $0 + ($1.lower.count + ($1.upper?.count ?? 0)) / 64 } }
}
