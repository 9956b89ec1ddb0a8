import DataSources
import Testing

/// What every key-value source does. Numbers in the names are those of the facts in the model of the library.
@Suite struct ConformanceTests {
  @Test(arguments: Subject.all)
  func `1, 3, 4: put stores, returns and replaces a value`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      #expect(try await source.put(Item("one", price: 1), forId: "a") == Item("one", price: 1))
      #expect(try await source.get("a") == Item("one", price: 1))
      #expect(try await source.put("two", forId: "a") == "two")
      #expect(try await source.get("a") == "two")
    }
  }

  @Test(arguments: Subject.all)
  func `2, 3: putAll keeps order and duplicates`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      let list: [Item] = ["b", "a", "b", "c"]
      #expect(try await source.putAll(list, forId: "a") == list)
      #expect(try await source.getAll("a") == list)
    }
  }

  @Test(arguments: Subject.all)
  func `5, 6, 9, 10: a key has one kind`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await source.putAll(["x", "y"], forId: "a")
      #expect(await failure { try await source.get("a") } == .notFound)
      try await source.put("one", forId: "a")
      #expect(await failure { try await source.getAll("a") } == .notFound)
      try await source.putAll(["x"], forId: "a")
      #expect(await failure { try await source.get("a") } == .notFound)
      #expect(try await source.getAll("a") == ["x"])
      #expect(try await source.getAll(AllObjectsQuery()) == ["x"])
    }
  }

  @Test(arguments: Subject.all)
  func `7, 8, 47: what was never written is not found`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      #expect(await failure { try await source.get("a") } == .notFound)
      #expect(await failure { try await source.getAll("a") } == .notFound)
      #expect(await failure { try await source.getAll(["a"]) } == .notFound)
    }
  }

  @Test(arguments: Subject.all)
  func `11: an empty list is a list`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await source.putAll([], forId: "a")
      #expect(try await source.getAll("a") == [])
      #expect(await failure { try await source.get("a") } == .notFound)
      #expect(try await source.getAll(AllObjectsQuery()) == [])
    }
  }

  @Test(arguments: Subject.all)
  func `12: a put without a value is refused and changes nothing`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await source.put("one", forId: "a")
      #expect(await failure { try await source.put(nil, forId: "a") } == .illegalArgument)
      #expect(try await source.get("a") == "one")
    }
  }

  @Test(arguments: Subject.all)
  func `13, 14, 15, 16, 17: an unsupported query is an error and changes nothing`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await source.put("one", forId: "a")
      let queries: [any Query] = [
        VoidQuery(), ObjectsQuery<Item>(["x"]), ObjectQuery(Item("x")), Unknown(),
      ]
      for query in queries {
        #expect(await failure { try await source.get(query) } == .queryNotSupported)
        #expect(await failure { try await source.getAll(query) } == .queryNotSupported)
        #expect(await failure { try await source.put("x", in: query) } == .queryNotSupported)
        #expect(await failure { try await source.put(nil, in: query) } == .queryNotSupported)
        #expect(await failure { try await source.putAll(["x"], in: query) } == .queryNotSupported)
        #expect(await failure { try await source.delete(query) } == .queryNotSupported)
        #expect(await failure { try await source.deleteAll(query) } == .queryNotSupported)
      }
      #expect(try await source.getAll(AllObjectsQuery()) == ["one"])
    }
  }

  @Test(arguments: Subject.all)
  func `40, 41, 44: delete removes either kind, or nothing`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await source.put("one", forId: "a")
      try await source.putAll(["x"], forId: "b")
      try await source.delete("a")
      try await source.deleteAll("b")
      try await source.delete("never")
      #expect(await failure { try await source.get("a") } == .notFound)
      #expect(await failure { try await source.getAll("b") } == .notFound)
      #expect(try await source.getAll(AllObjectsQuery()) == [])
    }
  }

  @Test(arguments: Subject.all)
  func `59: writers of one key leave one whole value`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      let values = (0..<16).map { (number: Int) in Item(String(repeating: "\(number) ", count: 500), price: number) }
      await withTaskGroup { group in
        for value in values { group.addTask { _ = try? await source.put(value, forId: "a") } }
      }
      let left = try await source.get("a")
      #expect(values.contains(left))
    }
  }

  struct Unknown: Query {}
}
