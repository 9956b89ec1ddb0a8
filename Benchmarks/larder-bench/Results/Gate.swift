/// Compares two results figure by figure.
struct Gate {
  struct Line: Equatable {
    var name: String
    var unit: String
    var old: Double
    /// Nil when the new result does not have the figure.
    var new: Double?
    /// How much worse the new one is, as a part of the old; negative when it is better.
    var worse: Double
    var isPast: Bool
  }

  /// What a result file has, whichever command made it.
  struct Result: Decodable {
    var figures: [MeasuredFigure]
  }

  let lines: [Line]
  var hasFailed: Bool { lines.contains(where: \.isPast) }

  /// - Parameters:
  ///   - threshold: how much worse a figure may be, as a part of the old one.
  ///   - ofAll: whether the figures of peers count, too; they tell more of the machine than of Larder.
  init(old: Result, new: Result, threshold: Double, ofAll: Bool) {
    let hasLarder = old.figures.contains { $0.contender == Contender.larder }
    let counted = old.figures.filter { ofAll || !hasLarder || $0.contender == Contender.larder }
    lines = counted.map { old in
      let new = new.figures.first { $0.name == old.name }?.median
      guard let new else {
        return Line(name: old.name, unit: old.unit, old: old.median, new: nil, worse: 0, isPast: true)
      }
      let scale = max(abs(old.median), 1e-9)
      let worse = (old.isBetterLower ? new - old.median : old.median - new) / scale
      return Line(
        name: old.name, unit: old.unit, old: old.median, new: new, worse: worse, isPast: worse > threshold)
    }
  }

  var text: String {
    lines.map { line in
      let mark = line.isPast ? "FAIL" : "ok  "
      guard let new = line.new else { return "\(mark)  \(line.name): is missing from the new result" }
      let change = "\(line.worse > 0 ? "worse" : "better") by \(decimal(abs(line.worse) * 100, 1))%"
      return "\(mark)  \(line.name): \(grouped(line.old)) → \(grouped(new)) \(line.unit), \(change)"
    }.joined(separator: "\n")
  }
}
