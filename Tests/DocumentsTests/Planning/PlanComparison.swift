import DocumentTestSupport
import Documents
import TestSupport

/// Compares the plans of random queries with scans, and counts them.
struct PlanComparison: CustomStringConvertible {
  private(set) var pairCount = 0
  private(set) var orderedCount = 0
  private(set) var exactCount = 0
  private(set) var matchCount = 0
  private(set) var fallbackCount = 0
  private(set) var groupedCount = 0
  private(set) var kinds: [String: Int] = [:]
  /// What to do with the description of a flaw.
  private let report: (String) -> Void

  init(report: @escaping (String) -> Void) { self.report = report }

  var description: String {
    let kinds = kinds.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
    return
      "\(pairCount) pairs, \(orderedCount) ordered, \(exactCount) exact, \(groupedCount) by groups, \(fallbackCount) fallbacks, "
      + "\(matchCount) with matches: \(kinds)"
  }

  /// Compares the plans of random queries with scans.
  mutating func run(seed: UInt64, batchCount: Int = 40, queryCount: Int = 25) throws {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<batchCount {
      let style = PlanGenerator.Style.allCases.randomElement(using: &random)!
      var generator = PlanGenerator(SeededGenerator(seed: random.next()), style)
      let documents = generator.documents(generator.pick([0, 3, 10, 20, 30]))
      let definitions = try generator.indexes()
      let model = try PlanModel(documents, definitions, maxKeyCount: generator.pick([1_000, 1_000, 6]))
      for _ in 0..<queryCount {
        var query = generator.query(like: definitions.map(\.index))
        try compare(query, model, seed, &random)
        try compareGroups(query.selector, model, seed, &random)
        guard query.limit != nil, let bookmark = try model.entries.find(query).bookmark else { continue }
        query.bookmark = bookmark
        try compare(query, model, seed, &random)
      }
    }
  }

  private mutating func compare(
    _ query: DocumentQuery, _ model: PlanModel, _ seed: UInt64, _ random: inout SeededGenerator
  ) throws {
    let names = model.indexes.map(\.index.name)
    for hint in [nil, nil, nil] + names {
      let lies = hint == nil && Bool.random(using: &random)
      var counter = PlanModel.Counter(model, lies ? random : nil)
      guard
        var planner = try? Planner(query, indexes: model.indexes, entryCount: model.entries.count, hint: hint)
      else { continue }
      _ = random.next()
      let choice = planner.plan(&counter)
      try compare(choice.plan, choice.explanation, query, model, seed)
      if let fallback = choice.fallback {
        fallbackCount += 1
        try compare(fallback.plan, fallback.explanation, query, model, seed)
      }
    }
  }

  /// Compares the groups of a random aggregation.
  private mutating func compareGroups(
    _ selector: Selector, _ model: PlanModel, _ seed: UInt64, _ random: inout SeededGenerator
  ) throws {
    let paths: [FieldPath] = ["a"] + model.indexes.flatMap(\.index.fields).map(\.path)
    func path() -> FieldPath { paths.randomElement(using: &random)! }
    let fields = (0..<Int.random(in: 0...2, using: &random)).map { _ in path() }
    let aggregates: [Aggregate] = [.count, .min(fields.first ?? path()), .max(path())]
    let aggregation = DocumentAggregation(
      by: fields, computing: Array(aggregates.prefix(Int.random(in: 0...3, using: &random))))
    var counter = PlanModel.Counter(model, Bool.random(using: &random) ? random : nil)
    _ = random.next()
    var planner = try Planner(
      DocumentQuery(selector), indexes: model.indexes, entryCount: model.entries.count, ignoresOrder: true,
      grouping: aggregation.decidingFields)
    let plan = planner.plan(&counter).plan
    if plan.groupFieldCount != nil { groupedCount += 1 }
    var scan = try DocumentAggregator(selector, aggregation)
    for document in model.entries { try scan.add(document) }
    let (groups, expected) = (try model.groups(plan, selector, aggregation), scan.result())
    if groups != expected {
      report("LARDER_SEED=\(seed): \(selector) \(aggregation) \(groups) instead of \(expected)\n\(plan)")
    }
  }

  private mutating func compare(
    _ plan: FindPlan, _ explanation: PlanExplanation, _ query: DocumentQuery, _ model: PlanModel, _ seed: UInt64
  ) throws {
    pairCount += 1
    if plan.isOrdered { orderedCount += 1 }
    if plan.isExact { exactCount += 1 }
    kinds[explanation.json["plan"]?["kind"]?.string ?? "", default: 0] += 1
    if let flaw = try model.flaw(plan, query) {
      let indexes = model.indexes.map { "\($0.index) \($0.multiFields) \($0.overflowCount)" }
      report("LARDER_SEED=\(seed): \(query) \(flaw)\n\(plan)\n\(explanation.json)\n\(indexes)")
    } else if try !model.entries.find(query.selector).isEmpty {
      matchCount += 1
    }
  }
}
