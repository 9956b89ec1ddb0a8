import TestSupport
import Testing

/// The code in the documentation is compiled and run: in functions by the snippets in this directory, and as top-level
/// code by the executables `TopLevelSnippets` and `TopLevelFutures`. This suite compares the lines, regardless of
/// indentation.
@Suite struct CatalogueTests {
  private static func pages() throws -> [DocumentationPage] {
    try ["Sources/DataSources/DataSources.docc", "Sources/DataSourceFutures/DataSourceFutures.docc"].flatMap {
      try DocumentationPage.pages(of: $0)
    }
  }

  @Test func `every snippet of the documentation is compiled and run, also as top-level code`() throws {
    let functions = try DocumentationPage.sources(in: "Tests/DataSourcesTests/Documentation")
    let topLevel = try ["TopLevelSnippets", "TopLevelFutures"].map {
      try DocumentationPage.source("Tests/\($0)/main.swift")
    }
    let pages = try Self.pages()
    #expect(pages.count == 8)
    for page in pages {
      let snippets = page.snippets()
      #expect(!snippets.isEmpty, "\(page.name)")
      for snippet in snippets {
        let text = DocumentationPage.text(snippet)
        #expect(functions.contains { $0.contains(text) }, "\(page.name): \(snippet.first ?? "")")
        #expect(topLevel.contains { $0.contains(text) }, "\(page.name): \(snippet.first ?? "")")
      }
    }
  }

  @Test(arguments: ["let client = ", "let books = CacheRepository", "let server = "])
  func `the README's snippets are run as top-level code`(_ beginning: String) throws {
    let readme = try DocumentationPage("README.md").snippets()
    let snippet = try #require(readme.first { $0.first?.hasPrefix(beginning) == true })
    // The address of the server differs.
    let shown = beginning == "let client = " ? Array(snippet.dropFirst()) : snippet
    let topLevel = try DocumentationPage.source("Tests/TopLevelSnippets/main.swift")
    #expect(topLevel.contains(DocumentationPage.text(shown)))
  }

  @Test func `linked pages exist`() throws {
    for page in try Self.pages() { #expect(page.deadLinks.isEmpty, "\(page.name)") }
  }
}
