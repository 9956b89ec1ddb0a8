import Foundation

/// The documentation catalog of a module.
package struct DocumentationCatalog {
  private let module: String
  private let path: String

  package init(of module: String) {
    self.module = module
    path = "Sources/\(module)/\(module).docc"
  }

  /// Returns a page.
  ///
  /// - Parameter name: The name of the file, without `.md`.
  package func page(_ name: String) throws -> DocumentationPage { try DocumentationPage("\(path)/\(name).md") }

  /// Returns all pages, in the order of their names.
  package func pages() throws -> [DocumentationPage] { try DocumentationPage.pages(of: path) }

  /// Returns what pages lack: pages without a snippet, and the first lines of snippets that aren't in the sources that
  /// run them.
  ///
  /// Lines that are comments may be missing in the sources: what a line prints can be longer than a line of code.
  /// - Parameter folders: The folders of the sources.
  package func missingSnippets(in folders: [String]) throws -> [String] {
    let sources = try folders.flatMap { try DocumentationPage.sources(in: $0) }
    return try pages().flatMap { page in
      let snippets = page.snippets()
      guard !snippets.isEmpty else { return ["\(page.name) has no snippet"] }
      return snippets.compactMap { snippet in
        let text = DocumentationPage.text(snippet)
        let code = DocumentationPage.text(snippet.filter { !$0.hasPrefix("// ") })
        let isRun = sources.contains { $0.contains(text) || $0.contains(code) }
        return isRun ? nil : "\(page.name): \(snippet.first ?? "")"
      }
    }
  }

  /// Returns the links to pages or headings that don't exist.
  package func deadLinks() throws -> [String] {
    try pages().flatMap { page in page.deadLinks.map { "\(page.name): \($0)" } }
  }

  /// Returns the module's public types, and whether the overview lists each.
  package func publicTypes() throws -> [(name: String, isListed: Bool)] {
    let overview = try page(module).text
    let folder = ProjectFiles.url("Sources/\(module)")
    return try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }.flatMap {
      try String(contentsOf: folder.appending(path: $0), encoding: .utf8)
        .matches(of: /\npublic (?:struct|enum|protocol|final class|actor) (\w+)/)
        .map { (String($0.1), overview.contains("- ``\($0.1)``\n")) }
    }
  }
}
