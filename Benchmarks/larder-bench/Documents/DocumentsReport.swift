/// A work of the benchmark of documents. The raw values are the names in figures.
enum DocumentsWork: String, Sendable {
  case validate = "validate documents of 1 KiB"
  case extract = "extract 3 paths of documents of 1 KiB"
  case evaluate = "evaluate a selector of two fields"
  case sort = "find 20 of 100,000 sorted by two fields"
}

/// The result of `larder-bench documents`, as written to JSON.
struct DocumentsReport: Encodable {
  private let surroundings = Surroundings()
  private let rounds: Int
  private let longRounds: Int
  private let seed: UInt64
  private let indexes: IndexesSection
  private var bytesPerDocument: [String: Double] = [:]
  private var figures: [MeasuredFigure] = []

  static let decoder = "JSONDecoder"
  static let serialization = "JSONSerialization"
  static let sqlite = "SQLite"

  private enum CodingKeys: CodingKey {
    case surroundings, rounds, longRounds, seed, bytesPerDocument, figures
  }

  init(_ plan: DocumentsPlan) {
    rounds = plan.rounds
    longRounds = plan.longRounds
    seed = plan.seed
    indexes = IndexesSection(plan)
  }

  mutating func add(_ work: DocumentsWork, bytesPerDocument count: Double) { bytesPerDocument[work.rawValue] = count }

  /// - Parameter times: The wall time per document in each round, in nanoseconds.
  mutating func add(_ work: DocumentsWork, _ contender: String, _ times: [Double]) {
    figures.append(
      MeasuredFigure(work.rawValue, "time a document", of: contender, unit: "ns", isBetterLower: true, times))
  }

  mutating func add(_ figures: [MeasuredFigure]) { self.figures += figures }

  private func figure(_ work: DocumentsWork, _ contender: String) -> MeasuredFigure? {
    figures.first { $0.work == work.rawValue && $0.contender == contender }
  }
}

extension DocumentsReport {
  /// The report as Markdown.
  var markdown: String {
    """
    # Documents

    \(surroundings.markdown())

    ## JSON, selectors and sorting

    One thread. Cells show the best of \(rounds) rounds (–worst), in which the contenders take turns of about 20 ms; \
    ratios and goals are of the best. The documents are random (seed \(seed)).

    \(table)

    - Validate and extract: \(grouped(Double(DocumentsBench.orders))) different orders of a web shop, with nested \
    objects and arrays, all kinds of values, a few escapes and characters beyond ASCII, and no white space. \
    JSONDecoder decodes three of their fields, JSONSerialization all. SQLite validates with `json_valid`.
    - Extract: `\(DocumentOrder.selector)`, all of which exist, so that no condition ends the evaluation early. SQLite \
    extracts the three values with `json_extract`.
    - Evaluate: `\(DocumentsBench.ageAndPet)` over \(grouped(Double(DocumentsBench.persons))) documents such as \
    `{"name":"mike","age":34,"docNumber":0,"pet":"cat"}`. SQLite counts those for which `json_extract` says the same.
    - Sort: the same documents by \(DocumentsBench.sort.map(\.description).joined(separator: ", ")). SQLite \
    orders by two `json_extract`, and finds the same documents.
    \(sqliteRemark)

    ## Indexes and finds

    \(indexes.markdown(figures))

    """
  }

  private var sqliteRemark: String {
    #if AllProducts || SQLiteDataSource
      "- SQLite \(SQLiteDocuments.version) runs prepared queries of a table in memory, in this process."
    #else
      "- SQLite is not built in; the trait SQLiteDataSource enables it."
    #endif
  }

  private var table: String {
    let header = [
      "Work", "Anchor, ns per document", "Larder, ns per document", "Larder, MB/s", "Larder ÷ anchor", "Goal",
      "Reached",
    ]
    let rows = [
      row(.validate, rate: 1_000),
      row(.validate, against: Self.decoder, atMost: 0.1),
      row(.validate, against: Self.serialization, atMost: 0.1),
      row(.validate, against: Self.sqlite),
      row(.extract, rate: 1_000),
      row(.extract, against: Self.sqlite),
      row(.evaluate, against: Self.sqlite, atMost: 0.25),
      row(.sort, against: Self.sqlite, atMost: 0.5),
    ]
    return MarkdownTable([header] + rows.compactMap(\.self)).text
  }

  /// Returns a row with a goal for Larder's rate, in MB/s.
  private func row(_ work: DocumentsWork, rate goal: Double) -> [String]? {
    guard let larder = figure(work, Contender.larder) else { return nil }
    let rate = rate(work, larder)
    return [work.rawValue, "–", larder.bestCell, grouped(rate), "–", "≥ \(grouped(goal)) MB/s", reached(rate >= goal)]
  }

  /// Returns a row that compares Larder with an anchor, or with none if the anchor was not measured.
  /// - Parameter goal: The maximum of Larder ÷ anchor.
  private func row(_ work: DocumentsWork, against anchor: String, atMost goal: Double? = nil) -> [String]? {
    guard let larder = figure(work, Contender.larder) else { return nil }
    let anchor = figure(work, anchor)
    let ratio = anchor.map { larder.lowest / $0.lowest }
    return [
      work.rawValue, anchor.map { "\($0.contender): \($0.bestCell)" } ?? "–", larder.bestCell,
      grouped(rate(work, larder)), ratio.map { decimal($0, 3) } ?? "–", goal.map { "≤ \(decimal($0, 2)) ×" } ?? "–",
      ratio.flatMap { ratio in goal.map { reached(ratio <= $0) } } ?? "–",
    ]
  }

  /// Returns MB of text per second, from the best time.
  private func rate(_ work: DocumentsWork, _ figure: MeasuredFigure) -> Double {
    (bytesPerDocument[work.rawValue] ?? 0) / figure.lowest * 1_000
  }

  private func reached(_ isReached: Bool) -> String { isReached ? "yes" : "**no**" }
}

extension MeasuredFigure {
  /// The lowest value, with the highest one if it differs.
  var bestCell: String {
    lowest < highest ? "\(grouped(lowest)) (–\(grouped(highest)))" : grouped(lowest)
  }
}
