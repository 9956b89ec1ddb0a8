import DataSources
import Foundation
import TestSupport
import Testing

@Suite struct DeviceStorageTests {
  @Test func `45: a source doesn't see the entries of one whose name begins with its own`() async throws {
    let directory = try TemporaryFolder()
    let kinds: [DeviceStorageKind] =
      [.regular] + ["foo", "foobar", "foo.bar", "foo/bar", ""].flatMap { [.prefix($0), .rootKey($0)] }
    let sources = kinds.map { DeviceStorageDataSource<Item>(directory: directory.url, $0) }
    for (kind, source) in zip(kinds, sources) {
      #expect(try await source.getAll(AllObjectsQuery()) == [])
      try await source.put(Item("\(kind)"), forId: "a")
    }
    try await sources[1].delete(AllObjectsQuery())
    #expect(await failure { try await sources[1].get("a") } == .notFound)
    for (kind, source) in zip(kinds, sources).enumerated().filter({ $0.offset != 1 }).map(\.element) {
      #expect(try await source.getAll(AllObjectsQuery()) == [Item("\(kind)")])
    }
  }

  @Test(arguments: [.regular, .prefix("p"), .rootKey("r")] as [DeviceStorageKind])
  func `entries outlive their source`(_ kind: DeviceStorageKind) async throws {
    let directory = try TemporaryFolder()
    let source = DeviceStorageDataSource<Item>(directory: directory.url, kind)
    try await source.put(Item("one", price: 1), forId: "a")
    try await source.putAll(["x", "y"], forId: "l")
    let again = DeviceStorageDataSource<Item>(directory: directory.url, kind)
    #expect(try await again.get("a") == Item("one", price: 1))
    #expect(try await again.getAll("l") == ["x", "y"])
  }

  @Test(arguments: [.regular, .prefix("p"), .rootKey("r")] as [DeviceStorageKind])
  func `48: another type is an error, never a default`(_ kind: DeviceStorageKind) async throws {
    let directory = try TemporaryFolder()
    try await DeviceStorageDataSource<String>(directory: directory.url, kind).put("text", forId: "a")
    let numbers = DeviceStorageDataSource<Int>(directory: directory.url, kind)
    #expect(await failure { try await numbers.get("a") } == .dataSerialization)
    #expect(await failure { try await numbers.getAll(AllObjectsQuery()) } == .dataSerialization)
  }

  @Test func `a value that can't be encoded is an error and changes nothing`() async throws {
    let directory = try TemporaryFolder()
    let source = DeviceStorageDataSource<Double>(directory: directory.url)
    try await source.put(1, forId: "a")
    #expect(await failure { try await source.put(.nan, forId: "a") } == .dataSerialization)
    #expect(await failure { try await source.putAll([2, .nan], forId: ["a", "b"]) } == .dataSerialization)
    #expect(try await source.getAll(AllObjectsQuery()) == [1])
  }

  @Test func `an entry is a file that people can read`() async throws {
    let directory = try TemporaryFolder()
    let source = DeviceStorageDataSource<Item>(directory: directory.url)
    try await source.put(Item("Étude", price: 3), forId: "book/1")
    let file = try #require(try directory.subpaths().last)
    #expect(try file.wholeMatch(of: Regex("regular/book%2f1@1-[0-9a-f]{8}")) != nil)
    let text = try String(contentsOf: directory.url.appendingPathComponent(file), encoding: .utf8)
    #expect(text.contains("\"title\" : \"Étude\""))
  }

  @Test func `a damaged file is an error for its key only`() async throws {
    let directory = try TemporaryFolder()
    let source = DeviceStorageDataSource<Item>(directory: directory.url)
    try await source.put("one", forId: "a")
    try await source.put("two", forId: "b")
    let file = try #require(try directory.subpaths().first { $0.hasPrefix("regular/a@") })
    try Data("{\"title\": \"another\"}".utf8).write(to: directory.url.appendingPathComponent(file))
    #expect(await failure { try await source.get("a") } == .dataSerialization)
    #expect(try await source.get("b") == "two")
    try await source.put("three", forId: "a")
    #expect(try await source.get("a") == "three")
  }

  @Test func `other programs' files are left alone`() async throws {
    let directory = try TemporaryFolder()
    let source = DeviceStorageDataSource<Item>(directory: directory.url)
    try await source.put("one", forId: "a")
    let note = directory.url.appendingPathComponent("regular/read me.txt")
    try Data("hands off".utf8).write(to: note)
    #expect(try await source.getAll(AllObjectsQuery()) == ["one"])
    try await source.delete(AllObjectsQuery())
    #expect(FileManager.default.fileExists(atPath: note.path))
  }

  @Test func `links are not followed`() async throws {
    let directory = try TemporaryFolder()
    let source = DeviceStorageDataSource<Item>(directory: directory.url)
    try await source.put("one", forId: "a")
    let folder = directory.url.appendingPathComponent("regular")
    try FileManager.default.createSymbolicLink(
      at: folder.appendingPathComponent("b@2-00000000"), withDestinationURL: folder.appendingPathComponent("a"))
    #expect(await failure { try await source.get("b") } == .notFound)
    try await source.put("two", forId: "b")
    #expect(try await source.get("a") == "one")
    #expect(try await source.get("b") == "two")
  }

  @Test(arguments: [.regular, .rootKey("r")] as [DeviceStorageKind])
  func `38: a killed process leaves all of a write or none`(_ kind: DeviceStorageKind) async throws {
    let directory = try TemporaryFolder()
    let path = directory.url.path
    let root = kind != .regular
    for _ in 0..<4 {
      await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, root = root as Bool] in
        let source = DeviceStorageDataSource<Int>(
          directory: URL(fileURLWithPath: path), root ? .rootKey("r") : .regular)
        try await source.putAll([0, 0, 0], forId: ["a", "b", "c"])
        Task.detached {
          try await Task.sleep(for: .microseconds(Int.random(in: 0...20_000)))
          kill(getpid(), SIGKILL)
        }
        for round in 1... { try await source.putAll([round, round, round], forId: ["a", "b", "c"]) }
      }
      let source = DeviceStorageDataSource<Int>(directory: directory.url, kind)
      #expect(try await Set(source.getAll(["a", "b", "c"])).count == 1)
    }
  }

  @Test func `writes of another process are visible immediately`() async throws {
    let directory = try TemporaryFolder()
    let path = directory.url.path
    let source = DeviceStorageDataSource<Int>(directory: directory.url)
    for round in 1...3 {
      try await source.putAll([round, round], forId: ["a", "b"])
      await #expect(processExitsWith: .success) { [path = path as String, round = round as Int] in
        let source = DeviceStorageDataSource<Int>(directory: URL(fileURLWithPath: path))
        guard try await source.getAll(["a", "b"]) == [round, round] else { exit(1) }
        try await source.delete("b")
        try await source.put(-round, forId: "a")
      }
      #expect(try await source.getAll(AllObjectsQuery()) == [-round])
    }
  }

  @Test func `a directory that can't be created is an error`() async throws {
    let directory = try TemporaryFolder()
    let file = directory.url.appendingPathComponent("file")
    try Data().write(to: file)
    let source = DeviceStorageDataSource<Item>(directory: file)
    #expect(await failure { try await source.put("x", forId: "a") } == .failed)
    #expect(await failure { try await source.get("a") } == .failed)
  }
}
