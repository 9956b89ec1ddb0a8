import Documents
import Foundation
import TestSupport
import Testing

/// Compares queries with the reference in Python. The tests are skipped if there is no `python3`.
@Suite(.enabled(if: Reference.isInstalled)) struct `Queries and the reference` {
  private struct Batch {
    let documents: [Document]
    let queries: [JSONValue]
    /// The reference's input.
    let line: String

    init(_ generator: inout QueryGenerator) {
      let documents = generator.ids(40).map { Document(generator.text(), id: $0) }
      let queries = (0..<60).map { _ in generator.query() }
      self.documents = documents
      self.queries = queries
      let texts = documents.map { document in
        let text = String(decoding: document.text, as: UTF8.self).replacing("\n", with: " ").replacing("\r", with: " ")
        return "[\(JSONValue.string(document.id!)),\(text)]"
      }
      line = #"{"documents":[\#(texts.joined(separator: ","))],"queries":\#(JSONValue.array(queries))}"#
    }
  }

  /// For a thorough run, set `LARDER_SEEDS` to the number of seeds. Each has 24,000 pairs of a query and a document.
  @Test func `agree`() throws {
    for seed in SeededGenerator.seeds(1) { try compare(seed: seed) }
  }

  private func compare(seed: UInt64) throws {
    var generator = QueryGenerator(SeededGenerator(seed: seed))
    let batches = (0..<10).map { _ in Batch(&generator) }
    let answers = try Reference.answers(batches.map(\.line))
    var position = 0
    var matchCount = 0
    for batch in batches {
      for query in batch.queries {
        try #require(position < answers.count)
        let expected = answers[position]
        position += 1
        let actual = Self.answer(query, batch.documents)
        guard actual != expected else {
          if case .array(let ids)? = expected["ids"], !ids.isEmpty { matchCount += 1 }
          continue
        }
        Issue.record("LARDER_SEED=\(seed): \(query): \(Self.difference(actual, expected, batch.documents))")
      }
    }
    #expect(position == answers.count)
    #expect(matchCount > 90, "LARDER_SEED=\(seed)")
  }

  private static func answer(_ query: JSONValue, _ documents: [Document]) -> JSONValue {
    do {
      let result = try documents.find(DocumentQuery(query)).documents
      let isProjection = query["fields"] != nil
      return [
        "ids": .array(result.map { .string($0.id!) }),
        "documents": isProjection ? .array(try result.map { try $0.value() }) : nil,
      ]
    } catch { return ["error": true] }
  }

  /// The answers, and the documents that only one of them has.
  private static func difference(_ actual: JSONValue, _ expected: JSONValue, _ documents: [Document]) -> String {
    func ids(_ answer: JSONValue) -> Set<String> {
      guard case .array(let ids)? = answer["ids"] else { return [] }
      return Set(ids.compactMap(\.string))
    }
    let differing = ids(actual).symmetricDifference(ids(expected))
    let texts = documents.filter { differing.contains($0.id!) }.map { String(decoding: $0.text, as: UTF8.self) }
    return "\(actual) instead of \(expected) \(texts.joined(separator: "\n"))"
  }
}

/// The reference, as a subprocess.
private enum Reference {
  static let isInstalled = (try? answers([#"{"documents":[],"queries":[{}]}"#])) == [["ids": [], "documents": nil]]

  static func answers(_ batches: [String]) throws -> [JSONValue] {
    let folder = try TemporaryFolder()
    try folder.put("input", Array((batches.joined(separator: "\n") + "\n").utf8))
    let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("Selectors/reference_queries.py")
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", "-B", script.path, folder.file("input"), folder.file("output")]
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0)
    return try folder.contents("output").split(separator: UInt8(ascii: "\n")).map { line in
      try JSONValue(parsing: Array(line).span)
    }
  }
}
