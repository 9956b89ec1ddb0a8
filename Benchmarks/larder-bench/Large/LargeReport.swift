/// The result of `larder-bench compare` with large requests, as written to JSON.
struct LargeReport: Codable, Sendable {
  private var surroundings = Surroundings()
  private var settings: Settings
  private(set) var contenders: [ComparisonReport.Description] = []
  /// The total duration, in seconds.
  private var seconds = 0.0
  /// The load by other processes in each turn of a closed loop, in cores, sorted.
  private var othersLoads: [Double] = []
  private var figures: [MeasuredFigure] = []
  /// The figures that are compared or have goals.
  private(set) var rows: [GoalRow] = []
  /// The works that were not measured, with the reasons.
  private var notes: [String] = []

  private struct Settings: Codable, Sendable {
    let parts: [LargePart]
    let loads: [LargeLoad]
    let bursts: LargeBursts
    let neighborSize: Int
    private let repeats: Int
    private let isPinned: Bool
    private let secondsOfATurn: Double
    private let secondsOfAPacedTurn: Double
    private let secondsOfRest: Double
    private let seed: UInt64

    init(_ plan: LargePlan) {
      parts = plan.parts
      loads = plan.loads
      bursts = plan.bursts
      neighborSize = plan.neighborSize
      repeats = plan.repeats
      isPinned = plan.processors != nil
      secondsOfATurn = plan.turn.seconds
      secondsOfAPacedTurn = plan.pacedTurn.seconds
      secondsOfRest = plan.rest.seconds
      seed = plan.seed
    }

    var text: String {
      """
      TCP on loopback, one serving thread per server, everything in memory, one generator\
      \(isPinned ? " with its own processor" : ""). In each of \(repeats) rounds, every contender had a turn at each \
      work. Cells show the median of the rounds (lowest–highest).
      """
    }

    func remark(on part: LargePart) -> String {
      switch part {
      case .large:
        let keys = loads.map { "\(grouped(Double($0.keys))) keys of \(byteText($0.valueSize))" }
        return """
          Large values: turns of \(decimal(secondsOfATurn, 2)) s in a closed loop over \(keys.joined(separator: ", and ")). \
          The generator's load is that of its only thread, in cores: near 1, it determines the rate, but not the \
          server's CPU time.
          """
      case .isolation:
        return """
          Isolation: \(grouped(Double(LargePlan.smallRate))) gets of 1 KiB per second over one connection, for \
          \(decimal(secondsOfAPacedTurn, 2)) s, while another connection gets one of \(LargePlan.neighborKeys) values \
          of \(byteText(neighborSize)) \(LargePlan.neighborRate) times per second. Latency counts from the scheduled \
          time if a get could not be sent in time. The thread that gets large values runs only when the measuring one \
          does not need the generator's processor.
          """
      case .memory:
        return """
          Memory: beyond that of the server after its start, and \(Int(secondsOfRest)) s after the burst unless the row \
          says otherwise. Each burst has its own server. The half frames are those bytes of puts that the server accepts. All entries were put again after each request for the replies that \
          the client does not read, and its connection is closed at the end.
          """
      case .stall:
        return """
          Stall: one worker serves a memory store, a log, and another log on a file system of its own, to which clients \
          put all the time. It is frozen with `fsfreeze` for \(decimal(secondsOfAPacedTurn, 2)) s while \
          \(grouped(Double(LargePlan.smallRate))) gets of 1 KiB per second are measured on each of the others.
          """
      }
    }
  }

  static let cpu = ComparisonReport.cpu
  static let throughput = ComparisonReport.throughput
  static let generatorLoad = "load of the generator"
  static let largeGets = "large gets"
  static let (p50, p99, p999) = (ComparisonReport.p50, ComparisonReport.p99, ComparisonReport.p999)

  init(_ plan: LargePlan) { settings = Settings(plan) }

  mutating func addContender(_ contender: Contender) { contenders.append(ComparisonReport.Description(contender)) }

  mutating func addNote(_ note: String) { notes.append(note) }

  mutating func add(_ figure: MeasuredFigure) { figures.append(figure) }

  /// Adds the outcomes of a closed loop.
  mutating func add(_ work: String, _ contender: String, _ outcomes: [LoadOutcome]) {
    othersLoads += outcomes.compactMap { $0.server.map { rounded($0.othersLoad) } }
    let cpu = outcomes.compactMap { $0.server?.cpuMicroseconds(perRequestOf: $0.tally.answered) }
    add(work, Self.cpu, contender, "µs", cpu)
    add(work, Self.throughput, contender, "requests/s", lower: false, outcomes.map(\.rate))
    add(work, Self.p99, contender, "µs", outcomes.map { $0.tally.microseconds(99) })
    add(work, Self.generatorLoad, contender, "cores", outcomes.map(\.generatorLoad))
  }

