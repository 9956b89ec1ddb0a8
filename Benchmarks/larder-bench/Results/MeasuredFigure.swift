/// A figure of a result, by which two results are compared.
struct MeasuredFigure: Codable, Equatable, Sendable {
  /// The work, such as `get, pipeline 16`.
  var work: String
  /// What was measured of it, such as `server CPU a request`.
  var figure: String
  var contender: String
  var unit: String
  var isBetterLower: Bool
  var median: Double
  var lowest: Double
  var highest: Double

  var name: String { "\(contender): \(work): \(figure)" }

  /// - Precondition: there is a value.
  init(_ work: String, _ figure: String, of contender: String, unit: String, isBetterLower: Bool, _ values: [Double]) {
    let sorted = values.sorted()
    precondition(!sorted.isEmpty)
    self.work = work
    self.figure = figure
    self.contender = contender
    self.unit = unit
    self.isBetterLower = isBetterLower
    let middle = sorted.count / 2
    median = rounded(sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2)
    lowest = rounded(sorted[0])
    highest = rounded(sorted[sorted.count - 1])
  }
}

/// A number with four significant digits: no measurement here is more exact.
func rounded(_ value: Double) -> Double {
  guard value != 0, value.isFinite else { return 0 }
  var scale = 1.0
  while abs(value) * scale < 1_000 { scale *= 10 }
  return (value * scale).rounded() / scale
}
