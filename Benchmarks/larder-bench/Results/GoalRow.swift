/// One of Larder's figures and the anchor that it is compared with.
struct GoalRow: Sendable {
  let anchor: MeasuredFigure?
  private let anchorName: String?
  let larder: MeasuredFigure
  private let basis: MeasuredFigure.Basis
  let goal: Goal?
  /// Larder ÷ anchor.
  let ratio: Double?
  /// Whether the goal is reached; nil without a goal or its anchor.
  let isReached: Bool?

  /// - Parameters:
  ///   - anchorName: The anchor's name in tables; nil for its contender's.
  ///   - ratio: Larder ÷ anchor, if it is not that of the two figures.
  init(
    _ larder: MeasuredFigure, against anchor: MeasuredFigure?, named anchorName: String? = nil, _ goal: Goal?,
    by basis: MeasuredFigure.Basis = .median, ratio: Double? = nil
  ) {
    self.anchor = anchor
    self.anchorName = anchorName ?? anchor?.contender
    self.larder = larder
    self.basis = basis
    self.goal = goal
    let value = larder.value(basis)
    let quotient = anchor.map { $0.value(basis) }.flatMap { $0 == 0 ? nil : rounded(value / $0) }
    self.ratio = ratio ?? quotient
    isReached = goal?.isReached(by: value, ratio: self.ratio)
  }

  var title: String {
    larder.work + (larder.contender == Contender.larder ? "" : " (\(larder.contender))") + ": " + larder.quantity.title
  }

  // MARK: The cells of tables

  var anchorCell: String { anchor.map { "\(anchorName ?? $0.contender): \($0.cell(basis))" } ?? "–" }
  var larderCell: String { larder.cell(basis) }
  /// Larder ÷ anchor, the goal, and whether it is reached.
  var verdictCells: [String] {
    [
      ratio.map { decimal($0, 3) } ?? "–", goal?.text(larder.quantity.unit) ?? "–",
      isReached.map { $0 ? "yes" : "**no**" } ?? "–",
    ]
  }
  static let verdictColumns = ["Larder ÷ anchor", "Goal", "Reached"]

  /// The row in JSON, without the figures.
  struct Verdict: Codable, Sendable {
    let title: String
    let anchor: String?
    let ratio: Double?
    let goal: String?
    let isReached: Bool?
  }

  var verdict: Verdict {
    Verdict(
      title: title, anchor: anchorName, ratio: ratio, goal: goal?.text(larder.quantity.unit), isReached: isReached)
  }
}

extension [GoalRow] {
  /// The rows as a Markdown table.
  var table: String {
    let rows = map { [$0.title, $0.anchorCell, $0.larderCell] + $0.verdictCells }
    return MarkdownTable([["Work", "Anchor", "Larder"] + GoalRow.verdictColumns] + rows).text
  }
}

/// A goal for a figure.
struct Goal: Sendable {
  private let limit: Double
  /// Whether the limit applies to Larder ÷ anchor rather than to Larder's figure.
  private let isOfRatio: Bool
  /// Whether the limit is a minimum rather than a maximum.
  private let isLeast: Bool

  static func atLeast(_ ratio: Double) -> Goal { Goal(limit: ratio, isOfRatio: true, isLeast: true) }
  static func atMost(_ ratio: Double) -> Goal { Goal(limit: ratio, isOfRatio: true, isLeast: false) }
  static func atLeast(figure: Double) -> Goal { Goal(limit: figure, isOfRatio: false, isLeast: true) }
  static func atMost(figure: Double) -> Goal { Goal(limit: figure, isOfRatio: false, isLeast: false) }

  /// Returns nil if the goal is for a ratio and there is none.
  func isReached(by value: Double, ratio: Double?) -> Bool? {
    (isOfRatio ? ratio : value).map { isLeast ? $0 >= limit : $0 <= limit }
  }

  /// - Parameter unit: The unit of the figure.
  func text(_ unit: String) -> String {
    let number = isOfRatio ? "\(decimal(limit, 2)) ×" : grouped(limit) + (unit.isEmpty ? "" : " \(unit)")
    return (isLeast ? "≥ " : "≤ ") + number
  }
}
