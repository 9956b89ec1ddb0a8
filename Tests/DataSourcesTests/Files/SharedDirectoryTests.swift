import Foundation
import TestSupport
import Testing

@testable import DataSources

@Suite struct SharedDirectoryTests {
  private let temporary: TemporaryFolder
  private let directory: SharedDirectory

  init() throws {
    temporary = try TemporaryFolder()
    directory = SharedDirectory(path: temporary.url.path)
  }

  func write(_ text: String, _ name: String) throws {
    try Data(text.utf8).write(to: temporary.url.appendingPathComponent(name))
  }

  @Test func `38: a plan that a crash left behind is executed before anything else`() async throws {
    try write("new a", ".new-0")
    try write("old b", "b")
    try write(#"[{"rename":{"_0":".new-0","to":"a"}},{"remove":{"_0":"b"}}]"#, ".plan")
    let a = try await directory.withReadLock { _ in try directory.bytes(of: "a") }
    #expect(a == Data("new a".utf8))
    #expect(try temporary.subpaths() == [".lock", "a"])
  }

  @Test func `38: a plan that was executed in part is completed`() async throws {
    try write("new a", "a")
    try write("new b", ".new-1")
    try write(#"[{"rename":{"_0":".new-0","to":"a"}},{"rename":{"_0":".new-1","to":"b"}}]"#, ".plan")
    try await directory.withWriteLock { lock in try lock.apply([.write("c", Data("c".utf8))], atomically: true) }
    #expect(try temporary.subpaths() == [".lock", "a", "b", "c"])
    #expect(try directory.bytes(of: "b") == Data("new b".utf8))
  }

  @Test func `38: a crash before the plan changes nothing`() async throws {
    try write("old", "a")
    try write("new", ".new")
    try write("[{\"ren", ".plan.new")
    let a = try await directory.withReadLock { _ in try directory.bytes(of: "a") }
    #expect(a == Data("old".utf8))
    try await directory.withWriteLock { lock in
      try lock.apply([.write("a", Data("1".utf8)), .write("b", Data("2".utf8))], atomically: true)
    }
    #expect(try temporary.subpaths() == [".lock", "a", "b"])
  }

  @Test(arguments: [
    #"[{"remove":{"_0":"../other"}}]"#, #"[{"rename":{"_0":"a","to":"/tmp/a"}}]"#, #"[{"remove":{"_0":".."}}]"#, "[",
    "",
  ])
  func `a plan that names files outside of the directory is rejected`(_ plan: String) async throws {
    try write(plan, ".plan")
    await #expect(throws: DataSourceError.failed) {
      try await directory.withReadLock { _ in try directory.bytes(of: "a") }
    }
    await #expect(throws: DataSourceError.failed) { try await directory.withWriteLock { _ in } }
  }

  @Test func `a change whose preparation fails changes nothing`() async throws {
    try FileManager.default.createDirectory(
      at: temporary.url.appendingPathComponent(".new-1"), withIntermediateDirectories: false)
    await #expect(throws: DataSourceError.failed) {
      try await directory.withWriteLock { lock in
        try lock.apply([.write("a", Data()), .write("b", Data())], atomically: true)
      }
    }
    #expect(try temporary.subpaths() == [".lock", ".new-1"])
  }
}
