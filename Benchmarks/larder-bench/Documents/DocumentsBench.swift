import Documents
import Foundation

/// A measurement of documents: of each work, all contenders take turns.
struct DocumentsBench {
  private let plan: DocumentsPlan
  /// Where servers and logs have their files.
  private let folder: TemporaryFolder
  private let display: LiveProgress

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

  init(_ plan: DocumentsPlan, in folder: TemporaryFolder, display: LiveProgress) {
    self.plan = plan
    self.folder = folder
    self.display = display
  }

  func run() throws -> DocumentsReport {
    var samples = DocumentSamples(seed: plan.seed)
    let orders = (0..<plan.orders).map { Array(samples.order($0).utf8) }
    let documents = NumberedDocument.all(samples.persons(plan.persons))
    let persons = documents.map(\.text)
    var report = DocumentsReport(plan)
    try measure(.validate, orders, validation(of: orders), &report)
    try measure(.extract, orders, extraction(from: orders), &report)
    try measure(.evaluate, persons, evaluation(of: persons), &report)
    try measure(.sort, persons, sorting(of: persons), &report)

    let builds = IndexBuildBench(plan, display: display)
    report.add(try builds.run(documents))
    report.add(try IndexedPutBench(plan, display: display).run(documents))
    report.add(try IndexedFindBench(plan, in: folder, display: display).run(documents))
    display.show("making \(plan.manyPersons) documents")
    let many = NumberedDocument.all(samples.persons(plan.manyPersons))
    report.add(try builds.runLarge(many))
    report.add(try IndexReopenBench(plan, in: folder, display: display).run(many))
    report.add(try GetsBesideFinds(plan, in: folder, display: display).run(many))
    return report
  }

  private func validation(of texts: [[UInt8]]) throws -> [Pass] {
    let data = texts.map { Data($0) }
    let decoder = JSONDecoder()
    var passes = [
      Pass(contender: Contender.larder) { for text in texts { try Documents.JSON.validate(text.span) } },
      Pass(contender: DocumentsReport.decoder) {
        for data in data { keep(try decoder.decode(DocumentOrder.self, from: data)) }
      },
      Pass(contender: DocumentsReport.serialization) {
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

  private func evaluation(of texts: [[UInt8]]) throws -> [Pass] {
    let selector = try CompiledSelector(Selector(parsing: Self.ageAndPet))
    let documents = texts.enumerated().map { Documents.Document($1, id: "\($0)", revision: 1) }
    func count() -> Int { documents.reduce(0) { $0 + (selector.matches($1) ? 1 : 0) } }
    let sql = """
      SELECT count(*) FROM documents WHERE json_extract(text, '$.age') > 40 AND json_extract(text, '$.pet') = 'cat'
      """
    return [Pass(contender: Contender.larder) { keep(count()) }] + (try sqlite(texts, sql, ["\(count())"]))
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
      return [Pass(contender: DocumentsReport.sqlite) { keep(query.run()) }]
    #else
      return []
    #endif
  }

  private func measure(
    _ work: DocumentsWork, _ texts: [[UInt8]], _ passes: [Pass], _ report: inout DocumentsReport
  ) throws {
    let counts = try passes.map(repetitions)
    var times = passes.map { _ in [Double]() }
    for round in 0..<plan.rounds {
      for (index, pass) in passes.enumerated() {
        display.show("\(work.rawValue): round \(round + 1) of \(plan.rounds): \(pass.contender)")
        let elapsed = try time(pass, counts[index])
        times[index].append(Double(elapsed) / Double(counts[index] * texts.count))
      }
    }
    let bytes = texts.reduce(0) { $0 + $1.count }
    report.add(work, bytesPerDocument: Double(bytes) / Double(texts.count))
    for (pass, times) in zip(passes, times) { report.add(work, pass.contender, times) }
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
