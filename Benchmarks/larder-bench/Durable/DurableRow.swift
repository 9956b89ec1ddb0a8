extension GoalRow {
  /// Returns the rows whose figures were measured.
  static func all(of report: DurableReport) -> [GoalRow] {
    typealias R = DurableReport
    let (larder, redis) = (Contender.larder, Contender.redis)
    func row(
      _ work: DurableWork, _ figure: String, of contender: String = larder, against anchor: String? = nil,
      at anchorWork: DurableWork? = nil, _ goal: Goal? = nil
    ) -> GoalRow? {
      guard let measured = report.figure(work, figure, contender) else { return nil }
      let title = work.name + (contender == larder ? "" : " (\(contender))") + ": " + measured.title
      return GoalRow(
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
