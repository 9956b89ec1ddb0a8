/// The part of the documents' report about indexes and finds: it compares figures with SQLite's and with goals.
struct IndexesSection: Sendable {
  private let plan: DocumentsPlan

  /// Seconds to build an index over one and over three fields on an iPhone 5, from the seed of this project: CDTDatastore
  /// on 21 October 2014.
  private static let seedTimes: [Int: (one: Double, three: Double)] = [
    1_000: (0.8, 0.8), 10_000: (6.9, 7.6), 50_000: (56.2, 60.7), 100_000: (169.2, 179.9),
  ]

  /// What a row compares. A figure's best value counts.
  private struct Row {
    let work: String
    let anchor: String
    let larder: String
    let ratio: Double?
    let goal: String
    let isReached: Bool?

    var cells: [String] {
      [
        work, anchor, larder, ratio.map { decimal($0, 3) } ?? "–", goal,
        isReached.map { $0 ? "yes" : "**no**" } ?? "–",
      ]
    }
  }

  init(_ plan: DocumentsPlan) { self.plan = plan }

  // MARK: Tables

  /// - Parameter figures: The figures of the benchmarks of indexes, among others.
  func markdown(_ figures: [MeasuredFigure]) -> String {
    """
    Cells show the best of \(plan.rounds) rounds (–worst), or of \(plan.longRounds) where a round takes long; ratios and \
    goals are of the best. The documents are as `{"name":"mike","age":34,"docNumber":0,"pet":"cat"}`, and SQLite has \
    indexes of `json_extract`, in memory. Before each measurement, both have found the same documents.

    The time to build an index, with the seed's measurements on a phone of 2014:

    \(MarkdownTable([buildHeader] + buildRows(figures)).text)

    All else:

    \(MarkdownTable([header] + rows(figures).map(\.cells)).text)

    \(remarks)
    """
  }

  private var buildHeader: [String] {
    [
      "Documents", "Fields of the index", "Seed in 2014, s", "SQLite, ms", "Larder, ms", "Larder ÷ SQLite", "Goal",
      "Reached",
    ]
  }

  private func buildRows(_ figures: [MeasuredFigure]) -> [[String]] {
    (plan.indexedPersons + [plan.manyPersons]).flatMap { documents in
      [1, 3].map { fields in
        let work = IndexWork.build(fieldCount: fields, documents: documents)
        let larder = figure(work, .buildTime, in: figures)
        let sqlite = figure(work, .buildTime, of: DocumentsReport.sqlite, in: figures)
        let ratio = larder.flatMap { larder in sqlite.map { larder.lowest / $0.lowest } }
        let seed = Self.seedTimes[documents].map { decimal(fields == 1 ? $0.one : $0.three, 1) }
        return [
          grouped(Double(documents)), "\(fields)", seed ?? "–", sqlite?.bestCell ?? "–", larder?.bestCell ?? "–",
          ratio.map { decimal($0, 3) } ?? "–", ratio == nil ? "–" : "≤ 1.00 ×",
          ratio.map { $0 <= 1 ? "yes" : "**no**" } ?? "–",
        ]
      }
    }
  }

  private var header: [String] { ["Work", "Anchor", "Larder", "Larder ÷ anchor", "Goal", "Reached"] }

  private func rows(_ figures: [MeasuredFigure]) -> [Row] {
    let (many, persons) = (plan.manyPersons, plan.persons)
    let open = IndexWork.open(indexCount: IndexWork.indexes.count, documents: many)
    func get(_ neighbor: IndexWork.Neighbor) -> IndexWork { .get(neighbor, documents: many) }
    return [
      buildTimePerDocument(figures),
      row(.memory(fields: IndexWork.seedFields, documents: many), .memory, atMost: 40, in: figures),
      row(.memory(fields: ["name", "age", "docNumber"], documents: many), .memory, atMost: 40, in: figures),
      row(.memory(fields: IndexWork.seedField, documents: many), .memory, in: figures),
      row(open, .completeAfterOpening, atMost: 1.5, in: figures),
      row(open, .complete, in: figures),
      row(open, .firstGet, against: .open(indexCount: 0, documents: many), "no index", ratio: 1.1, in: figures),
      row(.find(documents: persons), .findTime, atMost: 9, in: figures),
      row(.find(documents: persons), .pipelinedCPU, atMost: 25, in: figures),
      row(.find(documents: persons), .singleCPU, in: figures),
      row(.scan(documents: persons), .scanTime, ratio: 0.25, in: figures),
      row(.scan(documents: persons), .scanCPU, in: figures),
      row(.insert, .putTime, ratio: 0.5, in: figures),
      row(.replace, .putTime, ratio: 0.5, in: figures),
      row(.sorted(skip: 0, documents: persons), .findTime, ratio: 1, in: figures),
      row(.sorted(skip: persons / 2, documents: persons), .findTime, ratio: 1, in: figures),
      row(get(.none), .p50, in: figures),
      row(get(.finds), .p50, against: get(.none), "beside nothing else", in: figures),
      row(get(.finds), .p99, against: get(.none), "beside nothing else", ratio: 2, in: figures),
      row(get(.largePuts), .p99, against: get(.noneWithIndexes), "beside nothing else", atMost: 2_000, in: figures),
    ].compactMap(\.self)
  }

