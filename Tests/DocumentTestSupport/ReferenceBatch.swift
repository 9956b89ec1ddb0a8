import Documents
import Foundation
import TestSupport

/// Documents and queries about them that the reference answers: the executable semantics in Python.
package struct ReferenceBatch: Sendable {
  /// What the reference says about a query.
  package struct Answer: Equatable {
    /// The keys of the documents, in order; nil if the query is malformed.
    package let ids: [String]?
    /// The documents' fields, if the query asks for fields.
    package let projections: [JSONValue]?

    package init(ids: [String]?, projections: [JSONValue]?) {
      self.ids = ids
      self.projections = projections
    }

    fileprivate init(_ json: JSONValue) {
      ids = json["ids"]?.array?.compactMap(\.string)
      projections = json["documents"]?.array
    }
  }

  package enum Failure: Error {
    case status(Int32)
    case count(Int)
  }

  package let documents: [Document]
  package let queries: [JSONValue]

  /// - Parameter documents: The documents, with keys, and perhaps with revisions. Text that is no JSON object is none.
  package init(_ documents: [Document], _ queries: [JSONValue]) {
    self.documents = documents
    self.queries = queries
  }

  /// The reference's input.
  private var line: String {
    let texts = documents.filter { (try? $0.value()) != nil }.map { document in
      let text = String(decoding: document.text, as: UTF8.self).replacing("\n", with: " ").replacing("\r", with: " ")
      return "[\(JSONValue.string(document.id!)),\(text)\(document.revision.map { ",\($0)" } ?? "")]"
    }
    return #"{"documents":[\#(texts.joined(separator: ","))],"queries":\#(JSONValue.array(queries))}"#
  }

  // MARK: The reference

  /// A Boolean value that indicates whether there is a `python3` to run the reference.
  package static let canBeAnswered =
    (try? answers(to: [ReferenceBatch([], [[:]])])) == [[Answer(ids: [], projections: nil)]]

  /// Returns the answers to the queries of each batch.
  package static func answers(to batches: [ReferenceBatch]) throws -> [[Answer]] {
    let folder = try TemporaryFolder()
    try folder.put("input", Array((batches.map(\.line).joined(separator: "\n") + "\n").utf8))
    let script = ProjectFiles.url("Tests/DocumentsTests/Selectors/reference_queries.py")
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", "-B", script.path, folder.file("input"), folder.file("output")]
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw Failure.status(process.terminationStatus) }
    let answers = try folder.contents("output").split(separator: UInt8(ascii: "\n")).map { line in
      Answer(try JSONValue(parsing: Array(line).span))
    }
    guard answers.count == batches.reduce(0, { $0 + $1.queries.count }) else { throw Failure.count(answers.count) }
    var rest = answers[...]
    return batches.map { batch in
      defer { rest = rest.dropFirst(batch.queries.count) }
      return Array(rest.prefix(batch.queries.count))
    }
  }
}
