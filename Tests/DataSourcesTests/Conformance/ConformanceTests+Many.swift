import DataSources
import Testing

extension ConformanceTests {
  @Test(arguments: Subject.all)
  func `27, 28, 29: all objects are the values and elements in key order`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      #expect(try await source.getAll(AllObjectsQuery()) == [])
      try await source.put("Z", forId: "Z")
      try await source.putAll(["m1", "m2"], forId: "m")
      try await source.put("é", forId: "é")
      try await source.put("a", forId: "a")
      #expect(try await source.getAll(AllObjectsQuery()) == ["Z", "a", "m1", "m2", "é"])
    }
  }

  @Test(arguments: Subject.all)
  func `30, 31, 33: several ids return their values in order`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await source.put("A", forId: "a")
      try await source.put("B", forId: "b")
      try await source.putAll(["x"], forId: "l")
      #expect(try await source.getAll(["b", "a", "b"]) == ["B", "A", "B"])
      #expect(try await source.getAll([] as [String]) == [])
      #expect(await failure { try await source.getAll(["a", "l"]) } == .notFound)
    }
  }

  @Test(arguments: Subject.all)
  func `32: missing ids fail, are skipped, or are nil`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await source.put("A", forId: "a")
      #expect(await failure { try await source.getAll(["a", "c"]) } == .notFound)
      #expect(try await source.getAll(["c", "a"], missing: .skip) == ["A"])
      #expect(try await source.getAll(IdsQuery(["c"], missing: .skip)) == [])
      #expect(try await source.getEach(["c", "a"]) == [nil, "A"])
    }
  }

  @Test(arguments: Subject.all)
  func `34, 36, 37: putAll for several ids stores single values`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await source.putAll(["x", "y"], forId: "b")
      #expect(try await source.putAll(["1", "2", "3"], forId: ["a", "b", "a"]) == ["1", "2", "3"])
      #expect(try await source.get("a") == "3")
      #expect(try await source.get("b") == "2")
      #expect(await failure { try await source.getAll("b") } == .notFound)
      #expect(try await source.putAll([], forId: [] as [String]) == [])
    }
  }

  @Test(arguments: Subject.all)
  func `35: different counts of ids and values are rejected, and nothing is written`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      #expect(await failure { try await source.putAll(["1"], forId: ["a", "b"]) } == .illegalArgument)
      #expect(await failure { try await source.putAll(["1", "2"], forId: ["a", ""]) } == .illegalArgument)
      #expect(try await source.getAll(AllObjectsQuery()) == [])
    }
  }

  @Test(arguments: Subject.all)
  func `38: readers see a write of several entries as one`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      let ids = ["a", "b", "c"]
      try await source.putAll(["0", "0", "0"], forId: ids)
      try await withThrowingTaskGroup { group in
        group.addTask {
          for round in 1...20 { try await source.putAll(Array(repeating: Item("\(round)"), count: 3), forId: ids) }
        }
        for _ in 0..<2 {
          group.addTask {
            for _ in 0..<40 {
              let values = try await source.getAll(ids)
              #expect(Set(values).count == 1)
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(try await source.getAll(ids) == ["20", "20", "20"])
    }
  }

  @Test(arguments: Subject.all)
  func `39: a query for several ids can't get or put one value`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      #expect(await failure { try await source.get(IdsQuery(["a"])) } == .queryNotSupported)
      #expect(await failure { try await source.put("x", in: IdsQuery(["a"])) } == .queryNotSupported)
    }
  }

  @Test(arguments: Subject.all)
  func `42, 43: delete removes several ids, or everything`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await source.putAll(["1", "2", "3"], forId: ["a", "b", "c"])
      try await source.delete(["a", "never", "b"])
      #expect(try await source.getAll(AllObjectsQuery()) == ["3"])
      try await source.delete([] as [String])
      try await source.putAll(["x"], forId: "l")
      try await source.delete(AllObjectsQuery())
      #expect(try await source.getAll(AllObjectsQuery()) == [])
      try await source.delete(AllObjectsQuery())
    }
  }

  @Test(arguments: Subject.all)
  func `45, 46: sources with different names are independent`(_ subject: Subject) async throws {
    try await subject.runAtPlace { place in
      let names = ["foo", "foobar", "foo.bar"]
      let sources = try names.map { try subject.make(place, $0) }
      for (name, source) in zip(names, sources) { try await source.put(Item(name), forId: "a") }
      try await sources[0].delete(AllObjectsQuery())
      #expect(await failure { try await sources[0].get("a") } == .notFound)
      #expect(try await sources[1].getAll(AllObjectsQuery()) == ["foobar"])
      #expect(try await sources[2].getAll(AllObjectsQuery()) == ["foo.bar"])
    }
  }
}

// MARK: - Pages

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
  func `58: pages by cursor neither repeat nor miss entries`(_ subject: Subject) async throws {
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
  func `58: a page counts a list as one entry, and only getAll supports pages`(_ subject: Subject) async throws {
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
