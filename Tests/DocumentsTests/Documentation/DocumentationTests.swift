import Foundation
import TestSupport
import Testing

@testable import Documents

/// The documentation: its code is run by `DocumentationSnippets`, and its tables are parsed and tried out here.
@Suite struct DocumentationTests {
  private let catalog = DocumentationCatalog(of: "Documents")

  private func page(_ name: String) throws -> DocumentationPage { try catalog.page(name) }

  /// Returns the first code of a cell.
  private func code(_ cell: String) throws -> String { try #require(DocumentationPage.code(cell).first, "\(cell)") }

  /// Returns the description of an error.
  private func message(_ body: () throws -> Void) -> String? {
    do { try body() } catch { return "\(error)" }
    return nil
  }

  // MARK: Pages

  @Test func `every snippet of the documentation is compiled and run`() throws {
    #expect(try catalog.pages().count == 6)
    #expect(try catalog.missingSnippets(in: ["Tests/DocumentsTests/Documentation"]) == [])
    #expect(try catalog.deadLinks() == [])
  }

  @Test func `the overview lists every public type`() throws {
    let types = try catalog.publicTypes()
    #expect(types.count >= 27)
    for type in types { #expect(type.isListed, "\(type.name)") }
  }

  @Test func `array elements are projected as documented`() throws {
    let dogs = Document(#"{"pets": ["dog"]}"#)
    let projection = try [dogs].find(DocumentQuery(fields: ["pets.0"])).documents[0].value()
    #expect(try page("GettingStarted").text.contains("(`pets.0`) is returned as a member: `\(projection)`"))
  }

  // MARK: Selectors

  /// Returns the ids of the documents on the page that match a selector, as the page writes them.
  private func ids(_ selector: String, in page: DocumentationPage) throws -> String {
    let documents = try #require(page.snippets("json").first).map { Document($0) }
    #expect(documents.count == 4)
    let found = try documents.find(Selector(parsing: selector)).map { try $0.value()["_id"]?.string ?? "" }
    return found.isEmpty ? "none" : found.joined(separator: ", ")
  }

  @Test func `the examples of all operators match the documented documents`() throws {
    let page = try page("Selectors")
    let rows = page.rows("Operator")
    #expect(Set(try rows.map { try code($0[0]) }) == Set(SelectorOperator.allCases.map(\.rawValue)))
    for row in rows + page.rows("Operand") {
      let example = try code(row[2])
      #expect(example.contains(try code(row[0])), "\(example)")
      guard let expected = DocumentationPage.code(row[3]).first else {
        #expect(try ids(example, in: page) == row[3], "\(example)")
        continue
      }
      let error = #expect(throws: SelectorError.self, "\(example)") { try ids(example, in: page) }
      #expect(error?.code.rawValue == expected, "\(example)")
    }
  }

  @Test func `all operands of expressions have examples`() throws {
    let operands = try page("Selectors").rows("Operand").map { try code($0[0]) }
    #expect(
      Set(operands)
        == Set(
          ["$field", "$literal"] + SelectorTree.Expression.Operator.allCases.map(\.rawValue)
            + SelectorTree.Expression.Aggregate.allCases.map(\.rawValue)))
  }

  @Test func `the other example selectors match the documented documents`() throws {
    let page = try page("Selectors")
    let rows = page.rows("Selector")
    #expect(rows.count >= 14)
    for row in rows { #expect(try ids(code(row[0]), in: page) == row[1], "\(row[0])") }
  }

  @Test func `the examples of regular expressions match and don't match`() throws {
    let rows = try page("Selectors").rows("Syntax")
    #expect(rows.count >= 9)
    for row in rows {
      let expression = try RegularExpression(code(row[2]))
      #expect(expression.matches(try code(row[3])), "\(row)")
      #expect(!expression.matches(try code(row[4])), "\(row)")
    }
  }

  @Test func `the errors of selectors have the documented codes and messages`() throws {
    let rows = try page("Selectors").rows("Code")
    #expect(try rows.map { try code($0[0]) }.sorted() == SelectorError.Code.allCases.map(\.rawValue).sorted())
    for row in rows where row[2] != "–" {
      let (expected, example) = (try code(row[0]), try code(row[2]))
      let isQuery = ["badSort", "badFields", "badSkipOrLimit", "badBookmark"].contains(expected)
      let error = #expect(throws: SelectorError.self, "\(example)") {
        if expected == "badAggregation" { _ = try DocumentAggregation(parsing: example) }
        let query = try isQuery ? DocumentQuery(parsing: example) : DocumentQuery(Selector(parsing: example))
        _ = try [Document]().find(query)
      }
      #expect(error?.code.rawValue == expected, "\(example)")
      #expect(try error?.description == code(row[3]), "\(example)")
    }
  }

  // MARK: JSON

  @Test func `JSON text is read and refused as documented`() throws {
    let page = try page("JSONText")
    let rows = page.rows("Text") + page.rows("Number")
    #expect(rows.count >= 27)
    for row in rows {
      let (text, expected) = (try code(row[0]), try code(row[1]))
      var value: JSONValue?
      let error = message { value = try JSONValue(parsing: text) }
      #expect(value?.description ?? error == expected, "\(text)")
    }
  }

  @Test func `the documentation lists how each file that the standard leaves open is read`() throws {
    var rest = Set(
      try FileManager.default.contentsOfDirectory(
        atPath: ProjectFiles.url("Tests/DocumentsTests/JSON/JSONTestSuite/test_parsing").path
      ).filter { $0.hasPrefix("i_") })
    for row in try page("JSONText").rows("Files") {
      let expected = DocumentationPage.code(row[2]).first
      for pattern in DocumentationPage.code(row[0]) {
        let files = rest.filter {
          pattern.hasSuffix("*") ? $0.hasPrefix(pattern.dropLast()) : $0 == "\(pattern).json"
        }
        #expect(!files.isEmpty, "\(pattern)")
        rest.subtract(files)
        for file in files {
          let url = ProjectFiles.url("Tests/DocumentsTests/JSON/JSONTestSuite/test_parsing/\(file)")
          let text = [UInt8](try Data(contentsOf: url))
          var error: JSONError?
          do { try JSON.validate(text.span) } catch let failure { error = failure }
          #expect(error?.expected.rawValue == expected, "\(file)")
        }
      }
    }
    #expect(rest.isEmpty)
  }

  @Test func `the values on the page are in the total order`() throws {
    let text = try #require(try page("JSONText").snippets("json").first).joined()
    let values = try #require(try JSONValue(parsing: text).array)
    #expect(values.count >= 20)
    for (value, next) in zip(values, values.dropFirst()) { #expect(value < next) }
  }

  // MARK: Updates

  private func updated(_ document: String, _ update: String) throws -> String {
    let document = Array(document.utf8)
    return String(decoding: try DocumentUpdate(parsing: update).apply(to: document.span), as: UTF8.self)
  }

  @Test func `the examples of updates have the documented results`() throws {
    let rows = try page("Updates").rows("Operator")
    #expect(Set(rows.map { $0[0] }) == ["merge patch", "`$set`", "`$unset`", "`$inc`", "`$push`"])
    for row in rows { #expect(try updated(code(row[3]), code(row[2])) == code(row[4]), "\(row)") }
  }

  @Test func `the errors of updates have the documented codes and messages`() throws {
    let rows = try page("Updates").rows("Code")
    #expect(try rows.map { try code($0[0]) } == DocumentUpdateError.Code.allCases.map(\.rawValue))
    for row in rows where row[2] != "–" {
      let error = #expect(throws: DocumentUpdateError.self, "\(row)") {
        let update = try DocumentUpdate(parsing: code(row[2]))
        // An update that is wrong by itself never meets a document.
        let document = Array(try code(row[3]).utf8)
        _ = try update.apply(to: document.span)
      }
      #expect(error?.code.rawValue == (try code(row[0])), "\(row)")
      #expect(error?.description == (try code(row[4])), "\(row)")
    }
  }

  // MARK: Limits

  /// Returns the numbers in a table of limits, such as `10,000` and `1 MiB`.
  private func limits(_ name: String) throws -> [Int] {
    try page(name).rows("What").map { row in
      let words = row[1].replacing(",", with: "").split(separator: " ")
      let unit = ["KiB": 1 << 10, "MiB": 1 << 20]
      return try #require(Int(words[0])) * (words.count == 1 ? 1 : #require(unit[String(words[1])]))
    }
  }

  @Test func `the limits are those of the code`() throws {
    #expect(
      try limits("Selectors") == [
        SelectorParser.maxByteCount, SelectorParser.maxDepth, SelectorParser.maxNodeCount,
        SelectorParser.maxOperandCount, SelectorParser.maxRegularExpressionCount, SelectorParser.maxInstructionCount,
        LikePattern.maxByteCount, SelectorParser.maxNameCount, SelectorParser.maxPathByteCount, SortField.maxCount,
        FieldPath.maxFieldCount,
      ])
    #expect(
      try limits("Updates") == [
        UpdateParser.maxByteCount, UpdateParser.maxChangeCount, UpdateParser.maxPathLength, JSONLimits.deepest,
      ])
    let nesting = "Arrays and objects are nested up to \(JSONLimits.deepest) levels deep."
    #expect(try page("JSONText").text.contains(nesting))
  }
}
