import Documents
import Foundation

/// A measurement of documents: of each work, all contenders take turns.
struct DocumentsBench {
  private let plan: DocumentsPlan
  private let runner: BenchRunner

  static let decoder = "JSONDecoder"
  static let serialization = "JSONSerialization"
  static let sqlite = "SQLite"

  static let orders = 1_000
  static let persons = 100_000
  static let ageAndPet = #"{"age": {"$gt": 40}, "pet": "cat"}"#
  static let sort: [SortField] = [.descending("age"), .ascending("docNumber")]
  static let page = 20
  /// Short, so that some turns are not interrupted by other processes.
  static let turnNanoseconds: UInt64 = 20_000_000

  /// Work on all documents of a sample.
  private struct Pass {
    let contender: String
    let run: () throws -> Void
  }

  init(_ plan: DocumentsPlan, _ runner: BenchRunner) {
    self.plan = plan
    self.runner = runner
  }

  /// - Parameters:
  ///   - postgres: The address of a database of PostgreSQL, to be compared with; nil for none.
  ///   - isOnlyPostgres: Whether nothing else is measured.
  func run(postgres: String?, isOnlyPostgres: Bool) throws -> BenchReport {
    var report = BenchReport("documents", title: "Documents")
    if let postgres { report.figures.add(try PostgresBench(plan, runner, address: postgres).run()) }
    let postgresText = PostgresSection(plan, report.figures)
    let postgresMarkdown = postgres == nil ? [] : [postgresText.markdown]
    if isOnlyPostgres {
      report.finish(postgresText.rows, sections: postgresMarkdown)
      return report
    }
    var samples = DocumentSamples(seed: plan.seed)
    let orders = (0..<plan.orders).map { Array(samples.order($0).utf8) }
    let documents = NumberedDocument.all(samples.persons(plan.persons))
    let persons = documents.map(\.text)
    var figures = try measure(.validate, orders, validation(of: orders))
    figures += try measure(.extract, orders, extraction(from: orders))
    figures += try measure(.evaluate, persons, evaluation(of: persons))
    figures += try measure(.evaluateStored, persons, storedEvaluation(of: persons))
    figures += try measure(.sort, persons, sorting(of: persons))

    let builds = IndexBuildBench(plan, runner)
    figures += try builds.run(documents)
    figures += try IndexedPutBench(plan, runner).run(documents)
    figures += try IndexedFindBench(plan, runner).run(documents)
    runner.show("making \(plan.manyPersons) documents")
    let many = NumberedDocument.all(samples.persons(plan.manyPersons))
    figures += try builds.runLarge(many)
    figures += try IndexReopenBench(plan, runner).run(many)
    figures += try GetsBesideFinds(plan, runner).run(many)
    report.figures.add(figures)
    let (documentsText, indexesText) = (DocumentsSection(plan, report.figures), IndexesSection(plan, report.figures))
    report.finish(
      documentsText.rows + indexesText.rows + postgresText.rows,
      sections: [documentsText.markdown, indexesText.markdown] + postgresMarkdown)
    return report
  }

  private func validation(of texts: [[UInt8]]) throws -> [Pass] {
    let data = texts.map { Data($0) }
    let decoder = JSONDecoder()
    var passes = [
      Pass(contender: Contender.larder) { for text in texts { try Documents.JSON.validate(text.span) } },
      Pass(contender: Self.decoder) {
        for data in data { keep(try decoder.decode(DocumentOrder.self, from: data)) }
      },
      Pass(contender: Self.serialization) {
        for data in data { keep(try JSONSerialization.jsonObject(with: data)) }
      },
    ]
    passes += try sqlite(texts, "SELECT count(*) FROM documents WHERE json_valid(text)", ["\(texts.count)"])
    return passes
  }

  private func extraction(from texts: [[UInt8]]) throws -> [Pass] {
    let selector = try CompiledSelector(Selector(parsing: DocumentOrder.selector))
    guard texts.allSatisfy({ selector.matches($0.span) }) else { throw BenchError("an order lacks a field") }
    let columns = DocumentSamples.orderPaths.map { "json_extract(text, '$.\($0)')" }.joined(separator: ", ")
    let larder = Pass(contender: Contender.larder) { for text in texts { keep(selector.matches(text.span)) } }
    return [larder] + (try sqlite(texts, "SELECT \(columns) FROM documents", nil))
  }

