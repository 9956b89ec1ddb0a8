import Foundation
import Testing

@testable import DataSources

@Suite struct FolderTests {
  let directory: TemporaryDirectory
  let folder: Folder

  init() throws {
    directory = try TemporaryDirectory()
    folder = Folder(path: directory.url.path)
  }

  func write(_ text: String, _ name: String) throws {
    try Data(text.utf8).write(to: directory.url.appendingPathComponent(name))
  }

  @Test func `38: a plan that a crash left is carried out before anything else`() throws {
    try write("new a", ".new-0")
    try write("old b", "b")
    try write(#"[{"rename":{"_0":".new-0","to":"a"}},{"remove":{"_0":"b"}}]"#, ".plan")
    let a = try folder.reading { _ in try folder.bytes(of: "a") }
    #expect(a == Data("new a".utf8))
    #expect(try directory.files() == [".lock", "a"])
  }

  @Test func `38: a plan that was carried out in part is finished`() throws {
    try write("new a", "a")
    try write("new b", ".new-1")
    try write(#"[{"rename":{"_0":".new-0","to":"a"}},{"rename":{"_0":".new-1","to":"b"}}]"#, ".plan")
    try folder.writing { _ in try folder.apply([.write("c", Data("c".utf8))], together: true) }
    #expect(try directory.files() == [".lock", "a", "b", "c"])
    #expect(try folder.bytes(of: "b") == Data("new b".utf8))
  }

  @Test func `38: a crash before the plan changes nothing`() throws {
    try write("old", "a")
    try write("new", ".new")
    try write("[{\"ren", ".plan.new")
    let a = try folder.reading { _ in try folder.bytes(of: "a") }
    #expect(a == Data("old".utf8))
    try folder.writing { _ in
      try folder.apply([.write("a", Data("1".utf8)), .write("b", Data("2".utf8))], together: true)
    }
    #expect(try directory.files() == [".lock", "a", "b"])
  }

  @Test(arguments: [
    #"[{"remove":{"_0":"../other"}}]"#, #"[{"rename":{"_0":"a","to":"/tmp/a"}}]"#, #"[{"remove":{"_0":".."}}]"#, "[",
    "",
  ])
  func `a plan that isn't about files of the folder is refused`(_ plan: String) throws {
    try write(plan, ".plan")
    #expect(throws: DataSourceError.failed) { try folder.reading { _ in try folder.bytes(of: "a") } }
    #expect(throws: DataSourceError.failed) { try folder.writing { _ in } }
  }

  @Test func `a change that can't be prepared changes nothing`() throws {
    try FileManager.default.createDirectory(
      at: directory.url.appendingPathComponent(".new-1"), withIntermediateDirectories: false)
    #expect(throws: DataSourceError.failed) {
      try folder.writing { _ in try folder.apply([.write("a", Data()), .write("b", Data())], together: true) }
    }
    #expect(try directory.files() == [".lock", ".new-1"])
  }
}
