import Foundation

/// A page of documentation in Markdown, whose code and tables tests run and check.
package struct DocumentationPage {
  /// The name of the file, such as `GettingStarted.md`.
  package let name: String
  private let folder: URL
  /// The lines, regardless of indentation.
  private let lines: [String]

  /// Reads a page.
  ///
  /// - Parameter path: The path from the project's root.
  package init(_ path: String) throws { try self.init(file: ProjectFiles.url(path)) }

  private init(file: URL) throws {
    name = file.lastPathComponent
    folder = file.deletingLastPathComponent()
    lines = try Self.lines(of: file)
  }

  /// Reads the pages of a catalog, in the order of their names.
  ///
  /// - Parameter path: The path from the project's root.
  package static func pages(of path: String) throws -> [DocumentationPage] {
    try files(in: path, "md").map(DocumentationPage.init(file:))
  }

  /// The whole text.
  package var text: String { Self.text(lines) }

  // MARK: Code

  /// Returns the lines of the page's blocks of code.
  ///
  /// - Parameter language: The language that the blocks begin with.
  package func snippets(_ language: String = "swift") -> [[String]] {
    var (snippets, open) = ([[String]](), [String]?.none)
    for line in lines {
      if line == "```\(language)" {
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

  /// What the page says that its Swift code prints: the comments behind calls of `print` and on the lines that follow.
  package var statedOutput: [String] {
    snippets().flatMap { snippet in
      var (output, follows) = ([String](), false)
      for line in snippet {
        if follows, line.hasPrefix("// ") {
          output.append(String(line.dropFirst(3)))
        } else if line.contains("print(") {
          follows = true
          if let comment = line.components(separatedBy: "  // ").dropFirst().last { output.append(comment) }
        } else {
          follows = false
        }
      }
      return output
    }
  }

  /// Returns a text of lines that can be searched for a snippet's text.
  package static func text(_ lines: [String]) -> String { "\n" + lines.joined(separator: "\n") + "\n" }

  /// Returns the text of a source file, regardless of indentation.
  ///
  /// - Parameter path: The path from the project's root.
  package static func source(_ path: String) throws -> String { text(try lines(of: ProjectFiles.url(path))) }

  /// Returns the texts of the Swift files of a folder, regardless of indentation.
  ///
  /// - Parameter path: The path from the project's root.
  package static func sources(in path: String) throws -> [String] {
    try files(in: path, "swift").map { text(try lines(of: $0)) }
  }

  // MARK: Tables

  /// Returns the rows of all tables whose first column has a title. In cells, `\|` is a bar.
  package func rows(_ title: String) -> [[String]] {
    var (rows, isOpen) = ([[String]](), false)
    for line in lines {
      if isOpen, line.hasPrefix("|") {
        rows.append(Self.cells(line))
      } else {
        isOpen = line.hasPrefix("| \(title) |")
      }
    }
    // Beneath its header, a table has a row of dashes.
    return rows.filter { !$0[0].hasPrefix("---") }
  }

  private static func cells(_ row: String) -> [String] {
    row.replacing(#"\|"#, with: "\0").split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
      .map { $0.replacing("\0", with: "|").trimmingCharacters(in: .whitespaces) }
  }

  /// Returns the texts in backticks in a cell.
  package static func code(_ cell: String) -> [String] {
    cell.split(separator: "`", omittingEmptySubsequences: false).enumerated().compactMap { index, part in
      index.isMultiple(of: 2) ? nil : String(part)
    }
  }

  // MARK: Links

  /// The links to pages or headings that don't exist.
  package var deadLinks: [String] {
    text.matches(of: /doc:(\w+)(?:#([\w-]+))?/).compactMap { link in
      guard let page = try? DocumentationPage(file: folder.appending(path: "\(link.1).md")) else {
        return String(link.0)
      }
      guard let heading = link.2 else { return nil }
      let title = heading.replacing("-", with: " ")
      return page.lines.contains { $0.hasPrefix("#") && $0.hasSuffix("# \(title)") } ? nil : String(link.0)
    }
  }

  // MARK: Files

  private static func files(in path: String, _ pathExtension: String) throws -> [URL] {
    try FileManager.default.contentsOfDirectory(at: ProjectFiles.url(path), includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == pathExtension }.sorted { $0.path < $1.path }
  }

  private static func lines(of file: URL) throws -> [String] {
    try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.trimmingCharacters(in: .whitespaces) }
  }
}
