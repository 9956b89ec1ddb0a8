/// What is computed from the documents of a group.
///
/// Values are those of a field in all documents of the group, with the elements in place of an array. Values that
/// aren't numbers don't count for sum and average; minimum and maximum follow the total order of all values but `null`.
public enum Aggregate: Equatable, Sendable {
  /// The number of documents.
  case count
  /// The sum of the numbers, which is 0 if there are none, and missing if infinities of both signs are among them. A
  /// sum of integers is exact if it fits into 64 bits. Other numbers are rounded: first in the sum of a document's, then
  /// in that of a group's documents.
  case sum(FieldPath)
  /// The average of the numbers, as a double; missing if there are none.
  case average(FieldPath)
  /// The least value; missing if there is none.
  case min(FieldPath)
  /// The greatest value; missing if there is none.
  case max(FieldPath)

  package var path: FieldPath? {
    switch self {
    case .count: nil
    case .sum(let path), .average(let path), .min(let path), .max(let path): path
    }
  }
}

/// An aggregate of one group while documents are added.
struct AggregateState: Sendable {
  private enum Kind: Sendable {
    case count(Int)
    case sum(NumberSummary)
    case average(NumberSummary)
    /// - Parameter byteCount: The size of the value as JSON.
    case extreme(JSONValue?, byteCount: Int, isMax: Bool)
  }

  private var kind: Kind

  init(_ aggregate: Aggregate) {
    switch aggregate {
    case .count: kind = .count(0)
    case .sum: kind = .sum(NumberSummary())
    case .average: kind = .average(NumberSummary())
    case .min: kind = .extreme(nil, byteCount: 0, isMax: false)
    case .max: kind = .extreme(nil, byteCount: 0, isMax: true)
    }
  }

  /// Adds a document.
  /// - Parameters:
  ///   - path: The number of the aggregate's path; nil for the count.
  ///   - documentCount: The number of documents that it stands for. Sums and averages need each document.
  ///   - budget: Once it is exhausted, the state means nothing.
  /// - Returns: By how many bytes the memory of what is kept has grown, approximately.
  mutating func add(
    _ values: borrowing FieldValues, _ path: Int?, documentCount: Int, _ budget: inout WorkBudget
  ) -> Int {
    switch kind {
    case .count(let count): kind = .count(count + documentCount)
    case .sum(let summary): kind = .sum(Self.adding(path, values, to: summary, &budget))
    case .average(let summary): kind = .average(Self.adding(path, values, to: summary, &budget))
    case .extreme(let extreme, let byteCount, let isMax):
      let (newExtreme, newByteCount) = Self.extreme(extreme, byteCount, path, values, isMax, &budget)
      kind = .extreme(newExtreme, byteCount: newByteCount, isMax: isMax)
      return newByteCount - byteCount
    }
    return 0
  }

  /// Adds the documents of another state of the same aggregate.
  /// - Parameter budget: Once it is exhausted, the state means nothing.
  /// - Returns: By how many bytes the memory of what is kept has grown, approximately.
  mutating func add(_ other: AggregateState, _ budget: inout WorkBudget) -> Int {
    switch (kind, other.kind) {
    case (.count(let count), .count(let otherCount)): kind = .count(count + otherCount)
    case (.sum(var summary), .sum(let otherSummary)):
      summary.add(otherSummary)
      kind = .sum(summary)
    case (.average(var summary), .average(let otherSummary)):
      summary.add(otherSummary)
      kind = .average(summary)
    case (.extreme(let extreme, let byteCount, let isMax), .extreme(let other?, let otherByteCount, _)):
      budget.spend(min(byteCount, otherByteCount))
      guard extreme.map({ isMax ? other > $0 : other < $0 }) ?? true else { return 0 }
      kind = .extreme(other, byteCount: otherByteCount, isMax: isMax)
      return otherByteCount - byteCount
    case (.extreme, .extreme(nil, _, _)): break
    default: preconditionFailure("the states are of different aggregates")
    }
    return 0
  }

  private static func adding(
    _ path: Int?, _ values: borrowing FieldValues, to summary: NumberSummary, _ budget: inout WorkBudget
  ) -> NumberSummary {
    guard let path else { return summary }
    var summary = summary
    values.forEachElement(of: path, &budget) { element, _ in
      if element.type == .number { summary.add(element.number) }
    }
    return summary
  }

  private static func extreme(
    _ extreme: JSONValue?, _ byteCount: Int, _ path: Int?, _ values: borrowing FieldValues, _ isMax: Bool,
    _ budget: inout WorkBudget
  ) -> (JSONValue?, byteCount: Int) {
    guard let path else { return (extreme, byteCount) }
    var (extreme, byteCount) = (extreme, byteCount)
    values.forEachElement(of: path, &budget) { element, budget in
      // A tree takes some nanoseconds for each byte.
      guard element.type != .null, budget.spend(element.text.end / 2) else { return }
      let value = element.tree
      if extreme.map({ isMax ? value > $0 : value < $0 }) ?? true {
        (extreme, byteCount) = unsafe (value, element.bytes.count)
      }
    }
    return (extreme, byteCount)
  }

  var result: JSONValue? {
    switch kind {
    case .count(let count): .integer(Int64(count))
    case .sum(let summary): JSONValue(result: summary.sum)
    case .average(let summary): summary.average.flatMap(JSONValue.init(result:))
    case .extreme(let extreme, _, _): extreme
    }
  }
}