  // MARK: Rows

  private func buildTimePerDocument(_ figures: [MeasuredFigure]) -> Row? {
    func time(_ documents: Int) -> Double? {
      figure(.build(fieldCount: 3, documents: documents), .buildTime, in: figures).map {
        $0.lowest * 1e6 / Double(documents)
      }
    }
    let few = 10_000
    guard let manyTime = time(plan.manyPersons), let fewTime = time(few) else { return nil }
    let ratio = manyTime / fewTime
    return Row(
      work: "\(IndexWork.build(fieldCount: 3, documents: plan.manyPersons).name): ns a document",
      anchor: "of \(grouped(Double(few))): \(grouped(fewTime))", larder: grouped(manyTime), ratio: ratio,
      goal: "≤ 1.50 ×", isReached: ratio <= 1.5)
  }

  /// Returns a row that compares Larder's figure with SQLite's, or with its own of another work, and with a goal.
  /// - Parameters:
  ///   - other: The work to compare with; nil for the same by SQLite.
  ///   - otherName: What the other work is.
  ///   - limit: The maximum of the figure.
  ///   - maxRatio: The maximum of Larder ÷ anchor.
  private func row(
    _ work: IndexWork, _ name: IndexFigure, against other: IndexWork? = nil, _ otherName: String? = nil,
    atMost limit: Double? = nil, ratio maxRatio: Double? = nil, in figures: [MeasuredFigure]
  ) -> Row? {
    guard let larder = figure(work, name, in: figures) else { return nil }
    let anchor =
      other.map { figure($0, name, in: figures) } ?? figure(work, name, of: DocumentsReport.sqlite, in: figures)
    let ratio = anchor.map { larder.lowest / $0.lowest }
    return Row(
      work: "\(work.name): \(name.rawValue), \(name.unit)",
      anchor: anchor.map { "\(otherName ?? $0.contender): \($0.bestCell)" } ?? "–", larder: larder.bestCell,
      ratio: ratio,
      goal: maxRatio.map { "≤ \(decimal($0, 2)) ×" } ?? limit.map { "≤ \(grouped($0)) \(name.unit)" } ?? "–",
      isReached: maxRatio.map { maxRatio in ratio.map { $0 <= maxRatio } } ?? limit.map { larder.lowest <= $0 })
  }

  private func figure(
    _ work: IndexWork, _ name: IndexFigure, of contender: String = Contender.larder, in figures: [MeasuredFigure]
  ) -> MeasuredFigure? {
    figures.first { $0.work == work.name && $0.figure == name.rawValue && $0.contender == contender }
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
    is what the server takes to parse the query, plan it and find the documents, without sending them; the server's CPU \
    time has everything. SQLite performs a prepared statement and reads the documents. In the order of an index: \
    by age and docNumber.
    - Put: Larder's store takes the lock for each document, SQLite has one transaction. Half of the documents are there \
    before; then the other half is put, and then all of them with the texts of others, in random order. The indexes are \
    those of opening.
    - Gets: \(grouped(Double(PacedGets.rate))) a second on one connection, for \(decimal(plan.getTurn.seconds, 1)) s \
    each, from a `larderd` with one worker; \(GetsBesideFinds.findingConnections) connections each find \
    `\(GetsBesideFinds.selector)` again and again, or one puts documents of 16 MiB.
    """
  }
}
