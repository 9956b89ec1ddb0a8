/// Count, sum, extremes and average of numbers that are added one by one.
///
/// Integers are summed exactly until the first number that isn't one. Infinities are kept apart from the sum of the
/// others, which may exceed the range of doubles on the way.
struct NumberSummary: Sendable {
  private(set) var count = 0
  private(set) var min: JSONNumber?
  private(set) var max: JSONNumber?
  private var whole: Int128 = 0
  private var rounded: Double?
  /// The sum of the infinities; 0 without any.
  private var infinite = 0.0

  mutating func add(_ number: JSONNumber) {
    count += 1
    updateExtremes(number, number)
    switch (number, rounded) {
    case (.integer(let value), nil): whole += Int128(value)
    case (.double(let value), _) where value.isInfinite: infinite += value
    case (_, let partial): rounded = (partial ?? Double(whole)) + number.double
    }
  }

  /// Adds the numbers of another summary.
  mutating func add(_ other: NumberSummary) {
    guard let otherMin = other.min, let otherMax = other.max else { return }
    count += other.count
    updateExtremes(otherMin, otherMax)
    infinite += other.infinite
    if rounded == nil, other.rounded == nil {
      whole += other.whole
    } else {
      let sum = finiteSum + other.finiteSum
      // Of sums beyond the range of doubles, on either side, the first one stays, as it does when numbers are added.
      rounded = sum.isNaN ? finiteSum : sum
    }
  }

  private mutating func updateExtremes(_ least: JSONNumber, _ greatest: JSONNumber) {
    if min.map({ least < $0 }) ?? true { min = least }
    if max.map({ greatest > $0 }) ?? true { max = greatest }
  }

  private var finiteSum: Double { rounded ?? Double(whole) }

  /// The integer that is the sum, or the nearest double if the sum isn't a 64-bit integer. Not-a-number if infinities of
  /// both signs are among the numbers.
  var sum: JSONNumber {
    if infinite != 0 { return .double(infinite) }
    return rounded.map(JSONNumber.double) ?? JSONNumber(whole)
  }

  /// nil if there are no numbers.
  var average: JSONNumber? { count == 0 ? nil : .double(sum.double / Double(count)) }
}
