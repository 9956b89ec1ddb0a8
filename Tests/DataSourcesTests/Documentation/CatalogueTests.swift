import Foundation
import Testing

/// The code in the documentation is compiled and run: in functions by the snippets in this directory, and as top-level
/// code by the executables `TopLevelSnippets` and `TopLevelFutures`. This suite compares the lines, regardless of
/// indentation.
@Suite struct CatalogueTests {
  private static let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
  private static let package = here.appendingPathComponent("../../..").standardized
  private static let catalogues = [
    "Sources/DataSources/DataSources.docc", "Sources/DataSourceFutures/DataSourceFutures.docc",
  ].map(package.appendingPathComponent)

  private static func files(in directory: URL, _ pathExtension: String) throws -> [URL] {
    try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == pathExtension }.sorted { $0.path < $1.path }
  }

  private static func pages() throws -> [URL] { try catalogues.flatMap { try files(in: $0, "md") } }

  private static func lines(of file: URL) throws -> [String] {
    try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.trimmingCharacters(in: .whitespaces) }
  }

  /// Returns the lines of a page's blocks of Swift code.
  private static func snippets(of page: URL) throws -> [[String]] {
    var (snippets, open) = ([[String]](), [String]?.none)
    for line in try lines(of: page) {
      if line == "```swift" {
        open = []
      } else if line == "```", let snippet = open {
        snippets.append(snippet)
        open = nil
      } else {
        open?.append(line)
      }
    }
    return snippets
  }

  private static func text(_ lines: [String]) -> String { "\n" + lines.joined(separator: "\n") + "\n" }

  @Test func `every snippet of the documentation is compiled and run, also as top-level code`() throws {
    let functions = try Self.files(in: Self.here, "swift").map { Self.text(try Self.lines(of: $0)) }
    let topLevel = try ["TopLevelSnippets", "TopLevelFutures"].map {
      Self.text(try Self.lines(of: Self.package.appendingPathComponent("Tests/\($0)/main.swift")))
    }
    let pages = try Self.pages()
    #expect(pages.count == 7)
    for page in pages {
      let snippets = try Self.snippets(of: page)
      #expect(!snippets.isEmpty, "\(page.lastPathComponent)")
      for snippet in snippets {
        let text = Self.text(snippet)
        #expect(functions.contains { $0.contains(text) }, "\(page.lastPathComponent): \(snippet.first ?? "")")
        #expect(topLevel.contains { $0.contains(text) }, "\(page.lastPathComponent): \(snippet.first ?? "")")
      }
    }
  }

  @Test(arguments: ["let client = ", "let books = CacheRepository", "let server = "])
  func `the README's snippets are run as top-level code`(_ beginning: String) throws {
    let readme = try Self.snippets(of: Self.package.appendingPathComponent("README.md"))
    let snippet = try #require(readme.first { $0.first?.hasPrefix(beginning) == true })
    let lines = try Self.lines(of: Self.package.appendingPathComponent("Tests/TopLevelSnippets/main.swift"))
    // The address of the server differs.
    let shown = beginning == "let client = " ? Array(snippet.dropFirst()) : snippet
    #expect(Self.text(lines).contains(Self.text(shown)))
  }

  @Test func `linked pages exist`() throws {
    for page in try Self.pages() {
      for link in try String(contentsOf: page, encoding: .utf8).matches(of: /<doc:(\w+)>/) {
        let path = page.deletingLastPathComponent().appendingPathComponent("\(link.1).md").path
        #expect(FileManager.default.fileExists(atPath: path), "\(link.1)")
      }
    }
  }
}
