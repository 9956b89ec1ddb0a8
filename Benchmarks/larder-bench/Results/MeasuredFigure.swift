/// A measured figure, by which two results are compared.
struct MeasuredFigure: Codable, Equatable, Sendable {
  /// The work, such as `get, pipeline 16`.
  var work: String
  /// The measured quantity, such as `server CPU a request`.
  var figure: String
  var contender: String
  var unit: String
  var isBetterLower: Bool
  var median: Double
  var lowest: Double
  var highest: Double

  var name: String { "\(contender): \(work): \(figure)" }

  /// - Precondition: `values` is not empty.
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

extension MeasuredFigure {
  /// The median, with the lowest and the highest value if they differ.
  var cell: String {
    guard lowest < highest else { return grouped(median) }
    return "\(grouped(median)) (\(grouped(lowest))–\(grouped(highest)))"
  }
}
