import Foundation
import Platform
import TestSupport
import Testing

struct RotatingFileTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.file("audit.json")
  }

  private func lines(_ name: String) -> [String] {
    let text = (try? String(contentsOfFile: folder.file(name), encoding: .utf8)) ?? ""
    return text.split(separator: "\n").map(String.init)
  }

  @Test func `the files have the latest lines, in order, and a maximum size`() throws {
    var file = RotatingFile(path, maxSize: 100)
    for number in 0..<1_000 { try file.append(Array("line \(number)\n".utf8)) }
    let names = ["audit.json.4", "audit.json.3", "audit.json.2", "audit.json.1", "audit.json"]
    #expect(try folder.names() == names.sorted())
    let all = names.flatMap(lines)
    #expect(all == (1_000 - all.count..<1_000).map { "line \($0)" } && all.count > 40)
    for name in names {
      let size = try FileManager.default.attributesOfItem(atPath: folder.file(name))[.size] as? Int
      #expect(try #require(size) <= 100)
    }
  }

  @Test func `it goes on with a file that is there, also after another program has renamed it`() throws {
    var file = RotatingFile(path, maxSize: 100)
    try file.append(Array("a\n".utf8))
    file = RotatingFile(path, maxSize: 100)
    try file.append(Array("b\n".utf8))
    try FileManager.default.moveItem(atPath: path, toPath: path + ".old")
    file.close()
    try file.append(Array("c\n".utf8))
    #expect(lines("audit.json.old") == ["a", "b"] && lines("audit.json") == ["c"])
  }

  @Test func `it writes to nothing but regular files, and waits for nobody`() throws {
    let target = folder.file("target")
    let others: [(String, () throws -> Void)] = [
      ("symbolic link", { try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: target) }),
      ("not a regular file", { #expect(unsafe mkfifo(path, 0o600) == 0) }),
      (
        "not a regular file",
        { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false) }
      ),
    ]
    for (reason, make) in others {
      try make()
      var file = RotatingFile(path, maxSize: 100)
      let complaint = RotatingFile.complaint(about: path) ?? ""
      #expect(complaint.contains(reason))
      let error = #expect(throws: RotatingFile.WriteError.self) { try file.append([0]) }
      #expect(error?.description == complaint)
      try FileManager.default.removeItem(atPath: path)
    }
    #expect(!FileManager.default.fileExists(atPath: target) && RotatingFile.complaint(about: path) == nil)
    #expect(RotatingFile.complaint(about: "/nowhere/audit.json") == "/nowhere: No such file or directory")
  }
}
