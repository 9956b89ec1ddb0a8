/// A work of the benchmark of documents. The raw values are the names in figures.
enum DocumentsWork: String, Sendable {
  case validate = "validate documents of 1 KiB"
  case extract = "extract 3 paths of documents of 1 KiB"
  case evaluate = "evaluate a selector of two fields"
  case evaluateStored = "evaluate a selector of two fields of documents that a store knows to be valid"
  case sort = "find 20 of 100,000 sorted by two fields"
}

extension Quantity {
  static let documentTime = Quantity("time a document", "ns")
  static let byteRate = Quantity("text", "MB/s", isBetterLower: false)
}

/// The part of the documents' report about JSON, selectors and sorting.
struct DocumentsSection: Sendable {
  private let plan: DocumentsPlan
  private let figures: Figures

  init(_ plan: DocumentsPlan, _ figures: Figures) {
    self.plan = plan
    self.figures = figures
  }

  var rows: [GoalRow] {
    [
      row(.validate, atLeast: 1_000),
      row(.validate, against: DocumentsBench.decoder, atMost: 0.1),
      row(.validate, against: DocumentsBench.serialization, atMost: 0.1),
      row(.validate, against: DocumentsBench.sqlite),
      row(.extract, atLeast: 1_000),
      row(.extract, against: DocumentsBench.sqlite),
      row(.evaluate, against: DocumentsBench.sqlite, atMost: 0.25),
      row(.evaluateStored, against: DocumentsBench.sqlite, atMost: 0.15),
      row(.sort, against: DocumentsBench.sqlite, atMost: 0.5),
    ].compactMap(\.self)
  }

  /// Returns a row with a goal for Larder's rate, in MB/s.
  private func row(_ work: DocumentsWork, atLeast rate: Double) -> GoalRow? {
    figures.find(work.rawValue, .byteRate).map { GoalRow($0, against: nil, .atLeast(figure: rate), by: .best) }
  }

  /// - Parameter ratio: The maximum of Larder ÷ anchor.
  private func row(_ work: DocumentsWork, against anchor: String, atMost ratio: Double? = nil) -> GoalRow? {
    figures.find(work.rawValue, .documentTime).map {
      GoalRow($0, against: figures.find(work.rawValue, .documentTime, of: anchor), ratio.map { .atMost($0) }, by: .best)
    }
  }

  var markdown: String {
    """
    ## JSON, selectors and sorting

    One thread. Cells show the best of \(plan.repeats) rounds (–worst), in which the contenders take turns of about 20 ms; \
    ratios and goals are of the best. The documents are random (seed \(plan.seed)).

    \(rows.table)

    - Validate and extract: \(grouped(Double(DocumentsBench.orders))) different orders of a web shop, with nested \
    objects and arrays, all kinds of values, a few escapes and characters beyond ASCII, and no white space. \
    JSONDecoder decodes three of their fields, JSONSerialization all. SQLite validates with `json_valid`.
    - Extract: `\(DocumentOrder.selector)`, whose fields all exist, so no condition ends the evaluation early. SQLite \
    extracts the three values with `json_extract`.
    - Evaluate: `\(DocumentsBench.ageAndPet)` over \(grouped(Double(DocumentsBench.persons))) documents such as \
    `{"name":"mike","age":34,"docNumber":0,"pet":"cat"}`. SQLite counts those for which `json_extract` says the same.
    - A store remembers which of its values are JSON objects without duplicate names.
    - Sort: the same documents by \(DocumentsBench.sort.map(\.description).joined(separator: ", ")). SQLite \
    orders by two `json_extract`, and finds the same documents.
    \(sqliteRemark)
    """
  }

  private var sqliteRemark: String {
    #if AllProducts || SQLiteDataSource
      "- SQLite \(SQLiteDocuments.version) runs prepared queries of a table in memory, in this process."
    #else
      "- SQLite is not built in; the trait SQLiteDataSource enables it."
    #endif
  }
}
