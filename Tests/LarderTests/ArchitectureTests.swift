import Foundation
import Testing

/// Checks that ARCHITECTURE.md, the map of the code, names only what exists.
@Suite struct ArchitectureTests {
  private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
    .standardizedFileURL
  private let text: String

  init() throws {
    text = try String(contentsOf: root.appendingPathComponent("ARCHITECTURE.md"), encoding: .utf8)
  }

  @Test func `every path that ARCHITECTURE.md names exists`() throws {
    let folders = try FileManager.default.contentsOfDirectory(atPath: root.path)
    let paths = spans.filter { $0.contains("/") && folders.contains(String($0.prefix { $0 != "/" })) }
    #expect(paths.count > 80)
    for path in paths { #expect(exists(path), "ARCHITECTURE.md names \(path)") }
  }

  @Test func `every link in ARCHITECTURE.md leads to a file`() {
    let links = text.matches(of: #/\]\(([^)#]+)[^)]*\)/#).map { String($0.output.1) }
    #expect(links.count >= 2)
    for link in links { #expect(exists(link), "ARCHITECTURE.md links to \(link)") }
  }

  @Test func `ARCHITECTURE.md names files by their whole path`() {
    let bare = spans.filter { $0.hasSuffix(".swift") && !$0.contains("/") }
    #expect(bare.isEmpty, "ARCHITECTURE.md names \(bare) without a folder")
  }

  @Test func `ARCHITECTURE.md names every module`() throws {
    let modules = try FileManager.default.contentsOfDirectory(atPath: root.appendingPathComponent("Sources").path)
    for module in modules { #expect(spans.contains("Sources/\(module)"), "ARCHITECTURE.md lacks Sources/\(module)") }
  }

  /// The text in backticks.
  private var spans: [String] { text.matches(of: #/`([^`\n]+)`/#).map { String($0.output.1) } }

  private func exists(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: root.appendingPathComponent(path).path)
  }
}
