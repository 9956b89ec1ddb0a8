import DataSources
import Foundation
import TestSupport
import Testing

/// Things in the way of files, and directories that can't be changed.
@Suite struct ObstacleTests {
  private let directory: TemporaryFolder

  init() throws { directory = try TemporaryFolder() }

  private func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: directory.file(name), withIntermediateDirectories: true)
  }

  private func data(_ text: String) -> Data { Data(text.utf8) }

  /// Runs a body in a process that may write only where everybody may.
  private func setMode(_ mode: Int, _ name: String = "") throws {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: directory.file(name))
  }

  @Test func `a folder in the place of a file blocks only that entry`() async throws {
    let source = FileSystemDataSource(directory: directory.url)
    try await source.put(data("old"), forId: "a")
    for name in ["b", "list%list", "c%list"] { try makeFolder(name) }
    let before = try directory.subpaths()
    await #expect { try await source.putAll([data("1"), data("2")], forId: ["a", "b"]) } throws: { error in
      "\(error)".contains(directory.file("b")) && "\(error)".contains("move it away")
    }
    #expect(await failure { try await source.put(data("1"), forId: "b") } == .failed)
    #expect(await failure { try await source.putAll([data("1")], forId: "list") } == .failed)
    #expect(await failure { try await source.put(data("1"), forId: "c") } == .failed)
    #expect(await failure { try await source.delete(["a", "b"]) } == .failed)
    #expect(try directory.subpaths() == before)
    try await source.putAll([data("new"), data("d")], forId: ["a", "d"])
    #expect(try await source.keys() == ["a", "d"])
  }

  @Test func `an unfinished change blocks only its own entries, until it can be completed`() async throws {
    let reported = Recorder<String>()
    let strict = FileSystemDataSource(directory: directory.url)
    let source = FileSystemDataSource(directory: directory.url, damaged: .skip { reported.add($0.key) })
    try await source.putAll([data("a"), data("c")], forId: ["a", "c"])
    try makeFolder("b/full")
    try directory.put(".new-1", Array("b".utf8))
    try directory.put(
      ".plan", Array(#"[{"rename":{"_0":".new-1","to":"b"}},{"remove":{"_0":"c"}}]"#.utf8))
    for _ in 0..<2 {
      #expect(try await source.get("a") == data("a"))
      #expect(await failure { try await source.get("c") } == .notFound)
      await #expect { try await source.get("b") } throws: { error in
        "\(error)".contains(directory.file("b")) && "\(error)".contains("remove the obstacle")
      }
      #expect(await failure { try await strict.keys() } == .failed)
      #expect(try await source.keys().contains("a"))
      #expect(await failure { try await source.put(data("x"), forId: "b") } == .failed)
      #expect(await failure { try await source.delete(AllObjectsQuery()) } == .failed)
      try await source.putAll([data("d"), data("e"), data("f")], forId: ["d", "e", "f"])
    }
    #expect(Set(reported.events) == ["b"])
    try FileManager.default.removeItem(atPath: directory.file("b"))
    #expect(try await strict.get("b") == data("b"))
    #expect(try await strict.keys() == ["a", "b", "d", "e", "f"])
    #expect(try directory.subpaths() == [".lock", "a", "b", "d", "e", "f"])
  }

  @Test func `a directory that the process can't change can be read`() async throws {
    let inner = DeviceStorageDataSource<Int>(directory: directory.url)
    try await inner.putAll([1, 2], forId: ["a", "b"])
    try makeFolder("foreign")
    try directory.put("foreign/note", Array("text".utf8))
    let names = ["", "regular", "foreign"]
    for name in try directory.subpaths() where !names.contains(name) { try setMode(0o444, name) }
    for name in names { try setMode(0o555, name) }
    let path = directory.path
    await #expect(processExitsWith: .success) { [path = path as String] in
      if geteuid() == 0 { guard seteuid(65_534) == 0 else { exit(1) } }
      let url = URL(fileURLWithPath: path)
      let source = DeviceStorageDataSource<Int>(directory: url)
      guard try await source.getAll(AllObjectsQuery()) == [1, 2] else { exit(2) }
      do {
        try await source.put(3, forId: "a")
        exit(3)
      } catch DataSourceError.failed {}
      let foreign = FileSystemDataSource(directory: url.appendingPathComponent("foreign"))
      guard try await foreign.keys() == ["note"] else { exit(4) }
      guard try await foreign.get("note") == Data("text".utf8) else { exit(5) }
    }
    for name in names { try setMode(0o755, name) }
  }

  /// In a folder with the sticky bit, nobody can replace another user's file.
  @Test(.enabled(if: geteuid() == 0, "only root has files of another user"))
  func `a change that fails halfway is undone, or blocks only its own entries`() async throws {
    for name in ["theirs", "theirs2"] { try directory.put(name, Array("theirs".utf8)) }
    for name in ["theirs", "theirs2"] { try setMode(0o644, name) }
    try setMode(0o1777)
    let path = directory.path
    await #expect(processExitsWith: .success) { [path = path as String] in
      guard seteuid(65_534) == 0 else { exit(1) }
      let source = FileSystemDataSource(directory: URL(fileURLWithPath: path))
      func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
      do {
        try await source.putAll([Data("mine".utf8), Data()], forId: ["mine", "theirs"])
        exit(2)
      } catch let error as DataSourceError where error.message.contains("nothing has changed") {}
      guard try names() == [".lock", "theirs", "theirs2"] else { exit(3) }
      try await source.putAll([Data("1".utf8), Data("2".utf8)], forId: ["mine", "other"])
      do {
        try await source.delete(["mine", "theirs2"])
        exit(4)
      } catch let error as DataSourceError where error.message.contains("theirs2") {}
      guard try await source.get("other") == Data("2".utf8) else { exit(5) }
      do {
        _ = try await source.get("theirs2")
        exit(6)
      } catch DataSourceError.failed {}
      guard try names() == [".lock", ".plan", "other", "theirs", "theirs2"] else { exit(7) }
    }
    let source = FileSystemDataSource(directory: directory.url)
    #expect(try await source.keys() == ["other", "theirs"])
    #expect(try directory.subpaths() == [".lock", "other", "theirs"])
  }

  @Test func `a directory inside that of another source is refused`() async throws {
    let outer = FileSystemDataSource(directory: directory.url)
    #expect(try await outer.keys() == [])
    let inner = directory.url.appendingPathComponent("a/b")
    for _ in 0..<2 {
      #expect(await failure { try await FileSystemDataSource(directory: inner).keys() } == .illegalArgument)
      #expect(
        await failure { try await DeviceStorageDataSource<Int>(directory: inner).put(1, forId: "a") }
          == .illegalArgument)
    }
    #expect(try directory.subpaths() == [".lock"])
    let other = try TemporaryFolder()
    try await DeviceStorageDataSource<Int>(directory: other.url.appendingPathComponent("a")).put(1, forId: "a")
    #expect(await failure { try await FileSystemDataSource(directory: other.url).get("a") } == .illegalArgument)
    try await DeviceStorageDataSource<Int>(directory: other.url.appendingPathComponent("a"), .prefix("p"))
      .put(1, forId: "a")
  }
}
