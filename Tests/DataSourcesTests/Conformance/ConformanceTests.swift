import DataSources
import Foundation
import Testing

@testable import TopLevelFutures

/// What every key-value source does. The numbers in the names refer to the facts of the data source model, which
/// `contrib/conformance` tabulates.
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
  func `12: a put without a value is rejected and changes nothing`(_ subject: Subject) async throws {
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
  func `59: concurrent writers of one key leave one complete value`(_ subject: Subject) async throws {
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

// MARK: - Keys

extension ConformanceTests {
  static let oddKeys = [
    ".", "..", "...", "a.b", "a,b", "100%", "%41", "%", "%list", "a%list", "a_b", "-", "/", "../../etc/passwd", "a/b",
    " ", "a b",
    "\u{0}", "a\u{0}b", "\n", "é", "e\u{301}", "å", "\u{212B}", "🍐", "日本", "\\", "\"", "=", "=abc", "lock", ".lock",
    ".plan", ".new-0",
    "a.json", ".json", "A", "a", "CON", "~", "*", "$HOME",
  ]

  @Test(arguments: Subject.all)
  func `18, 24, 25: keys are literal`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      for key in Self.oddKeys { try await source.put(Item(key), forId: key) }
      for key in Self.oddKeys {
        let title = try await source.get(key).title
        #expect(title.utf8.elementsEqual(key.utf8))
      }
      let ordered = Self.oddKeys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
      let all = try await source.getAll(AllObjectsQuery())
      #expect(all.map { Array($0.title.utf8) } == ordered.map { Array($0.utf8) })
      for key in Self.oddKeys { try await source.delete(key) }
      #expect(try await source.getAll(AllObjectsQuery()) == [])
    }
  }

  @Test(arguments: Subject.all)
  func `keys have 1 to 4,096 bytes`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      let long = String(repeating: "k", count: 4_096)
      try await source.put("long", forId: long)
      try await source.put("short", forId: "k")
      #expect(try await source.get(long) == "long")
      #expect(try await source.getAll(AllObjectsQuery()) == ["short", "long"])
      for key in ["", long + "k"] {
        #expect(await failure { try await source.get(key) } == .illegalArgument)
        #expect(await failure { try await source.put("x", forId: key) } == .illegalArgument)
        #expect(await failure { try await source.putAll(["x"], forId: [key]) } == .illegalArgument)
        #expect(await failure { try await source.delete(key) } == .illegalArgument)
      }
      try await source.delete(long)
      #expect(try await source.getAll(AllObjectsQuery()) == ["short"])
    }
  }

  @Test(arguments: Subject.all)
  func `19, 20, 21: ids have stable keys`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await source.put("one", forId: 1)
      #expect(try await source.get("1") == "one")
      try await source.put("less", forId: "-7")
      #expect(try await source.get(Int8(-7)) == "less")
      let id = UUID()
      try await source.put("unique", forId: id)
      #expect(try await source.get(id.uuidString) == "unique")
      try await source.put("blue", forId: Colour.blue)
      #expect(try await source.get("blue") == "blue")
      try await source.put("point", forId: Point(x: 1, y: 2))
      #expect(try await source.get("1;2") == "point")
    }
  }

  @Test(arguments: Subject.all)
  func `22, 23: queries with the same key are interchangeable`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await source.put("found", in: Seed000.SearchQuery("x"))
      #expect(try await source.get("search:\"x\"") == "found")
      try await source.putAll(["a", "b"], forId: "colour:red")
      #expect(try await source.getAll(ColourQuery(name: "red")) == ["a", "b"])
      try await source.put("object", in: ObjectQuery(5))
      #expect(try await source.get(5) == "object")
      try await source.delete(ColourQuery(name: "red"))
      #expect(await failure { try await source.getAll("colour:red") } == .notFound)
    }
  }

  @Test(arguments: Subject.all)
  func `26: AllObjectsQuery is a key in operations on one value`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await source.put("one", in: AllObjectsQuery())
      #expect(try await source.get("allObjects") == "one")
      #expect(try await source.get(AllObjectsQuery()) == "one")
      try await source.putAll(["x", "y"], in: AllObjectsQuery())
      #expect(try await source.getAll("allObjects") == ["x", "y"])
      #expect(try await source.getAll(AllObjectsQuery()) == ["x", "y"])
    }
  }

  enum Colour: String, StableKey {
    case red, blue
  }

  struct Point: StableKey {
    let x: Int
    let y: Int
    var stableKey: String { "\(x);\(y)" }
  }

  struct ColourQuery: KeyQuery {
    let name: String
    var key: String { "colour:" + name }
  }
}
