import DataSources
import Documents
import Foundation
import TestSupport
import Testing

/// One damaged entry fails itself, and everything that needs it unless damaged entries are skipped.
@Suite struct DamagedEntryTests {
  private let directory: TemporaryFolder
  private let reported = Recorder<String>()
  private let strict: DeviceStorageDataSource<Item>
  private let lenient: DeviceStorageDataSource<Item>

  init() async throws {
    directory = try TemporaryFolder()
    let reported = reported
    strict = DeviceStorageDataSource(directory: directory.url)
    lenient = DeviceStorageDataSource(
      directory: directory.url,
      damaged: .skip { entry in
        #expect(entry.error == .dataSerialization && entry.error.message.contains("regular/b@"))
        reported.add(entry.key)
      })
    try await strict.putAll(["one", "two", "three"], forId: ["a", "b", "c"])
    let name = try #require(try directory.subpaths().first { $0.hasPrefix("regular/b@") })
    try directory.put(name, Array("{\"title\": \"other\"}".utf8))
  }

  @Test func `only a call that needs a damaged entry fails`() async throws {
    #expect(try await strict.keys() == ["a", "b", "c"])
    #expect(try await strict.get("c") == "three")
    #expect(await failure { try await strict.get("b") } == .dataSerialization)
    #expect(await failure { try await strict.getAll(AllObjectsQuery()) } == .dataSerialization)
    #expect(await failure { try await strict.getAll(["a", "b"]) } == .dataSerialization)
  }

  @Test func `calls for several entries skip and report damaged ones on request`() async throws {
    #expect(try await lenient.keys() == ["a", "b", "c"])
    #expect(reported.events == [])
    #expect(try await lenient.getAll(AllObjectsQuery()) == ["one", "three"])
    #expect(try await lenient.getAll(["b", "a"], missing: .skip) == ["one"])
    #expect(try await lenient.getAll(SelectorQuery(.all)) == ["one", "three"])
    #expect(reported.events == ["b", "b", "b"])
    #expect(await failure { try await lenient.get("b") } == .dataSerialization)
    try await lenient.put("new", forId: "b")
    #expect(try await lenient.getAll(["a", "b"]) == ["one", "new"])
  }

  @Test func `a file that claims to be large is damaged, and takes no memory`() async throws {
    let name = try #require(try directory.subpaths().first { $0.hasPrefix("regular/b@") })
    #expect(unsafe truncate(directory.file(name), 1 << 40) == 0)
    #expect(await failure { try await strict.get("b") } == .dataSerialization)
    #expect(try await lenient.getAll(AllObjectsQuery()) == ["one", "three"])
  }

  @Test func `a directory that has used up its revisions can be read and not written`() async throws {
    try directory.put("regular/.lock", Array("revision \(Int64.max - 1)\n".utf8))
    #expect(await failure { try await strict.put("new", forId: "a") } == .failed)
    #expect(try await strict.get("a") == "one")
  }

  @Test func `an entry of another type is damaged, too`() async throws {
    let other = try TemporaryFolder()
    try await DeviceStorageDataSource<Int>(directory: other.url).put(7, forId: "n")
    try await DeviceStorageDataSource<Item>(directory: other.url).put("x", forId: "x")
    let keys = Recorder<String>()
    let source = DeviceStorageDataSource<Item>(directory: other.url, damaged: .skip { keys.add($0.key) })
    #expect(try await source.getAll(AllObjectsQuery()) == ["x"])
    #expect(keys.events == ["n"])
  }

  @Test func `a list that was edited is damaged`() async throws {
    let other = try TemporaryFolder()
    let keys = Recorder<String>()
    let source = FileSystemDataSource(directory: other.url, damaged: .skip { keys.add($0.key) })
    try await source.putAll([Data()], forId: "l")
    try await source.put(Data([1]), forId: "v")
    try other.put("l%list", Array("[".utf8))
    #expect(try await source.getAll(AllObjectsQuery()) == [Data([1])])
    #expect(keys.events == ["l"])
    #expect(await failure { try await source.getAll("l") } == .dataSerialization)
  }
}
