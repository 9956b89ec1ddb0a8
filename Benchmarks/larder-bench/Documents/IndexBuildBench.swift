/// Measures how long an index takes from its creation until it is complete, and the memory that it uses.
struct IndexBuildBench {
  private let plan: DocumentsPlan
  private let runner: BenchRunner

  init(_ plan: DocumentsPlan, _ runner: BenchRunner) {
    self.plan = plan
    self.runner = runner
  }

  /// Builds indexes of documents in turns with SQLite.
  func run(_ documents: [NumberedDocument]) throws -> [MeasuredFigure] {
    var figures: [MeasuredFigure] = []
    for count in plan.indexedPersons {
      runner.show("loading \(count) documents")
      let tables = try DocumentTables.make()
      for table in tables { try table.put(Array(documents.prefix(count))) }
      for fields in [IndexWork.seedFields, IndexWork.seedField] {
        let work = IndexWork.build(fieldCount: fields.count, documents: count)
        figures += try measure(work, tables, fields, rounds: plan.repeats) { round in
          if round == 0 { try DocumentTables.check(tables, fields, count: count) }
        }
      }
    }
    return figures
  }

  /// Builds large indexes, without SQLite.
  func runLarge(_ documents: [NumberedDocument]) throws -> [MeasuredFigure] {
    runner.show("loading \(documents.count) documents")
    let table = try StoreTable()
    try table.put(documents)
    var figures: [MeasuredFigure] = []
    for fields in [IndexWork.seedFields, ["name", "age", "docNumber"], IndexWork.seedField] {
      var bytes: [Double] = []
      let work = IndexWork.build(fieldCount: fields.count, documents: documents.count)
      let times = try measure(work, [table], fields, rounds: plan.longRepeats) { _ in
        let report = try table.report(ofIndex: fields)
        guard report.documentCount == documents.count else { throw BenchError("an index lacks documents") }
        bytes.append(Double(report.memoryBytes) / Double(documents.count))
      }
      // The time of only one of the indexes over three fields is compared with other numbers of documents.
      if fields != ["name", "age", "docNumber"] { figures += times }
      figures.append(IndexWork.memory(fields: fields, documents: documents.count).figure(.memory, bytes))
    }
    return figures
  }

  /// - Parameter check: Called when each table has built the index, with the number of the round.
  private func measure(
    _ work: IndexWork, _ tables: [any DocumentTable], _ fields: [String], rounds: Int, _ check: (Int) throws -> Void
  ) throws -> [MeasuredFigure] {
    var times = tables.map { _ in [Double]() }
    for round in 0..<rounds {
      for (index, table) in tables.enumerated() {
        runner.show("\(work.name): round \(round + 1) of \(rounds): \(table.contender)")
        let start = Clocks.now()
        try table.buildIndex(fields)
        times[index].append(Double(Clocks.now() - start) / 1e6)
      }
      try check(round)
      for table in tables { try table.deleteIndex(fields) }
    }
    return zip(tables, times).map { work.figure(.buildTime, of: $0.contender, $1) }
  }
}
