import Dispatch
import Larder
import Platform
import Synchronization

/// The parameters of the comparison of clients.
struct ClientPlan: BenchPlan {
  var repeats = 5
  var turn: Duration = .seconds(2)
  var seed: UInt64 = 1
  var keys = 200_000
  var valueSize = 100
  /// The numbers of concurrent tasks.
  var tasks = [1, 2, 3, 4, 6, 8, 16, 64, 1_024]

  static var quick: ClientPlan {
    var plan = ClientPlan()
    plan.repeats = 2
    plan.turn = .milliseconds(500)
    return plan
  }
}

/// A comparison of the client library with clients in C, and measurements of what it does besides calls.
struct ClientComparison {
  private let plan: ClientPlan
  private let runner: BenchRunner
  private var report = BenchReport("client", title: "The client library")
  private var ratios: [GoalRow] = []

  static let rate = Quantity("calls", "calls/s", isBetterLower: false)
  static let cpu = Quantity("client CPU a call", "µs")
  static let ratio = Quantity("calls ÷ those of as many C connections", "×", isBetterLower: false)
  /// The goal for that ratio, and the numbers of tasks that it applies to.
  private static let leastRatio = 0.8
  private static let tasksWithGoal = 2...8
  private static let delay = Quantity("a change arrives after", "µs")
  private static let longestDelay = Quantity("the slowest of 1,000 changes arrives after", "µs")
  private static let hit = Quantity("a hit", "ns")
  private static let cacheDelay = Quantity("another client's change is seen after, p50", "µs")
  private static let longCacheDelay = Quantity("another client's change is seen after, p99", "µs")

  init(_ plan: ClientPlan, _ runner: BenchRunner) {
    self.plan = plan
    self.runner = runner
  }

  /// - Parameters:
  ///   - target: The server to call instead of one that is started.
  ///   - calls: The number of calls that are made instead of measurements, for which nil is returned.
  mutating func run(target: Address?, calls: Int?) throws -> BenchReport? {
    // With a target, nothing is started, so that this program also runs where larderd is not installed.
    let contenders = target == nil ? try Contender.installed() : []
    let own = try contenders.first { $0.name == Contender.larder }.map { try runner.start($0) }
    guard let address = target ?? own?.address else {
      throw BenchError("there is no server to call; build larderd, or give --target")
    }
    try load(address, .larder)
    let client = try LarderClient("\(address)")
    defer { client.close() }
    let bench = ClientBench(client.store("bench"), keyCount: plan.keys, seed: plan.seed)
    if let calls {
      for count in plan.tasks { try blocking { try await bench.run(tasks: count, calls: calls) } }
      return nil
    }
    let redis =
      RedisBenchmark.isInstalled ? try contenders.first { $0.name == "redis" }.map { try runner.start($0) } : nil
    defer { runner.discard([own, redis].compactMap(\.self)) }
    if let redis { try load(redis.address, .resp) }
    try compare(bench, BareClient(address: address, keys: plan.keys), redis)

    runner.show("observing documents")
    let observation = ObservationBench(client.store("bench"))
    let observed = try (0..<plan.repeats).map { _ in try blocking { try await observation.run(changes: 1_000) } }
    let work = "observe \(ObservationBench.documentCount) documents"
    report.figures.add(work, Self.delay, observed.map(\.median))
    report.figures.add(work, Self.longestDelay, observed.map(\.longest))

    runner.show("caching values")
    let cache = try LiveCacheBench(address: address)
    defer { cache.close() }
    let cached = try (0..<plan.repeats).map { _ in
      try blocking { try await cache.run(hits: 100_000, changes: 1_000) }
    }
    report.figures.add("InMemoryDataSource", Self.hit, cached.map(\.bareHit))
    report.figures.add("LiveCacheRepository", Self.hit, cached.map(\.hit))
    report.figures.add("LiveCacheRepository", Self.cacheDelay, cached.map(\.medianDelay))
    report.figures.add("LiveCacheRepository", Self.longCacheDelay, cached.map(\.p99Delay))
    report.finish(ratios, sections: [text])
    return report
  }

  /// Measures calls of the library, of as many C connections, and of redis-benchmark.
  private mutating func compare(_ bench: ClientBench, _ bare: BareClient?, _ redis: RunningServer?) throws {
    // The turns of those that are compared follow each other.
    let rows =
      plan.tasks.flatMap { count -> [ClientRow] in
        [.tasks(count)] + (bare != nil && count <= BareClient.maxConnections ? [.connections(count)] : [])
      } + (redis == nil ? [] : [1, 64].map { .redisBenchmark(pipeline: $0) })
    let turn = plan.turn
    let turns = try runner.takeTurns(at: rows, [()]) { row, _ in
      "\(row.contender), \(row.work)"
    } _: { row, _ in
      switch row {
      case .tasks(let count): return try blocking { try await bench.run(tasks: count, for: turn) }
      case .connections(let count):
        guard let bare else { preconditionFailure("there is no row without the program") }
        return try bare.run(connections: count, for: turn)
      case .redisBenchmark(let pipeline):
        guard let redis else { preconditionFailure("there is no row without the server") }
        // About as many requests as fit into a turn, so that startup weighs no more than for the other clients.
        let requests = Int(turn.seconds * (pipeline == 1 ? 50_000 : 1_000_000))
        return try RedisBenchmark(server: redis, keys: plan.keys).run(pipeline: pipeline, requests: requests)
      }
    }
    let outcomes = turns.map { $0[0] }
    for (row, outcomes) in zip(rows, outcomes) {
      report.figures.add(row.work, Self.rate, of: row.contender, outcomes.map(\.callsPerSecond))
      report.figures.add(row.work, Self.cpu, of: row.contender, outcomes.map(\.cpuMicrosecondsPerCall))
    }
    for count in plan.tasks {
      guard let index = rows.firstIndex(of: .connections(count)) else { continue }
      // Of turns in the same round.
      let values = zip(outcomes[index - 1], outcomes[index]).map { $0.callsPerSecond / $1.callsPerSecond }
      let ratio = MeasuredFigure(ClientRow.tasks(count).work, Self.ratio, of: Contender.larder, values)
      report.figures.add([ratio])
      let goal = Self.tasksWithGoal.contains(count) ? Goal.atLeast(figure: Self.leastRatio) : nil
      ratios.append(GoalRow(ratio, against: nil, goal))
    }
  }

