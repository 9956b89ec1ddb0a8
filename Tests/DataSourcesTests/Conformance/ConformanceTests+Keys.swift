import DataSources
import Foundation
import Testing

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
  func `22, 23: queries of the same key are interchangeable`(_ subject: Subject) async throws {
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
  func `26: all objects are a key where one value is meant`(_ subject: Subject) async throws {
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
