/// Measures puts of documents into a table with three indexes.
struct IndexedPutBench {
  private let plan: DocumentsPlan
  private let runner: BenchRunner

  init(_ plan: DocumentsPlan, _ runner: BenchRunner) {
    self.plan = plan
    self.runner = runner
  }

  /// Puts half of the documents first. Then measures the puts of the other half, and of all documents once more with
  /// the texts of others, each in random order.
  func run(_ documents: [NumberedDocument]) throws -> [MeasuredFigure] {
    var random = Random(seed: plan.seed)
    let first = documents.filter { $0.number.isMultiple(of: 2) }.shuffled(using: &random)
    let inserted = documents.filter { !$0.number.isMultiple(of: 2) }.shuffled(using: &random)
    let half = documents.count / 2
    let replacing = documents.indices.map { index in
      NumberedDocument(documents[index].number, documents[(index + half) % documents.count].text)
    }.shuffled(using: &random)

    var times: [[[Double]]] = [[], []]
    var contenders: [String] = []
    for round in 0..<plan.longRepeats {
      let tables = try DocumentTables.make()
      contenders = tables.map(\.contender)
      if round == 0 { times = times.map { _ in tables.map { _ in [] } } }
      for (index, table) in tables.enumerated() {
        runner.show("put under 3 indexes: round \(round + 1) of \(plan.longRepeats): \(table.contender)")
        for fields in IndexWork.indexes { try table.buildIndex(fields) }
        try table.put(first)
        for (work, documents) in [inserted, replacing].enumerated() {
          let start = Clocks.now()
          try table.put(documents)
          times[work][index].append(Double(Clocks.now() - start) / 1e3 / Double(documents.count))
        }
      }
      if round == 0 {
        for fields in IndexWork.indexes { try DocumentTables.check(tables, fields, count: documents.count) }
      }
    }
    return zip([IndexWork.insert, .replace], times).flatMap { work, times in
      zip(contenders, times).map { work.figure(.putTime, of: $0, $1) }
    }
  }
}