  private func load(_ address: Address, _ protocolName: TargetProtocol) throws {
    var load = LoadPlan(address: address, protocolName: protocolName, workload: try Workload("get"))
    load.keys = plan.keys
    load.valueSize = plan.valueSize
    try load.loadKeys()
  }

  /// Blocks the main thread, on which no task runs, until `body` returns.
  private func blocking<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) throws -> R {
    let result = PendingResult<R>()
    Task.detached {
      do { result.set(.success(try await body())) } catch { result.set(.failure(error)) }
    }
    return try result.get()
  }

  // MARK: The report

  private var text: String {
    let figures = report.figures.all
    let rows = figures.filter { $0.quantity == Self.rate }.map { rate in
      let cpu = report.figures.find(rate.work, Self.cpu, of: rate.contender)
      return "| \(rate.contender) | \(rate.work) | \(rate.cell()) | \(cpu?.cell() ?? "–") |"
    }
    let comparisons = plan.tasks.compactMap { tasks -> [String]? in
      let work = ClientRow.tasks(tasks).work
      guard let row = ratios.first(where: { $0.larder.work == work }) else { return nil }
      let rates = [
        report.figures.find(work, Self.rate),
        report.figures.find(ClientRow.connections(tasks).work, Self.rate, of: BareClient.program),
      ]
      return ["\(tasks)"] + rates.map { $0?.cell() ?? "–" } + [row.larderCell] + row.verdictCells.dropFirst()
    }
    let comparison = MarkdownTable(
      [["Tasks", "Larder, calls per second", "C, calls per second", "Larder ÷ C", "Goal", "Reached"]] + comparisons
    ).text
    let delays = figures.filter { [Self.delay, Self.longestDelay].contains($0.quantity) }.map {
      "| \($0.contender) | \($0.work) | \($0.quantity.name) | \($0.cell()) |"
    }
    let cached = figures.filter { [Self.hit, Self.cacheDelay, Self.longCacheDelay].contains($0.quantity) }.map {
      "| \($0.work) | \($0.quantity.name) | \($0.cell()) | \($0.quantity.unit) |"
    }
    return """
      Gets of \(grouped(Double(plan.keys))) keys with values of \(plan.valueSize) bytes over one Unix connection. Cells show the median of \
      \(plan.repeats) rounds (lowest–highest), in which the clients take turns. CPU is that of the whole client process.

      | Client | Calls | Calls per second | Client CPU per call, in µs |
      |---|---|---:|---:|
      \(rows.joined(separator: "\n"))

      The same server's connections, as many as tasks, each with one call at a time from one thread in C \
      (`\(BareClient.program)`, which takes its turns right after those of the tasks). Ratios are of turns in the same round.

      \(comparison)

      One document after the other is written while a task observes \(ObservationBench.documentCount) that match. Times are from the beginning \
      of a put to its change.

      | Client | Work | | µs |
      |---|---|---|---:|
      \(delays.joined(separator: "\n"))

      One task reads \(LiveCacheBench.valueCount) values of 100 bytes from a cache. Then another client changes them one by one, a \
      millisecond apart, while the task reads on after pauses of \(Int(LiveCacheBench.pause / .microseconds(1))) µs. Times are from the beginning of a put to the first read that returns the \
      new value.

      | Source | | | |
      |---|---|---:|---|
      \(cached.joined(separator: "\n"))
      """
  }
}

/// A row of the table: a client and its concurrency.
enum ClientRow: Equatable {
  case tasks(Int)
  case connections(Int)
  case redisBenchmark(pipeline: Int)

  var contender: String {
    switch self {
    case .tasks: Contender.larder
    case .connections: BareClient.program
    case .redisBenchmark: "redis-benchmark"
    }
  }

  var work: String {
    switch self {
    case .tasks(let count): count == 1 ? "1 task, one call at a time" : "\(count) tasks"
    case .connections(let count): count == 1 ? "1 connection, one call at a time" : "\(count) connections"
    case .redisBenchmark(let pipeline): pipeline == 1 ? "one call at a time" : "\(pipeline) pipelined"
    }
  }
}

/// A result for which another thread waits.
private final class PendingResult<R: Sendable>: Sendable {
  private let ready = DispatchSemaphore(value: 0)
  private let result = Mutex<Result<R, any Error>?>(nil)

  func set(_ result: Result<R, any Error>) {
    self.result.withLock { $0 = result }
    ready.signal()
  }

  func get() throws -> R {
    ready.wait()
    guard let result = result.withLock({ $0 }) else {
      preconditionFailure("the semaphore was signaled without a result")
    }
    return try result.get()
  }
}
