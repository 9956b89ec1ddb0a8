import DocumentTestSupport
import Documents
import TestSupport
import Testing

/// Compares queries with the reference in Python. The tests are skipped if there is no `python3`.
@Suite(.enabled(if: ReferenceBatch.canBeAnswered)) struct `Queries and the reference` {
  /// For a thorough run, set `LARDER_SEEDS` to the number of seeds. Each has 24,000 pairs of a query and a document.
  @Test func `random queries have the same results as in the reference`() throws {
    for seed in SeededGenerator.seeds(1) { try compare(seed: seed) }
  }

  private func compare(seed: UInt64) throws {
    var generator = QueryGenerator(SeededGenerator(seed: seed))
    let batches = (0..<10).map { _ in
      let documents = generator.ids(40).map { Document(generator.text(), id: $0) }
      return ReferenceBatch(documents, (0..<60).map { _ in generator.query() })
    }
    var matchCount = 0
    for (batch, answers) in zip(batches, try ReferenceBatch.answers(to: batches)) {
      for (query, expected) in zip(batch.queries, answers) {
        let actual = Self.answer(query, batch.documents)
        guard actual != expected else {
          if expected.ids?.isEmpty == false { matchCount += 1 }
          continue
        }
        Issue.record("LARDER_SEED=\(seed): \(query): \(Self.difference(actual, expected, batch.documents))")
      }
    }
    #expect(matchCount > 90, "LARDER_SEED=\(seed)")
  }

  private static func answer(_ query: JSONValue, _ documents: [Document]) -> ReferenceBatch.Answer {
    do {
      let result = try documents.find(DocumentQuery(query)).documents
      return ReferenceBatch.Answer(
        ids: result.map { $0.id! }, projections: query["fields"] == nil ? nil : try result.map { try $0.value() })
    } catch { return ReferenceBatch.Answer(ids: nil, projections: nil) }
  }

  /// The answers, and the documents that only one of them has.
  private static func difference(
    _ actual: ReferenceBatch.Answer, _ expected: ReferenceBatch.Answer, _ documents: [Document]
  ) -> String {
    let differing = Set(actual.ids ?? []).symmetricDifference(expected.ids ?? [])
    let texts = documents.filter { differing.contains($0.id!) }.map { String(decoding: $0.text, as: UTF8.self) }
    return "\(actual) instead of \(expected) \(texts.joined(separator: "\n"))"
  }
}
