/// A work of the durable benchmark.
enum DurableWork: Hashable, Sendable {
  case always
  /// That many clients that wait for each reply.
  case clients(Int)
  case interval
  case get
  case getPipelined
  case quiet
  case compacting
  case garbage
  case restart
  case restartKilled

  /// The name in figures.
  var name: String {
    switch self {
    case .always: "durable set, 50 × 16"
    case .clients(1): "durable set, one client"
    case .clients(let count): "durable set, \(count) clients"
    case .interval: "set with interval:1s, 50 × 16"
    case .get: "get, 50 connections"
    case .getPipelined: "get, 50 × 16"
    case .quiet: "durable set at a constant rate"
    case .compacting: "durable set at a constant rate, while compacting"
    case .garbage: "overwriting random keys"
    case .restart: "restart after a clean end"
    case .restartKilled: "restart after SIGKILL"
    }
  }
}

extension DurableBench {
  /// The rows whose figures were measured.
  var rows: [GoalRow] {
    let redis = Contender.redis
    func row(
      _ work: DurableWork, _ quantity: Quantity, of contender: String = Contender.larder, against anchor: String? = nil,
      _ goal: Goal? = nil
    ) -> GoalRow? {
      report.figures.find(work.name, quantity, of: contender).map { measured in
        GoalRow(measured, against: anchor.flatMap { report.figures.find(work.name, quantity, of: $0) }, goal)
      }
    }
    let clients = DurablePlan.clientCounts.map { count in
      row(.clients(count), .throughput, against: Contender.syncedEcho, .atLeast(0.9))
    }
    let compacting = report.figures.find(DurableWork.compacting.name, .p99).map { measured in
      GoalRow(
        measured, against: report.figures.find(DurableWork.quiet.name, .p99), named: "not compacting",
        hasComparedCompaction ? .atMost(1.5) : nil)
    }
    let others = [
      row(.always, .throughput, against: redis, .atLeast(1.5)),
      row(.always, .cpu, against: redis, .atMost(0.6)),
      row(.clients(1), .throughput, against: Self.barePreallocated),
      row(.clients(1), .throughput, against: Self.bareAppending),
      row(.clients(1), .throughput, against: redis),
      row(.interval, .throughput, against: redis, .atLeast(2)),
      row(.interval, .cpu, against: redis),
      row(.get, .cpu, against: Contender.memoryStore, .atMost(1.1)),
      row(.getPipelined, .cpu, against: Contender.memoryStore, .atMost(1.1)),
      compacting,
      row(.restart, .firstGet, against: redis, .atMost(figure: 0.35)),
      row(.restartKilled, .firstGet, against: redis, .atMost(figure: 0.35)),
      row(.garbage, Self.writtenBytes, .atMost(figure: 2.5)),
      row(.garbage, Self.writtenBytesObserved),
      row(.clients(1), .throughput, of: Contender.directoryStore),
      row(.always, .throughput, of: Contender.directoryStore),
    ]
    return (clients + others).compactMap(\.self)
  }

  /// Whether compaction ran in all turns that should include it, and in no others.
  private var hasComparedCompaction: Bool {
    guard let without = figure(.quiet, Self.compactions), let with = figure(.compacting, Self.compactions) else {
      return false
    }
    return without.highest == 0 && with.lowest > 0
  }

  private func figure(_ work: DurableWork, _ quantity: Quantity) -> MeasuredFigure? {
    report.figures.find(work.name, quantity)
  }

  // MARK: Markdown

  var sections: [String] { ["\(setting)\(report.disturbance)", rows.table, remarks] }

  private var setting: String {
    """
    50 × 16 means \(plan.connections) connections over Unix sockets with \(DurablePlan.pipeline) requests in flight on \
    each. There are \(grouped(Double(plan.keys))) keys of \(BenchKey.size) bytes with values of \(plan.valueSize) bytes, \
    and one generator thread\(runner.isPinned ? " with its own processor" : ""). In each of \(plan.repeats) rounds, every \
    contender had a turn of \(decimal(plan.turn.seconds, 2)) s. Cells show the median of the rounds (lowest–highest).
    """
  }

  private var remarks: String {
    var lines = [
      "- Redis syncs its append-only file as its command line says, and rewrites it only before the restarts, because it "
        + "reads a rewritten file faster. Larder compacts during all works.",
      "- *\(Contender.syncedEcho)* is `bench-echo --sync`, one thread in C: it reads all clients that have sent something, "
        + "appends that to a preallocated file, calls fdatasync, and sends it back.",
      "- *write and fdatasync* is one thread that writes as many bytes as the log's record of a set, either appending to "
        + "a growing file or into preallocated space, as the log does.",
    ]
    if let text = compactionRemark { lines.append(text) }
    if let garbage = figure(.garbage, Self.garbage) {
      lines.append(
        "- Bytes written: the bytes that the log wrote, including compaction, divided by the bytes of keys and values put; "
          + "at full speed, while garbage was \(garbage.cell()) of the log. The system counts whole pages, and each page every "
          + "time that it is written to the disk."
      )
    }
    if figure(.restart, .firstGet) != nil {
      lines.append(
        "- Restart: from the start of the process to the reply to a get, with \(grouped(Double(plan.keysOfRestart))) "
          + "keys, all processors, and the files in the page cache. One percent of the keys was written just before the stop."
      )
    }
    if report.figures.find(DurableWork.clients(1).name, .throughput, of: Contender.directoryStore) != nil {
      lines.append("- The directory store has \(grouped(Double(plan.keysOfDirectory))) keys.")
    }
    return lines.joined(separator: "\n")
  }

  private var compactionRemark: String? {
    guard let rate = figure(.quiet, .throughput), let without = figure(.quiet, Self.compactions),
      let with = figure(.compacting, Self.compactions), let bytes = figure(.compacting, Self.compactedBytes)
    else { return nil }
    let outcome = hasComparedCompaction ? "" : " **So there is nothing to compare; try longer turns.**"
    return
      "- Compaction: \(grouped(rate.median)) sets per second of random keys among "
      + "\(grouped(Double(plan.keysOfCompaction))), whose old values of \(grouped(Double(plan.valueSizeOfCompaction))) "
      + "bytes make much garbage. Latencies count from the scheduled times. Turns without compaction had at most \(Int(without.highest)) "
      + "compactions; turns with it had at least \(Int(with.lowest)), which rewrote "
      + "\(decimal(bytes.median / 1e6, 1)) MB per second.\(outcome)"
  }
}
