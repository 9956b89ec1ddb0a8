import Foundation
import Testing

/// The catalogue's Swift is what is compiled in this folder, line by line but for its indentation.
@Suite struct CatalogueTests {
  static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
  static let catalogue = tests.appendingPathComponent("../../../Sources/DataSources/DataSources.docc").standardized

  static func files(in folder: URL, _ ending: String) throws -> [URL] {
    try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == ending }.sorted { $0.path < $1.path }
  }

  static func lines(of file: URL) throws -> [String] {
    try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.trimmingCharacters(in: .whitespaces) }
  }

  /// What stands between the marks of Swift code.
  static func snippets(of page: URL) throws -> [[String]] {
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

  @Test func `every snippet of the catalogue is compiled`() throws {
    let sources = try Self.files(in: Self.tests, "swift").map {
      "\n" + (try Self.lines(of: $0).joined(separator: "\n")) + "\n"
    }
    let pages = try Self.files(in: Self.catalogue, "md")
    #expect(pages.count == 6)
    for page in pages {
      let snippets = try Self.snippets(of: page)
      #expect(!snippets.isEmpty, "\(page.lastPathComponent)")
      for snippet in snippets {
        let text = "\n" + snippet.joined(separator: "\n") + "\n"
        #expect(sources.contains { $0.contains(text) }, "\(page.lastPathComponent): \(snippet.first ?? "")")
      }
    }
  }

  @Test func `pages that are named are there`() throws {
    for page in try Self.files(in: Self.catalogue, "md") {
      for link in try String(contentsOf: page, encoding: .utf8).matches(of: /<doc:(\w+)>/) {
        let path = Self.catalogue.appendingPathComponent("\(link.1).md").path
        #expect(FileManager.default.fileExists(atPath: path), "\(link.1)")
      }
    }
  }
}
