import DataSources
import Testing

extension ConformanceTests {
  @Test(arguments: Subject.all)
  func `27, 28, 29: all objects are values and elements in the order of keys`(_ subject: Subject) async throws {
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
  func `30, 31, 33: several ids give values in their order`(_ subject: Subject) async throws {
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
  func `34, 36, 37: several ids are put one by one`(_ subject: Subject) async throws {
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
  func `35: more ids than values are refused, and nothing is written`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      #expect(await failure { try await source.putAll(["1"], forId: ["a", "b"]) } == .illegalArgument)
      #expect(await failure { try await source.putAll(["1", "2"], forId: ["a", ""]) } == .illegalArgument)
      #expect(try await source.getAll(AllObjectsQuery()) == [])
    }
  }

  @Test(arguments: Subject.all)
  func `38: several writes are one to readers`(_ subject: Subject) async throws {
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
  func `39: several ids have no single value`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      #expect(await failure { try await source.get(IdsQuery(["a"])) } == .queryNotSupported)
      #expect(await failure { try await source.put("x", in: IdsQuery(["a"])) } == .queryNotSupported)
    }
  }

  @Test(arguments: Subject.all)
  func `42, 43: several ids or all are deleted`(_ subject: Subject) async throws {
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
  func `45, 46: sources of different names are independent`(_ subject: Subject) async throws {
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
