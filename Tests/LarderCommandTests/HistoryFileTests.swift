import Foundation
import Testing

@testable import larder

@Suite struct `The console's history` {
  private func mode(_ path: String) throws -> Int {
    try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
  }

  @Test func `the console's history keeps typed lines, readable only by their owner`() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state/larder/history"
    var history = HistoryFile(path: path)
    #expect(history.load() == [])
    let typed = [
      "ping", "ping", " put items secret", "", "stores ", "stores", "put a 'ü'", "bad\u{1B}[2J", #"get a b\ "#,
    ]
    #expect(
      typed.map { history.add($0) } == ["ping", nil, nil, nil, "stores", nil, "put a 'ü'", nil, #"get a b\ "#])
    #expect(history.add(String(repeating: "x", count: HistoryFile.maxLineLength + 1)) == nil)
    #expect(try mode(path) == 0o600)
    #expect(try mode(folder.path + "/state/larder") == 0o700)
    var other = HistoryFile(path: path)
    #expect(other.load() == ["ping", "stores", "put a 'ü'", #"get a b\ "#])
    #expect(other.add(#"get a b\ "#) == nil)
  }

  @Test func `the console's history is limited, and ignores lines it couldn't have written`() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/history"
    let lines = (0..<5 * HistoryFile.maxLineCount).map { "count items-\($0)" }
    try Data((lines.joined(separator: "\n") + "\n\u{1B}]0;evil\u{7}\n\n").utf8 + [0xFF, 0x0A]).write(
      to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
    var history = HistoryFile(path: path)
    #expect(history.load() == lines.suffix(HistoryFile.maxLineCount))
    #expect(try mode(path) == 0o600)
    #expect(try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").count == HistoryFile.maxLineCount)
  }

  @Test func `the console's history works without a file if none can be created`() throws {
    for path in [nil, "/proc/nowhere/history", "/dev/null"] {
      var history = HistoryFile(path: path)
      #expect(history.load() == [])
      #expect(history.add("ping") == "ping")
      #expect(history.add("ping") == nil)
    }
  }
}
