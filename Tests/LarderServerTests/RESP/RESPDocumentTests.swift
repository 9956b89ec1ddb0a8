import Foundation
import Testing

@testable import LarderServer

@Suite struct RESPDocumentTests {
  private static let path = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../../../Protocol/resp.md").standardized

  /// The table that the descriptors of the commands make.
  private static var table: String {
    RESPCommand.allCases.filter { $0 != .unknown }.sorted { $0.name < $1.name }.map { command in
      let descriptor = command.descriptor
      let support = descriptor.difference == nil ? "complete" : "partly"
      let cells = [
        command.name.uppercased(), descriptor.since, descriptor.complexity, support, descriptor.difference ?? "",
      ]
      return "| \(cells.joined(separator: " | ")) |\n"
    }.joined()
  }

  @Test func `the table of commands in the document is that of the server`() throws {
    let document = try String(contentsOf: Self.path, encoding: .utf8)
    let head = try #require(document.range(of: "|---|---|---|---|---|\n"))
    if ProcessInfo.processInfo.environment["LARDER_WRITE_VECTORS"] != nil {
      try (document[..<head.upperBound] + Self.table).write(to: Self.path, atomically: true, encoding: .utf8)
      return
    }
    #expect(document[head.upperBound...] == Self.table)
  }
}
