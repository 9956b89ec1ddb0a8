import Foundation
import Testing

@testable import larder_bench

/// Every part of `larder-bench documents` with few documents and short turns.
@Suite(.serialized, .timeLimit(.minutes(2))) struct DocumentsTests {
  @Test func `All works on indexes are measured, beside SQLite where it does the same`() throws {
    let report = try measure()
    let lines = report.markdown.split(separator: "\n")
    let rows = lines.filter { $0.hasPrefix("| ") }
    // Every goal has a verdict.
    for row in rows where row.contains("≤ ") || row.contains("≥ ") {
      #expect(row.hasSuffix("| yes |") || row.hasSuffix("| **no** |"), "\(row)")
    }
    for name in [
      IndexWork.find(documents: 1_000), .scan(documents: 1_000), .sorted(skip: 0, documents: 1_000),
      .sorted(skip: 500, documents: 1_000), .insert, .replace,
    ].map(\.name) {
      #expect(rows.contains { $0.hasPrefix("| \(name): ") && $0.contains("SQLite: ") }, "\(name)")
    }
    for neighbor in [IndexWork.Neighbor.finds, .largePuts] {
      let name = IndexWork.get(neighbor, documents: 2_000).name
      #expect(rows.contains { $0.hasPrefix("| \(name): p99") }, "\(name)")
    }
    #expect(rows.contains { $0.hasPrefix("| 1,000 | 3 | 0.8 |") })
    let memory = IndexWork.memory(fields: IndexWork.seedFields, documents: 2_000).name
    #expect(rows.contains { $0.hasPrefix("| \(memory)") })
  }

  @Test func `The figures of indexes are in the JSON result`() throws {
    let report = try measure()
    let text = try JSON.encode(report.result)
    let result = try JSONDecoder().decode(BenchResult.self, from: Data(text.utf8))
    expectEqual(result, report)
    let figures = result.figures.all
    let quantities = figures.map(\.quantity)
    for quantity in [
      Quantity.buildTime, .memory, .firstGet, .complete, .completeAfterOpening, .findTime, .scanTime, .scanCPU,
      .pipelinedCPU, .singleCPU, .putTime, .p50, .p99,
    ] {
      #expect(quantities.contains(quantity), "\(quantity)")
    }
    for figure in figures { #expect(figure.lowest > 0 && figure.lowest <= figure.highest, "\(figure.name)") }
  }

  @Test func `Tables of both contenders have documents in the same order`() throws {
    var samples = DocumentSamples(seed: 3)
    let documents = NumberedDocument.all(samples.persons(500))
    let tables = try DocumentTables.make()
    for table in tables {
      try table.put(Array(documents.prefix(300)))
      try table.buildIndex(["pet", "age"])
      try table.put(Array(documents.suffix(250)))
    }
    try DocumentTables.check(tables, ["pet", "age"], count: 500)
    // A document that only one of them has is noticed.
    try tables[0].put([NumberedDocument(7, Array(#"{"pet":"ant","age":1}"#.utf8))])
    if tables.count > 1 {
      #expect(throws: BenchError.self) { try DocumentTables.check(tables, ["pet", "age"], count: 500) }
    }
  }

  private func measure() throws -> BenchReport {
    var plan = DocumentsPlan()
    (plan.repeats, plan.longRepeats) = (1, 1)
    (plan.orders, plan.persons, plan.manyPersons) = (10, 1_000, 2_000)
    plan.indexedPersons = [100, 1_000]
    plan.turn = .milliseconds(20)
    return try DocumentsBench(plan, BenchRunner(plan)).run(postgres: nil, isOnlyPostgres: false)
  }
}
