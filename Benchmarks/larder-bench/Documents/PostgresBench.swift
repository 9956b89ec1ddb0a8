import Documents
import Platform
import Wire

/// Measures requests about documents by a larderd and by PostgreSQL, one at a time on one connection each. Both have the
/// same documents and indexes, in memory or durable, and PostgreSQL has prepared statements.
struct PostgresBench {
  private let plan: DocumentsPlan
  private let runner: BenchRunner
  private let address: String

  static let postgres = "PostgreSQL"
  static let persons = 100_000
  private static let names = 1_000
  private static let checkedCount = 20
  /// Longer than other turns, because requests over sockets have unequal latencies.
  private static let turnNanoseconds: UInt64 = 100_000_000

  /// - Parameter address: Of a database that is empty, as libpq takes it.
  init(_ plan: DocumentsPlan, _ runner: BenchRunner, address: String) {
    self.plan = plan
    self.runner = runner
    self.address = address
  }

  func run() throws -> [MeasuredFigure] {
    runner.show("loading documents for the comparison with PostgreSQL")
    var samples = Samples(seed: plan.seed)
    let persons = (0..<Self.persons).map { samples.person($0) }
    let orders = samples.orders(Self.persons)
    var figures: [MeasuredFigure] = []
    for isDurable in [false, true] {
      let contenders: [any Contender] = [
        try LarderContender(persons, orders, isDurable: isDurable, in: runner.sockets),
        try PostgresContender(persons, orders, address, isDurable: isDurable),
      ]
      for work in DocumentRequest.cases(isDurable: isDurable) {
        try check(work, contenders, &samples)
        figures += try measure(work, contenders, named: work.name(isDurable: isDurable))
      }
    }
    return figures
  }

  private func measure(
    _ work: DocumentRequest, _ contenders: [any Contender], named name: String
  ) throws -> [MeasuredFigure] {
    let turns = try runner.takeTurns(at: [work], Array(contenders.indices), rounds: plan.longRepeats) {
      "\(name): \(contenders[$1].name)"
    } _: {
      try takeTurn($0, contenders[$1], seed: runner.nextSeed())
    }
    return zip(contenders, turns[0]).flatMap { contender, turns in
      [
        MeasuredFigure(name, .latency, of: contender.name, turns.map(\.latency)),
        MeasuredFigure(name, .serverCPU, of: contender.name, turns.map(\.cpu)),
      ]
    }
  }

  /// Checks that both do the same for some values.
  private func check(_ work: DocumentRequest, _ contenders: [any Contender], _ samples: inout Samples) throws {
    for _ in 0..<Self.checkedCount {
      let values = samples.values()
      let counts = try contenders.map { try $0.run(work, values) }
      guard counts[0] == counts[1] else {
        throw BenchError("\(work.rawValue): Larder returns \(counts[0]), PostgreSQL \(counts[1])")
      }
    }
  }

  private struct Turn {
    /// In microseconds a request.
    let latency: Double
    let cpu: Double
  }

  private func takeTurn(_ work: DocumentRequest, _ contender: any Contender, seed: UInt64) throws -> Turn {
    var samples = Samples(seed: seed)
    let (cpu, start) = (try contender.cpuNanoseconds, Clocks.now())
    var count = 0
    while count == 0 || Clocks.now() < start + Self.turnNanoseconds {
      _ = try contender.run(work, samples.values())
      count += 1
    }
    let time = Clocks.now() - start
    return Turn(
      latency: Double(time) / Double(count) / 1e3,
      cpu: Double(try contender.cpuNanoseconds - cpu) / Double(count) / 1e3)
  }

  // MARK: Samples

  private struct Samples {
    private var random: Random
    private var documents: DocumentSamples

    init(seed: UInt64) {
      random = Random(seed: seed)
      documents = DocumentSamples(seed: seed)
    }

    private mutating func below(_ bound: Int) -> Int { Int(random.below(UInt64(bound))) }

    static func key(_ number: Int) -> String { String(decoding: NumberedDocument(number, []).key, as: UTF8.self) }

    mutating func person(_ number: Int) -> String {
      """
      {"name":"name \(below(names))","age":\(1 + below(90)),"docNumber":\(number),\
      "pet":"\(["bird", "cat", "dog", "fish"][below(4)])","city":"city \(below(1_000))"}
      """
    }

    mutating func orders(_ count: Int) -> [String] { (0..<count).map { documents.order($0) } }

    mutating func values() -> DocumentRequestValues {
      let number = below(persons)
      return DocumentRequestValues(
        key: Self.key(number), number: number, name: "name \(below(names))", customer: documents.customer(),
        person: person(number))
    }
  }

  // MARK: Contenders

  private protocol Contender {
    var name: String { get }
    var cpuNanoseconds: UInt64 { get throws }
    /// - Returns: The number of documents or groups that are returned, or of documents that are changed.
    func run(_ work: DocumentRequest, _ values: DocumentRequestValues) throws -> Int
  }

  private final class LarderContender: Contender {
    let name = larder_bench.Contender.larder
    private let personServer: DocumentServer
    private let orderServer: DocumentServer
    private let persons: DocumentConnection
    private let orders: DocumentConnection