  /// Adds the latencies of gets at a constant rate.
  mutating func add(_ work: PacedWork, _ contender: String, _ tallies: [Tally], largeGetsPerSecond: [Double] = []) {
    for (name, percentile) in [(Self.p50, 50), (Self.p99, 99), (Self.p999, 99.9)] {
      add(work.name, name, contender, "µs", tallies.map { $0.microseconds(percentile) })
    }
    add(work.name, Self.largeGets, contender, "per second", lower: false, largeGetsPerSecond)
  }

  private mutating func add(
    _ work: String, _ figure: String, _ contender: String, _ unit: String, lower: Bool = true, _ values: [Double]
  ) {
    guard !values.isEmpty else { return }
    figures.append(MeasuredFigure(work, figure, of: contender, unit: unit, isBetterLower: lower, values))
  }

  mutating func finish(seconds: Double) {
    self.seconds = rounded(seconds)
    othersLoads.sort()
    rows = makeRows()
  }

  func figure(_ work: String, _ figure: String, _ contender: String = Contender.larder) -> MeasuredFigure? {
    figures.first { $0.work == work && $0.figure == figure && $0.contender == contender }
  }
}

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

extension LargeReport {
  /// The most that may be resident while replies wait to be read, as in the system tests.
  private static let peakGoal = Goal.atMost(figure: 400)

  /// Returns the most that may stay resident after a burst, as in the system tests.
  /// - Parameter bytes: The size of the entries that are still there.
  private static func restGoal(keeping bytes: Int = 0) -> Goal {
    .atMost(figure: 32 + 1.25 * Double(bytes) / Double(1 << 20))
  }

  private func makeRows() -> [GoalRow] {
    let loads = settings.loads.flatMap { load in ["get", "put"].map { load.name($0) } }
    var rows =
      loads.map { bestPeerRow($0, Self.cpu, .atMost(0.9)) } + loads.map { bestPeerRow($0, Self.throughput, nil) }
    let contenderNames = [Contender.larder] + contenders.map(\.name).filter { $0 != Contender.larder }
    rows += contenderNames.map { contender in
      // Without enough large gets, there is nothing to judge.
      let hasLargeGets =
        figure(PacedWork.besideLargeGets.name, Self.largeGets, contender).map {
          $0.lowest >= 0.75 * Double(LargePlan.neighborRate)
        } == true
      let goal: Goal? = contender == Contender.larder && hasLargeGets ? .atMost(3) : nil
      return row(.besideLargeGets, Self.p999, against: .alone, goal, of: contender)
    }
    let bursts = settings.bursts
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
      row(.stall(store: store, isStalled: true), Self.p99, against: .stall(store: store, isStalled: false), .atMost(2))
    }
    return rows.compactMap(\.self)
  }

  private func bestPeerRow(_ work: String, _ name: String, _ goal: Goal?) -> GoalRow? {
    guard let larder = figure(work, name) else { return nil }
    let peers = figures.filter { $0.work == work && $0.figure == name && $0.contender != Contender.larder }
    let best =
      larder.isBetterLower ? peers.min { $0.median < $1.median } : peers.max { $0.median < $1.median }
    return GoalRow("\(work): \(larder.title)", larder, against: best, goal)
  }

  private func row(
    _ work: PacedWork, _ name: String, against other: PacedWork, _ goal: Goal?, of contender: String = Contender.larder
  ) -> GoalRow? {
    guard let measured = figure(work.name, name, contender) else { return nil }
    let title = work.name + (contender == Contender.larder ? "" : " (\(contender))") + ": " + measured.title
    return GoalRow(title, measured, against: figure(other.name, name, contender), goal)
  }
}

// MARK: Markdown

extension LargeReport {
  /// The report as Markdown.
  var markdown: String {
    let remarks = settings.parts.map { "- \(settings.remark(on: $0))" } + notes.map { "- \($0)" }
    return [
      heading, rows.table { anchor, larder in anchor.contender == larder.contender ? "alone" : anchor.contender },
      remarks.joined(separator: "\n"), "## All figures\n\n" + figureTable,
      "## Contenders\n\n" + contenders.map(\.markdown).joined(separator: "\n"),
    ].joined(separator: "\n\n") + "\n"
  }

  private var heading: String {
    let others = othersLoads.last.map {
      " Other processes used \(percent(othersLoads[othersLoads.count / 2])) of a core in the median turn of a closed "
        + "loop and at most \(percent($0))."
    }
    return """
      # Large requests

      \(surroundings.markdown()) · \(Int(seconds)) s in all

      \(settings.text)\(others ?? "")
      """
  }

  private var figureTable: String {
    let names = distinct(figures.map(\.contender))
    var lines = [["Work"] + names]
    for title in distinct(figures.map { "\($0.work): \($0.title)" }) {
      lines.append(
        [title]
          + names.map { name in
            figures.first { "\($0.work): \($0.title)" == title && $0.contender == name }?.cell ?? "–"
          })
    }
    return MarkdownTable(lines).text
  }
}
