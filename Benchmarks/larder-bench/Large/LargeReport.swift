/// Gets at a constant rate, and what goes on beside them.
enum PacedWork: Sendable {
  case alone
  case besideLargeGets
  case stall(store: String, isStalled: Bool)

  var name: String {
    switch self {
    case .alone: "get 1 KiB, alone"
    case .besideLargeGets: "get 1 KiB beside large gets"
    case .stall(let store, false): "get 1 KiB of a \(store) store, alone"
    case .stall(let store, true): "get 1 KiB of a \(store) store while another store's disk stalls"
    }
  }
}

// MARK: Rows

extension LargeBench {
  /// The most that may be resident while replies wait to be read, as in the system tests.
  private static let peakGoal = Goal.atMost(figure: 400)

  /// Returns the most that may stay resident after a burst, as in the system tests.
  /// - Parameter bytes: The size of the entries that are still there.
  private static func restGoal(keeping bytes: Int = 0) -> Goal {
    .atMost(figure: 32 + 1.25 * Double(bytes) / Double(1 << 20))
  }

  var rows: [GoalRow] {
    let loads = plan.loads.flatMap { load in ["get", "put"].map { load.name($0) } }
    var rows =
      loads.map { bestPeerRow($0, .cpu, .atMost(0.9)) } + loads.map { bestPeerRow($0, .throughput, nil) }
    let contenderNames = distinct(report.contenders.map(\.name))
    rows += contenderNames.map { contender in
      // Without enough large gets, there is nothing to judge.
      let hasLargeGets =
        report.figures.find(PacedWork.besideLargeGets.name, Self.largeGets, of: contender).map {
          $0.lowest >= 0.75 * Double(LargePlan.neighborRate)
        } == true
      let goal: Goal? = contender == Contender.larder && hasLargeGets ? .atMost(3) : nil
      return row(.besideLargeGets, .p999, against: .alone, goal, of: contender)
    }
    let bursts = plan.bursts
    rows += [
      bestPeerRow(MemoryBursts.overwriting(bursts), MemoryBursts.afterRest, Self.restGoal()),
      bestPeerRow(MemoryBursts.halfFrames(bursts), MemoryBursts.peak, nil),
      bestPeerRow(MemoryBursts.halfFrames(bursts), MemoryBursts.afterRest, Self.restGoal()),
      bestPeerRow(MemoryBursts.unreadReplies(bursts), MemoryBursts.peak, Self.peakGoal),
      bestPeerRow(
        MemoryBursts.unreadReplies(bursts), MemoryBursts.afterRest,
        Self.restGoal(keeping: bursts.unread.keys * bursts.unread.valueSize)),
    ]
    rows += StallingServer.healthyStores.map { store in
      row(.stall(store: store, isStalled: true), .p99, against: .stall(store: store, isStalled: false), .atMost(2))
    }
    return rows.compactMap(\.self)
  }

  private func bestPeerRow(_ work: String, _ quantity: Quantity, _ goal: Goal?) -> GoalRow? {
    report.figures.find(work, quantity).map {
      GoalRow($0, against: report.figures.bestPeer(work, quantity, among: report.contenders.map(\.name)), goal)
    }
  }

  private func row(
    _ work: PacedWork, _ quantity: Quantity, against other: PacedWork, _ goal: Goal?,
    of contender: String = Contender.larder
  ) -> GoalRow? {
    report.figures.find(work.name, quantity, of: contender).map {
      GoalRow($0, against: report.figures.find(other.name, quantity, of: contender), named: "alone", goal)
    }
  }

  // MARK: Markdown

  var sections: [String] {
    let remarks = (plan.parts.map(remark) + notes).map { "- \($0)" }.joined(separator: "\n")
    return ["\(setting)\(report.disturbance)", rows.table, remarks, "## All figures\n\n" + figureTable]
  }

  private var setting: String {
    """
    TCP on loopback, one serving thread per server, everything in memory, one generator\
    \(runner.isPinned ? " with its own processor" : ""). In each of \(plan.repeats) rounds, every contender had a turn \
    at each work. Cells show the median of the rounds (lowest–highest).
    """
  }

  private func remark(on part: LargePart) -> String {
    switch part {
    case .large:
      let keys = plan.loads.map { "\(grouped(Double($0.keys))) keys of \(byteText($0.valueSize))" }
      return """
        Large values: turns of \(decimal(plan.turn.seconds, 2)) s in a closed loop over \(keys.joined(separator: ", and ")). \
        The generator's load is that of its only thread, in cores: near 1, it determines the rate, but not the \
        server's CPU time.
        """
    case .isolation:
      return """
        Isolation: \(grouped(Double(LargePlan.smallRate))) gets of 1 KiB per second over one connection, for \
        \(decimal(plan.pacedTurn.seconds, 2)) s, while another connection gets one of \(LargePlan.neighborKeys) values \
        of \(byteText(plan.neighborSize)) \(LargePlan.neighborRate) times per second. Latency counts from the scheduled \
        time if a get could not be sent in time. The thread that gets large values runs only when the measuring one \
        does not need the generator's processor.
        """
    case .memory:
      return """
        Memory: beyond that of the server after its start, and \(Int(plan.rest.seconds)) s after the burst unless the row \
        says otherwise. Each burst has its own server. The half frames are those bytes of puts that the server accepts. All entries were put again after each request for the replies that \
        the client does not read, and its connection is closed at the end.
        """
    case .stall:
      return """
        Stall: one worker serves a memory store, a log, and another log on a file system of its own, to which clients \
        put all the time. It is frozen with `fsfreeze` for \(decimal(plan.pacedTurn.seconds, 2)) s while \
        \(grouped(Double(LargePlan.smallRate))) gets of 1 KiB per second are measured on each of the others.
        """
    }
  }

  private var figureTable: String {
    let figures = report.figures.all
    let names = distinct(figures.map(\.contender))
    var lines = [["Work"] + names]
    for title in distinct(figures.map { "\($0.work): \($0.quantity.title)" }) {
      lines.append(
        [title]
          + names.map { name in
            figures.first { "\($0.work): \($0.quantity.title)" == title && $0.contender == name }?.cell() ?? "–"
          })
    }
    return MarkdownTable(lines).text
  }
}
