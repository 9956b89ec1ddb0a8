/// The part of the documents' report about indexes and finds: it compares figures with SQLite's and with goals.
struct IndexesSection: Sendable {
  private let plan: DocumentsPlan
  /// The figures of the benchmarks of indexes, among others.
  private let figures: Figures

  /// Seconds to build an index over one and over three fields on an iPhone 5, from the seed of this project: CDTDatastore
  /// on 21 October 2014.
  private static let seedTimes: [Int: (one: Double, three: Double)] = [
    1_000: (0.8, 0.8), 10_000: (6.9, 7.6), 50_000: (56.2, 60.7), 100_000: (169.2, 179.9),
  ]

  init(_ plan: DocumentsPlan, _ figures: Figures) {
    self.plan = plan
    self.figures = figures
  }

  var markdown: String {
    """
    ## Indexes and finds

    Cells show the best of \(plan.repeats) rounds (–worst), or of \(plan.longRepeats) where a round takes long; ratios and \
    goals are of the best. The documents are as `{"name":"mike","age":34,"docNumber":0,"pet":"cat"}`, and SQLite has \
    indexes of `json_extract`, in memory. Before each measurement, both have found the same documents.

    The time to build an index, with the seed's measurements on a phone of 2014:

    \(MarkdownTable([buildHeader] + buildRows.map { $0.cells }).text)

    All else:

    \(otherRows.table)

    \(remarks)
    """
  }

  private var buildHeader: [String] {
    ["Documents", "Fields of the index", "Seed in 2014, s", "SQLite, ms", "Larder, ms"] + GoalRow.verdictColumns
  }

  /// The rows about building indexes, with their cells.
  private var buildRows: [(row: GoalRow, cells: [String])] {
    (plan.indexedPersons + [plan.manyPersons]).flatMap { documents in
      [1, 3].compactMap { fields in
        let work = IndexWork.build(fieldCount: fields, documents: documents).name
        let sqlite = figures.find(work, .buildTime, of: DocumentsBench.sqlite)
        guard let larder = figures.find(work, .buildTime) else { return nil }
        let row = GoalRow(larder, against: sqlite, sqlite == nil ? nil : .atMost(1), by: .best)
        let seed = Self.seedTimes[documents].map { decimal(fields == 1 ? $0.one : $0.three, 1) }
        let cells = [grouped(Double(documents)), "\(fields)", seed ?? "–", sqlite?.cell(.best) ?? "–", row.larderCell]
        return (row, cells + row.verdictCells)
      }
    }
  }

  var rows: [GoalRow] { buildRows.map(\.row) + otherRows }

  private var otherRows: [GoalRow] {
    let (many, persons) = (plan.manyPersons, plan.persons)
    let open = IndexWork.open(indexCount: IndexWork.indexes.count, documents: many)
    func get(_ neighbor: IndexWork.Neighbor) -> IndexWork { .get(neighbor, documents: many) }
    return [
      buildTimePerDocument,
      row(.memory(fields: IndexWork.seedFields, documents: many), .memory, .atMost(figure: 40)),
      row(.memory(fields: ["name", "age", "docNumber"], documents: many), .memory, .atMost(figure: 40)),
      row(.memory(fields: IndexWork.seedField, documents: many), .memory),
      row(open, .completeAfterOpening, .atMost(figure: 1.5)),
      row(open, .complete),
      row(open, .firstGet, against: .open(indexCount: 0, documents: many), named: "no index", .atMost(1.1)),
      row(.find(documents: persons), .findTime, .atMost(figure: 6)),
      row(.find(documents: persons), .pipelinedCPU, .atMost(figure: 15)),
      row(.find(documents: persons), .singleCPU),
      row(.scan(documents: persons), .scanTime, .atMost(0.25)),
      row(.scan(documents: persons), .scanCPU),
      row(.insert, .putTime, .atMost(0.5)),
      row(.replace, .putTime, .atMost(0.5)),
      row(.sorted(skip: 0, documents: persons), .findTime, .atMost(1)),
      row(.sorted(skip: persons / 2, documents: persons), .findTime, .atMost(1)),
      row(get(.none), .p50),
      row(get(.finds), .p50, against: get(.none), named: "beside nothing else"),
      row(get(.finds), .p99, against: get(.none), named: "beside nothing else", .atMost(2)),
      row(get(.largePuts), .p99, against: get(.noneWithIndexes), named: "beside nothing else", .atMost(figure: 2_000)),
    ].compactMap(\.self)
  }

  private var buildTimePerDocument: GoalRow? {
    func time(_ documents: Int) -> MeasuredFigure? {
      let work = IndexWork.build(fieldCount: 3, documents: documents).name
      return figures.find(work, .buildTime).map { time in
        let values = [time.lowest, time.median, time.highest].map { $0 * 1e6 / Double(documents) }
        return MeasuredFigure(work, .documentTime, of: Contender.larder, values)
      }
    }
    let few = 10_000
    guard let manyTime = time(plan.manyPersons), let fewTime = time(few) else { return nil }
    return GoalRow(manyTime, against: fewTime, named: "of \(grouped(Double(few)))", .atMost(1.5), by: .best)
  }

  /// Returns a row that compares Larder's best value with SQLite's, or with its own of another work, and with a goal.
  /// - Parameters:
  ///   - other: The work to compare with; nil for the same by SQLite.
  ///   - otherName: What the other work is.
  private func row(
    _ work: IndexWork, _ quantity: Quantity, against other: IndexWork? = nil, named otherName: String? = nil,
    _ goal: Goal? = nil
  ) -> GoalRow? {
    figures.find(work.name, quantity).map { larder in
      let anchor =
        other.map { figures.find($0.name, quantity) } ?? figures.find(work.name, quantity, of: DocumentsBench.sqlite)
      return GoalRow(larder, against: anchor, named: otherName, goal, by: .best)
    }
  }

  // MARK: Remarks

  private var remarks: String {
    """
    - Build: from the request for an index on documents that are there until it is complete, by Larder in the \
    background, by SQLite with `CREATE INDEX`. The index over one field is that of name; over three, of name, age and \
    pet, as the seed's. The seed's table is CDTDatastore's on an iPhone 5. The documents were put in the order of their \
    keys.
    - Memory: what the store reports of the index, ÷ documents.
    - Open: a log of \(grouped(Double(plan.manyPersons))) documents in the page cache, in this process. The indexes are \
    those of (name), (age, docNumber) and (name, age, docNumber). The first get is one of the process that opens the \
    store.
    - Find: by `larderd` over a Unix socket, \(IndexedFindBench.pipeline) requests pipelined, each for another name, age and pet. Larder's time \
    is what the server reports: from the request until the documents are in the reply or, without a kept plan, are \
    found; the server's CPU time has everything. SQLite performs a prepared statement and reads the documents. In the order of an index: \
    by age and docNumber.
    - Put: Larder's store takes the lock for each document, SQLite has one transaction. Half of the documents are there \
    before; then the other half is put, and then all of them with the texts of others, in random order. The indexes are \
    those of opening.
    - Gets: \(grouped(Double(PacedGets.rate))) a second on one connection, for \(decimal(plan.turn.seconds, 1)) s \
    each, from a `larderd` with one worker; \(GetsBesideFinds.findingConnections) connections each find \
    `\(GetsBesideFinds.selector)` again and again, or one puts documents of 16 MiB.
    """
  }
}
