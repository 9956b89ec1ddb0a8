/// One of Larder's figures and the anchor that it is compared with.
struct GoalRow: Codable, Sendable {
  let title: String
  let anchor: MeasuredFigure?
  let larder: MeasuredFigure
  let goal: Goal?
  /// Larder ÷ anchor.
  let ratio: Double?
  /// Whether the goal is reached; nil without a goal or its anchor.
  let isReached: Bool?

  init(_ title: String, _ larder: MeasuredFigure, against anchor: MeasuredFigure?, _ goal: Goal?) {
    self.title = title
    self.anchor = anchor
    self.larder = larder
    self.goal = goal
    let ratio = anchor.flatMap { $0.median == 0 ? nil : rounded(larder.median / $0.median) }
    self.ratio = ratio
    isReached = goal.flatMap { goal in
      goal.isReached(by: larder, ratio: ratio)
    }
  }
}

extension [GoalRow] {
  /// The rows as a Markdown table.
  /// - Parameter name: Returns the name of an anchor.
  func table(name: (_ anchor: MeasuredFigure, _ larder: MeasuredFigure) -> String) -> String {
    var lines = [["Work", "Anchor", "Larder", "Larder ÷ anchor", "Goal", "Reached"]]
    for row in self {
      lines.append([
        row.title, row.anchor.map { "\(name($0, row.larder)): \($0.cell)" } ?? "–", row.larder.cell,
        row.ratio.map { decimal($0, 3) } ?? "–", row.goal?.text ?? "–",
        row.isReached.map { $0 ? "yes" : "**no**" } ?? "–",
      ])
    }
    return MarkdownTable(lines).text
  }
}

/// A goal for a figure.
struct Goal: Codable, Sendable {
  private let limit: Double
  /// Whether the limit applies to Larder ÷ anchor rather than to Larder's figure.
  private let isOfRatio: Bool
  /// Whether the limit is a minimum rather than a maximum.
  private let isLeast: Bool

  static func atLeast(_ ratio: Double) -> Goal { Goal(limit: ratio, isOfRatio: true, isLeast: true) }
  static func atMost(_ ratio: Double) -> Goal { Goal(limit: ratio, isOfRatio: true, isLeast: false) }
  static func atMost(figure: Double) -> Goal { Goal(limit: figure, isOfRatio: false, isLeast: false) }

  /// Returns nil if the goal is for a ratio and there is none.
  func isReached(by figure: MeasuredFigure, ratio: Double?) -> Bool? {
    (isOfRatio ? ratio : figure.median).map { isLeast ? $0 >= limit : $0 <= limit }
  }

  var text: String { (isLeast ? "≥ " : "≤ ") + decimal(limit, 2) + (isOfRatio ? " ×" : "") }
}

extension MeasuredFigure {
  /// The title of the figure in a row, with its unit.
  var title: String {
    switch unit {
    case "requests/s": "requests per second"
    case "bytes": figure
    default: "\(figure), \(unit)"
    }
  }
}
