/// One of Larder's figures and the anchor that it is compared with.
struct DurableRow: Codable, Sendable {
  let title: String
  let anchor: MeasuredFigure?
  let larder: MeasuredFigure
  let goal: DurableGoal?
  /// Larder ÷ anchor.
  let ratio: Double?
  /// Whether the goal is reached; nil without a goal or its anchor.
  let isReached: Bool?

  init(_ title: String, _ larder: MeasuredFigure, against anchor: MeasuredFigure?, _ goal: DurableGoal?) {
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

/// A goal for a figure.
struct DurableGoal: Codable, Sendable {
  private let limit: Double
  /// Whether the limit applies to Larder ÷ anchor rather than to Larder's figure.
  private let isOfRatio: Bool
  /// Whether the limit is a minimum rather than a maximum.
  private let isLeast: Bool

  static func atLeast(_ ratio: Double) -> DurableGoal { DurableGoal(limit: ratio, isOfRatio: true, isLeast: true) }
  static func atMost(_ ratio: Double) -> DurableGoal { DurableGoal(limit: ratio, isOfRatio: true, isLeast: false) }
  static func atMost(figure: Double) -> DurableGoal { DurableGoal(limit: figure, isOfRatio: false, isLeast: false) }

  /// Returns nil if the goal is for a ratio and there is none.
  func isReached(by figure: MeasuredFigure, ratio: Double?) -> Bool? {
    (isOfRatio ? ratio : figure.median).map { isLeast ? $0 >= limit : $0 <= limit }
  }

  var text: String { (isLeast ? "≥ " : "≤ ") + decimal(limit, 2) + (isOfRatio ? " ×" : "") }
}

extension DurableRow {
  /// Returns the rows whose figures were measured.
  static func all(of report: DurableReport) -> [DurableRow] {
    typealias R = DurableReport
    let (larder, redis) = (Contender.larder, Contender.redis)
    func row(
      _ work: DurableWork, _ figure: String, of contender: String = larder, against anchor: String? = nil,
      at anchorWork: DurableWork? = nil, _ goal: DurableGoal? = nil
    ) -> DurableRow? {
      guard let measured = report.figure(work, figure, contender) else { return nil }
      let title = work.name + (contender == larder ? "" : " (\(contender))") + ": " + measured.title
      return DurableRow(
        title, measured, against: anchor.flatMap { report.figure(anchorWork ?? work, figure, $0) }, goal)
    }
    let clients = DurablePlan.clientCounts.map { count in
      row(.clients(count), R.throughput, against: Contender.syncedEcho, .atLeast(0.9))
    }
    let others = [
      row(.always, R.throughput, against: redis, .atLeast(1.5)),
      row(.always, R.cpu, against: redis, .atMost(0.6)),
      row(.clients(1), R.throughput, against: R.barePreallocated),
      row(.clients(1), R.throughput, against: R.bareAppending),
      row(.clients(1), R.throughput, against: redis),
      row(.interval, R.throughput, against: redis, .atLeast(2)),
      row(.interval, R.cpu, against: redis),
      row(.get, R.cpu, against: Contender.memoryStore, .atMost(1.1)),
      row(.getPipelined, R.cpu, against: Contender.memoryStore, .atMost(1.1)),
      row(.compacting, R.p99, against: larder, at: .quiet, report.hasComparedCompaction ? .atMost(1.5) : nil),
      row(.restart, R.firstGet, against: redis, .atMost(figure: 0.35)),
      row(.restartKilled, R.firstGet, against: redis, .atMost(figure: 0.35)),
      row(.garbage, R.writtenBytes, .atMost(figure: 2.5)),
      row(.garbage, R.writtenBytesObserved),
      row(.clients(1), R.throughput, of: Contender.directoryStore),
      row(.always, R.throughput, of: Contender.directoryStore),
    ]
    return (clients + others).compactMap(\.self)
  }
}

extension MeasuredFigure {
  fileprivate var title: String {
    switch unit {
    case "requests/s": "requests per second"
    case "bytes": figure
    default: "\(figure), \(unit)"
    }
  }
}