    init(_ persons: [String], _ orders: [String], isDurable: Bool, in folder: TemporaryFolder) throws {
      let engine = isDurable ? "log?durability=always" : "memory"
      personServer = try DocumentServer(NumberedDocument.all(persons), engine: engine, in: folder)
      orderServer = try DocumentServer(NumberedDocument.all(orders), engine: engine, in: folder)
      try personServer.buildIndexes(DocumentRequest.personIndexes)
      try orderServer.buildIndexes(DocumentRequest.orderIndexes)
      self.persons = try personServer.connect()
      self.orders = try orderServer.connect()
    }

    var cpuNanoseconds: UInt64 { get throws { try personServer.cpuNanoseconds + orderServer.cpuNanoseconds } }

    func run(_ work: DocumentRequest, _ values: DocumentRequestValues) throws -> Int {
      work.isOnOrders
        ? try orders.count(work.request(values, to: orders), of: work)
        : try persons.count(work.request(values, to: persons), of: work)
    }
  }

  private final class PostgresContender: Contender {
    let name = postgres
    private let connection: PostgresConnection

    init(_ persons: [String], _ orders: [String], _ address: String, isDurable: Bool) throws {
      connection = try PostgresConnection(address)
      for (table, texts, indexes) in [
        ("persons", persons, DocumentRequest.personIndexes), ("orders", orders, DocumentRequest.orderIndexes),
      ] {
        try connection.execute("DROP TABLE IF EXISTS \(table)")
        try connection.execute("CREATE \(isDurable ? "" : "UNLOGGED ")TABLE \(table) (id text PRIMARY KEY, doc jsonb)")
        try connection.copy(texts.enumerated().map { (Samples.key($0), Array($1.utf8)) }, into: table)
        for fields in indexes {
          let columns = fields.map { "(doc#>'{\($0.split(separator: ".").joined(separator: ","))}')" }
          let plain = fields.map { "(doc->'\($0)')" }
          let isNested = fields.contains { $0.contains(".") }
          try connection.execute("CREATE INDEX ON \(table) (\((isNested ? columns : plain).joined(separator: ", ")))")
        }
        try connection.execute("VACUUM ANALYZE \(table)")
      }
      try connection.execute("SET synchronous_commit = \(isDurable ? "on" : "off")")
      try connection.execute("SET max_parallel_workers_per_gather = 0; SET jit = off; SET work_mem = '64MB'")
      for work in DocumentRequest.allCases { try connection.prepare("\(work)", work.sql) }
    }

    var cpuNanoseconds: UInt64 {
      get throws {
        guard let time = Clocks.cpu(ofProcess: connection.process) else { throw BenchError("PostgreSQL has ended") }
        return time
      }
    }

    func run(_ work: DocumentRequest, _ values: DocumentRequestValues) throws -> Int {
      try connection.run("\(work)", work.parameters(values))
    }
  }
}

extension Quantity {
  static let latency = Quantity("latency", "µs")
  static let serverCPU = Quantity("server CPU", "µs")
}

/// The part of the documents' report that compares Larder with PostgreSQL.
struct PostgresSection: Sendable {
  private let plan: DocumentsPlan
  private let figures: Figures

  init(_ plan: DocumentsPlan, _ figures: Figures) {
    self.plan = plan
    self.figures = figures
  }

  var rows: [GoalRow] {
    [false, true].flatMap { isDurable in
      DocumentRequest.cases(isDurable: isDurable).flatMap { rows(of: $0, named: $0.name(isDurable: isDurable)) }
    } + [pointAgainstGet].compactMap(\.self)
  }

  private func rows(of work: DocumentRequest, named name: String) -> [GoalRow] {
    [(Quantity.latency, work.goal), (.serverCPU, nil)].compactMap { quantity, goal in
      figures.find(name, quantity).map { larder in
        GoalRow(larder, against: figures.find(name, quantity, of: PostgresBench.postgres), goal.map { .atMost($0) })
      }
    }
  }

  private var pointAgainstGet: GoalRow? {
    guard let point = figures.find(DocumentRequest.point.rawValue, .latency) else { return nil }
    let get = figures.find(DocumentRequest.get.rawValue, .latency)
    return GoalRow(point, against: get, named: "a get by key", .atMost(1.3))
  }

  var markdown: String {
    """
    ## Beside PostgreSQL

    One request at a time on one connection over a Unix socket; medians of \(plan.longRepeats) rounds (lowest–highest), in \
    which both take turns. \(grouped(Double(PostgresBench.persons))) documents of each collection. Larder has memory \
    stores; PostgreSQL has `jsonb` in unlogged tables with the same indexes as expressions, prepared statements, and \
    neither parallel workers nor just-in-time compilation. What is durable is in a log store that syncs each commit, and \
    in tables with a log and `synchronous_commit = on`. Larder divides a scan among two threads, its default: compare \
    the CPU time, too. Before each measurement, both have returned as many documents \
    or groups for the same values.

    \(rows.table)
    """
  }
}