  private static let ageAndPetSQL = """
    SELECT count(*) FROM documents WHERE json_extract(text, '$.age') > 40 AND json_extract(text, '$.pet') = 'cat'
    """

  private func evaluation(of texts: [[UInt8]]) throws -> [Pass] {
    let selector = try CompiledSelector(Selector(parsing: Self.ageAndPet))
    let documents = texts.enumerated().map { Documents.Document($1, id: "\($0)", revision: 1) }
    func count() -> Int { documents.reduce(0) { $0 + (selector.matches($1) ? 1 : 0) } }
    return [Pass(contender: Contender.larder) { keep(count()) }]
      + (try sqlite(texts, Self.ageAndPetSQL, ["\(count())"]))
  }

  private func storedEvaluation(of texts: [[UInt8]]) throws -> [Pass] {
    let documents = StoredDocuments(texts)
    let query = DocumentQuery(try Selector(parsing: Self.ageAndPet))
    func count() throws -> Int {
      var finder = try EntryFinder(query, isOrdered: false, isCounting: true)
      var budget = WorkBudget()
      try documents.withEntries { entries in _ = try finder.examine(entries, &budget) }
      return finder.matchCount
    }
    let passes = [Pass(contender: Contender.larder) { keep(try count()) }]
    return passes + (try sqlite(texts, Self.ageAndPetSQL, ["\(try count())"]))
  }

  private func sorting(of texts: [[UInt8]]) throws -> [Pass] {
    let query = DocumentQuery(sort: Self.sort, limit: Self.page)
    let documents = texts.enumerated().map { Documents.Document($1, id: "\($0)", revision: 1) }
    let found = try documents.find(query).documents.map { String(decoding: $0.text, as: UTF8.self) }
    let sql = """
      SELECT text FROM documents ORDER BY json_extract(text, '$.age') DESC, json_extract(text, '$.docNumber') \
      LIMIT \(Self.page)
      """
    return [Pass(contender: Contender.larder) { keep(try documents.find(query).documents) }]
      + (try sqlite(texts, sql, found))
  }

  /// Returns the same work as an SQLite query, if SQLite is built in.
  /// - Parameter expected: The first column of the query's result.
  private func sqlite(_ texts: [[UInt8]], _ sql: String, _ expected: [String]?) throws -> [Pass] {
    #if AllProducts || SQLiteDataSource
      let query = try SQLiteDocuments(texts).prepare(sql)
      if let expected, query.firstColumn() != expected { throw BenchError("SQLite finds other documents: \(sql)") }
      return [Pass(contender: Self.sqlite) { keep(query.run()) }]
    #else
      return []
    #endif
  }

  private func measure(_ work: DocumentsWork, _ texts: [[UInt8]], _ passes: [Pass]) throws -> [MeasuredFigure] {
    let counts = try passes.map(repetitions)
    let turns = try runner.takeTurns(at: [work], Array(passes.indices)) {
      "\($0.rawValue): \(passes[$1].contender)"
    } _: {
      Double(try time(passes[$1], counts[$1])) / Double(counts[$1] * texts.count)
    }
    let bytesPerDocument = Double(texts.reduce(0) { $0 + $1.count }) / Double(texts.count)
    let rates = turns[0][0].map { bytesPerDocument / $0 * 1_000 }
    return zip(passes, turns[0]).map { MeasuredFigure(work.rawValue, .documentTime, of: $0.contender, $1) }
      + [MeasuredFigure(work.rawValue, .byteRate, of: Contender.larder, rates)]
  }

  /// Returns how many passes fill a turn.
  private func repetitions(_ pass: Pass) throws -> Int {
    _ = try time(pass, 1)
    return max(1, Int(Self.turnNanoseconds / max(1, try time(pass, 1))))
  }

  /// Returns the wall time of a number of passes, in nanoseconds.
  private func time(_ pass: Pass, _ count: Int) throws -> UInt64 {
    let start = Clocks.now()
    for _ in 0..<count { try pass.run() }
    return Clocks.now() - start
  }
}

/// The part of an order that Foundation decodes.
struct DocumentOrder: Decodable {
  private struct Customer: Decodable {
    let name: String
  }

  private let id: String
  private let customer: Customer
  private let total: Double

  /// A selector that finds all fields of `DocumentSamples.orderPaths`.
  static let selector =
    "{" + DocumentSamples.orderPaths.map { #""\#($0)": {"$exists": true}"# }.joined(separator: ", ") + "}"
}
