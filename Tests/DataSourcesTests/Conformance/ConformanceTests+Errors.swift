import DataSources
import Larder
import Testing

extension ConformanceTests {
  @Test(arguments: Subject.all.filter { $0.misread != nil })
  func `48: a value of another type is an error`(_ subject: Subject) async throws {
    try await subject.runAtPlace { place in
      let source = try subject.make(place, "items")
      let misread = try #require(try subject.misread?(place, "items"))
      try await source.put("one", forId: "a")
      try await source.putAll(["x"], forId: "l")
      #expect(await failure { try await misread.get("a") } == .dataSerialization)
      #expect(await failure { try await misread.getAll("l") } == .dataSerialization)
      #expect(await failure { try await misread.getAll(["a"]) } == .dataSerialization)
      #expect(await failure { try await misread.getAll(AllObjectsQuery()) } == .dataSerialization)
      #expect(
        await failure { try await misread.getAll(PaginationCursorQuery(limit: 5)) } == .dataSerialization)
      #expect(try await source.get("a") == "one")
    }
  }

  @Test(arguments: Subject.all)
  func `49: kinds and codes of errors are those of a source in memory`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      for source in [source, AnyDataSource(InMemoryDataSource())] {
        var codes: [Int?] = []
        func note(_ body: () async throws -> Void) async { codes.append(await failure(body)?.rawValue) }
        await note { _ = try await source.get("a") }
        await note { _ = try await source.getAll(["a"]) }
        await note { _ = try await source.put(nil, forId: "a") }
        await note { _ = try await source.get("") }
        await note { _ = try await source.putAll(["1"], forId: [""]) }
        await note { try await source.delete("") }
        await note { _ = try await source.getAll(PaginationOffsetLimitQuery(offset: -1, limit: 1)) }
        await note { _ = try await source.getAll(VoidQuery()) }
        #expect(codes == [1, 1, 2, 2, 2, 2, 2, 6])
      }
    }
  }

  @Test(arguments: Subject.remote)
  func `50: a server that is away is no missing value, and is found again`(_ subject: Subject) async throws {
    try await subject.runAtPlace { place in
      let source = try subject.make(place, "items")
      try await source.put("one", forId: "a")
      try await place.server.stop()
      func expectAway(_ body: @Sendable () async throws -> Void) async {
        let error = await #expect(throws: LarderError.self) { try await body() }
        #expect(error?.isSafeToRetry == true)
      }
      await expectAway { _ = try await source.get("b") }
      await expectAway { _ = try await source.getAll("b") }
      await expectAway { _ = try await source.getAll(AllObjectsQuery()) }
      await expectAway { _ = try await source.put("two", forId: "b") }
      await expectAway { try await source.delete("b") }
      try place.server.restart()
      try await source.put("two", forId: "b")
      #expect(try await source.get("b") == "two")
    }
  }
}
