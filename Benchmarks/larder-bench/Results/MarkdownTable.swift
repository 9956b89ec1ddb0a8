/// A table for people: names on the left, figures on the right.
struct MarkdownTable {
  /// The first row is the heading.
  let rows: [[String]]

  init(_ rows: [[String]]) { self.rows = rows }

  var text: String {
    let lines = rows.map { "| " + $0.joined(separator: " | ") + " |" }
    let rule = "|" + rows[0].indices.map { $0 == 0 ? "---|" : "---:|" }.joined()
    return ([lines[0], rule] + lines.dropFirst()).joined(separator: "\n")
  }
}

extension MeasuredFigure {
  /// The median, with the lowest and the highest value where they differ.
  var cell: String {
    guard lowest < highest else { return grouped(median) }
    return "\(grouped(median)) (\(grouped(lowest))–\(grouped(highest)))"
  }
}
