/// Count, sum, extremes and average of numbers that are added one by one.
///
/// Integers are summed exactly until the first number that isn't one.
struct NumberSummary: Sendable {
  private(set) var count = 0
  private(set) var min: JSONNumber?
  private(set) var max: JSONNumber?
  private var whole: Int128 = 0
  private var rounded: Double?

  mutating func add(_ number: JSONNumber) {
    count += 1
    if min.map({ number < $0 }) ?? true { min = number }
    if max.map({ number > $0 }) ?? true { max = number }
    switch (number, rounded) {
    case (.integer(let value), nil): whole += Int128(value)
    case (_, let partial): rounded = (partial ?? Double(whole)) + number.double
    }
  }

  /// The integer that is the sum, or the nearest double if the sum isn't a 64-bit integer.
  var sum: JSONNumber { rounded.map(JSONNumber.double) ?? JSONNumber(whole) }

  /// nil if there are no numbers.
  var average: JSONNumber? { count == 0 ? nil : .double(sum.double / Double(count)) }
}
