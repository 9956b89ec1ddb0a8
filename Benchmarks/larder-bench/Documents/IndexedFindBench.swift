import Documents

/// Measures finds with and without indexes by a larderd, beside the same queries of SQLite in this process.
///
/// Larder's time is what its server reports: from the arrival of the request until the documents are in the reply or,
/// without a kept plan, are found. SQLite's is that of performing a prepared statement and reading the documents.
struct IndexedFindBench {
  private let plan: DocumentsPlan
  private let runner: BenchRunner
  /// The number of finds that are sent at once, each for other values.
  static let pipeline = 16
  /// The fields of the index in whose order documents are found.
  private static let orderFields = ["age", "docNumber"]

  /// A find and the same query for SQLite.
  private struct Query {
    let find: FindText
    let sql: String
  }

  /// What a turn of finds takes, a find.
  private struct Turn {
    let nanoseconds: Double
    let cpuNanoseconds: Double
  }

  init(_ plan: DocumentsPlan, _ runner: BenchRunner) {
    self.plan = plan
    self.runner = runner
  }

  func run(_ documents: [NumberedDocument]) throws -> [MeasuredFigure] {
    runner.show("loading \(documents.count) documents")
    let server = try DocumentServer(documents, in: runner.sockets)
    let anchor = try SQLiteAnchor(documents)
    var figures = try measure(.scan(documents: documents.count), [scan], .scanTime, per: 1e6, server, anchor)
    let indexes = [IndexWork.seedFields, Self.orderFields]
    try server.buildIndexes(indexes)
    try anchor?.buildIndexes(indexes)
    let queries = try equalities(documents)
    figures += try measure(.find(documents: documents.count), queries, .findTime, per: 1e3, server, anchor)
    for skip in [0, documents.count / 2] {
      let work = IndexWork.sorted(skip: skip, documents: documents.count)
      figures += try measure(work, [sorted(skip)], .findTime, per: 1e3, server, anchor)
    }
    return figures
  }

  // MARK: Queries

  private var scan: Query {
    let count = DocumentsBench.page
    return Query(
      find: FindText(selector: #"{"docNumber": {"$lt": \#(count)}}"#),
      sql: "WHERE json_extract(text, '$.docNumber') < \(count) ORDER BY id")
  }

  private func sorted(_ skip: Int) -> Query {
    let sort = Self.orderFields.map { "\"\($0)\"" }.joined(separator: ", ")
    let order = Self.orderFields.map { "json_extract(text, '$.\($0)')" }.joined(separator: ", ")
    return Query(
      find: FindText(selector: "{}", sort: "[\(sort)]", skip: skip),
      sql: "ORDER BY \(order) LIMIT \(DocumentsBench.page) OFFSET \(skip)")
  }

  /// Returns as many queries as are pipelined, each for the values of another document.
  private func equalities(_ documents: [NumberedDocument]) throws -> [Query] {
    try (0..<Self.pipeline).map { number in
      let text = documents[number * documents.count / Self.pipeline].text
      let document = try JSONValue(parsing: text.span)
      guard case .object(let members) = document, let name = members["name"]?.string, let pet = members["pet"]?.string,
        let age = members["age"]?.integer
      else { throw BenchError("a document lacks a field") }
      return Query(
        find: FindText(selector: #"{"name": "\#(name)", "age": \#(age), "pet": "\#(pet)"}"#),
        sql: """
          WHERE json_extract(text, '$.name') = '\(name)' AND json_extract(text, '$.age') = \(age) \
          AND json_extract(text, '$.pet') = '\(pet)' ORDER BY id LIMIT \(DocumentsBench.page)
          """)
    }
  }

  // MARK: Measuring

  private func measure(
    _ work: IndexWork, _ queries: [Query], _ figure: Quantity, per unit: Double, _ server: DocumentServer,
    _ anchor: SQLiteAnchor?
  ) throws -> [MeasuredFigure] {
    let connection = try server.connect()
    let requests = queries.enumerated().map { connection.findRequest($1.find, id: UInt32($0 + 1)) }
    let found = try requests.map { try connection.find($0, count: 1, withTexts: true)[0].texts }
    if let anchor { try anchor.prepare(queries.map(\.sql), finding: found) }
    var (larder, sqlite, cpu, singleCPU) = ([Double](), [Double](), [Double](), [Double]())
    for round in 0..<plan.repeats {
      runner.show("\(work.name): round \(round + 1) of \(plan.repeats)")
      let turn = try takeTurn(connection, requests, pipelined: true, server)
      larder.append(turn.nanoseconds / unit)
      cpu.append(turn.cpuNanoseconds / unit)
      if case .find = work {
        singleCPU.append(try takeTurn(connection, requests, pipelined: false, server).cpuNanoseconds / unit)
      }
      if let anchor { sqlite.append(anchor.takeTurn() / unit) }
    }
    var figures = [work.figure(figure, larder)]
    if !sqlite.isEmpty { figures.append(work.figure(figure, of: DocumentsBench.sqlite, sqlite)) }
    switch work {
    case .scan: figures.append(work.figure(.scanCPU, cpu))
    case .find: figures += [work.figure(.pipelinedCPU, cpu), work.figure(.singleCPU, singleCPU)]
    default: break
    }
    return figures
  }

  private func takeTurn(
    _ connection: borrowing DocumentConnection, _ requests: [[UInt8]], pipelined: Bool, _ server: DocumentServer
  ) throws -> Turn {
    let batches = pipelined ? [requests.flatMap { $0 }] : requests
    let cpu = try server.cpuNanoseconds
    let end = Clocks.now() + DocumentsBench.turnNanoseconds
    var (count, nanoseconds) = (0, 0 as UInt64)
    while count == 0 || Clocks.now() < end {
      for batch in batches {
        let pages = try connection.find(batch, count: pipelined ? requests.count : 1)
        count += pages.count
        for page in pages { nanoseconds += page.nanoseconds }
      }
    }
    let usedCPU = try server.cpuNanoseconds - cpu
    return Turn(
      nanoseconds: Double(nanoseconds) / Double(count), cpuNanoseconds: Double(usedCPU) / Double(count))
  }
}

/// The same finds by SQLite, which may not be built in.
private final class SQLiteAnchor {
  #if AllProducts || SQLiteDataSource
    private let table: SQLiteDocuments
    private var statements: [SQLiteStatement] = []

    init?(_ documents: [NumberedDocument]) throws {
      table = try SQLiteDocuments()
      try table.put(documents)
    }

    func buildIndexes(_ indexes: [[String]]) throws {
      for fields in indexes { try table.buildIndex(fields) }
    }

    /// - Parameter expected: What each of the queries finds.
    func prepare(_ conditions: [String], finding expected: [[String]]) throws {
      statements = try conditions.map { try table.prepare("SELECT text FROM documents \($0)") }
      for (statement, expected) in zip(statements, expected) where statement.firstColumn() != expected {
        throw BenchError("SQLite finds other documents than Larder")
      }
    }

    /// Returns the time that a query takes, in nanoseconds.
    func takeTurn() -> Double {
      let start = Clocks.now()
      var count = 0
      while count == 0 || Clocks.now() < start + DocumentsBench.turnNanoseconds {
        for statement in statements { keep(statement.run()) }
        count += statements.count
      }
      return Double(Clocks.now() - start) / Double(count)
    }
  #else
    init?(_ documents: [NumberedDocument]) throws { return nil }
    func buildIndexes(_ indexes: [[String]]) throws {}
    func prepare(_ conditions: [String], finding expected: [[String]]) throws {}
    func takeTurn() -> Double { 0 }
  #endif
}
