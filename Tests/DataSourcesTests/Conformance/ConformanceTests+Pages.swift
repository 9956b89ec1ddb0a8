import DataSources
import Testing

extension ConformanceTests {
  @Test(arguments: Subject.all)
  func `58: pages by position`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      let ids = (10..<20).map { $0 }
      try await source.putAll(ids.map { Item("\($0)") }, forId: ids)
      func page(_ offset: Int, _ limit: Int) async throws -> [String] {
        try await source.getAll(PaginationOffsetLimitQuery(offset: offset, limit: limit)).map(\.title)
      }
      #expect(try await page(0, 3) == ["10", "11", "12"])
      #expect(try await page(8, 3) == ["18", "19"])
      #expect(try await page(10, 3) == [])
      #expect(try await page(.max, .max) == [])
      #expect(try await page(9, .max) == ["19"])
      #expect(try await page(3, 0) == [])
      #expect(await failure { try await page(-1, 3) } == .illegalArgument)
      #expect(await failure { try await page(0, -1) } == .illegalArgument)
    }
  }

  @Test(arguments: Subject.all)
  func `58: pages by cursor neither repeat nor leave out`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      let ids = (10..<20).map { $0 }
      try await source.putAll(ids.map { Item("\($0)") }, forId: ids)
      var seen = try await source.getAll(PaginationCursorQuery(limit: 4)).map(\.title)
      try await source.put("05", forId: "05")
      try await source.delete("13")
      while let last = seen.last {
        let page = try await source.getAll(PaginationCursorQuery(after: last, limit: 4)).map(\.title)
        if page.isEmpty { break }
        seen += page
      }
      #expect(seen == ids.map(String.init))
      #expect(try await source.getAll(PaginationCursorQuery(after: "1", limit: 1)) == ["10"])
      #expect(try await source.getAll(PaginationCursorQuery(after: "", limit: 1)) == ["05"])
      #expect(await failure { try await source.getAll(PaginationCursorQuery(limit: -1)) } == .illegalArgument)
      let long = PaginationCursorQuery(after: String(repeating: "k", count: 4_097), limit: 1)
      #expect(await failure { try await source.getAll(long) } == .illegalArgument)
    }
  }

  @Test(arguments: Subject.all)
  func `58: a page counts a list as one entry, and is only got as a list`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await source.putAll(["x", "y"], forId: "a")
      try await source.put("b", forId: "b")
      #expect(try await source.getAll(PaginationOffsetLimitQuery(offset: 0, limit: 1)) == ["x", "y"])
      let page = PaginationOffsetLimitQuery(offset: 0, limit: 1)
      #expect(await failure { try await source.get(page) } == .queryNotSupported)
      #expect(await failure { try await source.put("x", in: page) } == .queryNotSupported)
      #expect(await failure { try await source.putAll(["x"], in: page) } == .queryNotSupported)
      #expect(await failure { try await source.delete(page) } == .queryNotSupported)
    }
  }
}
