import DataSources
import Foundation
import TestSupport
import Testing

@Suite struct FileSystemTests {
  @Test func `a value is a file with its bytes`() async throws {
    let directory = try TemporaryFolder()
    let source = FileSystemDataSource(directory: directory.url)
    let bytes = Data([0, 255, 10, 13])
    try await source.put(bytes, forId: "image.png")
    #expect(try Data(contentsOf: directory.url.appendingPathComponent("image.png")) == bytes)
    try Data("from elsewhere".utf8).write(to: directory.url.appendingPathComponent("note.txt"))
    #expect(try await source.get("note.txt") == Data("from elsewhere".utf8))
    #expect(try await source.keys() == ["image.png", "note.txt"])
  }

  @Test func `directories and links are not entries`() async throws {
    let directory = try TemporaryFolder()
    let source = FileSystemDataSource(directory: directory.url)
    try await source.put(Data([1]), forId: "a")
    let folder = directory.url.appendingPathComponent("folder")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(
      atPath: directory.url.appendingPathComponent("link").path, withDestinationPath: "a")
    #expect(try await source.keys() == ["a"])
    try await source.delete(AllObjectsQuery())
    #expect(try directory.subpaths() == [".lock", "folder", "link"])
  }

  @Test func `a list replaces a value, and a value replaces a list`() async throws {
    let directory = try TemporaryFolder()
    let source = FileSystemDataSource(directory: directory.url)
    try await source.put(Data([1]), forId: "a")
    try await source.putAll([Data([2]), Data()], forId: "a")
    #expect(try await source.getAll("a") == [Data([2]), Data()])
    #expect(try directory.subpaths() == [".lock", "a%list"])
    try await source.put(Data(), forId: "a")
    #expect(try await source.get("a") == Data())
    #expect(try directory.subpaths() == [".lock", "a"])
  }
}
