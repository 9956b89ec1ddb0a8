import DataSources
import Documents
import Foundation
import Larder
import Testing

/// Queries for documents, answered by every source in the same way.
@Suite struct SelectorQueryTests {
  static let subjects = Subject.all.filter { !["mapped", "repository, mapped"].contains($0.testDescription) }

  private static func fill(_ source: AnyDataSource<Item>) async throws {
    let items = [Item("pear", price: 3), Item("fig", price: 9), Item("plum"), Item("apple", price: 12)]
    try await source.putAll(items, forId: ["a", "b", "c", "d"])
    try await source.putAll([Item("list", price: 5)], forId: "e")
  }

  @Test(arguments: subjects)
  func `the matches are returned in the order of the query`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await Self.fill(source)
      func titles(_ query: SelectorQuery) async throws -> [String] { try await source.getAll(query).map(\.title) }
      #expect(try await titles(SelectorQuery(.field("price", .greater(3)))) == ["fig", "apple"])
      #expect(try await titles(SelectorQuery(.all, sort: [.ascending("title")])) == ["apple", "fig", "pear", "plum"])
      #expect(try await titles(SelectorQuery(.all, sort: [.descending("price")])) == ["apple", "fig", "pear", "plum"])
      #expect(try await titles(SelectorQuery(.all, skip: 1, limit: 2)) == ["fig", "plum"])
      #expect(try await titles(SelectorQuery(.field("_id", .in(["d", "a", "x"])))) == ["pear", "apple"])
      #expect(try await titles(SelectorQuery(.field("price", .greater(99)))) == [])
    }
  }

  @Test(arguments: subjects)
  func `get with a selector returns the first match`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await Self.fill(source)
      #expect(try await source.get(SelectorQuery(.all, sort: [.ascending("title")], skip: 1)).title == "fig")
      #expect(await failure { try await source.get(SelectorQuery(.field("price", .greater(99)))) } == .notFound)
      #expect(await failure { try await source.get(SelectorQuery(.all, limit: 0)) } == .notFound)
    }
  }

  @Test(arguments: subjects)
  func `nothing matches in an empty source`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      #expect(try await source.getAll(SelectorQuery(.all)) == [])
    }
  }

  @Test(arguments: subjects)
  func `queries that can't be answered are errors`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      try await Self.fill(source)
      let illegal = [
        SelectorQuery(.all, skip: -1), SelectorQuery(.all, limit: -1), SelectorQuery(.text("a") && .text("b")),
        SelectorQuery(DocumentQuery(fields: ["title"])), SelectorQuery(DocumentQuery(bookmark: "b")),
      ]
      for query in illegal {
        #expect(await failure { try await source.getAll(query) } == .illegalArgument)
        #expect(await failure { try await source.get(query) } == .illegalArgument)
      }
      let query = SelectorQuery(.all)
      #expect(await failure { try await source.put("x", in: query) } == .queryNotSupported)
      #expect(await failure { try await source.putAll(["x"], in: query) } == .queryNotSupported)
      #expect(await failure { try await source.delete(query) } == .queryNotSupported)
      #expect(try await source.getAll(query).count == 4)
    }
  }

  @Test func `the error for an invalid selector has the selector's message`() async {
    let query = DocumentQuery(bookmark: "b")
    let expected = #expect(throws: SelectorError.self) { try [Document]().find(query) }
    let error = await #expect(throws: DataSourceError.self) {
      try await InMemoryDataSource<Item>().getAll(SelectorQuery(query))
    }
    #expect(error?.message == expected?.description)
  }

  @Test func `values that aren't objects match nothing`() async throws {
    let numbers = InMemoryDataSource<Int>()
    try await numbers.put(1, forId: "a")
    #expect(try await numbers.getAll(SelectorQuery(.all)) == [])
    let texts = InMemoryDataSource<String>()
    try await texts.putAll([#"{"n": 1}"#, "[]", "{", "plain"], forId: ["a", "b", "c", "d"])
    #expect(try await texts.getAll(SelectorQuery(.all)) == [#"{"n": 1}"#])
  }

  @Test func `values without JSON are not supported`() async throws {
    struct Opaque {}
    #expect(
      await failure { try await InMemoryDataSource<Opaque>().getAll(SelectorQuery(.all)) } == .queryNotSupported)
    let numbers = InMemoryDataSource<[String: Double]>()
    try await numbers.put(["n": .infinity], forId: "a")
    #expect(await failure { try await numbers.getAll(SelectorQuery(.all)) } == .dataSerialization)
  }

  @Test func `a file's bytes are the document`() async throws {
    try await Subject.inProcess[0].runAtPlace { place async throws in
      let source = FileSystemDataSource(directory: place.url.appendingPathComponent("files"))
      let text = Data(#" {"n": [1, {"m": 2}]} "#.utf8)
      try await source.putAll([text, Data("no JSON".utf8)], forId: ["a", "b"])
      #expect(try await source.getAll(SelectorQuery(.field("n.m", .equal(2)))) == [text])
    }
  }

  @Test func `members that the type lacks, and the revision, can be queried in directories and in stores`() async throws
  {
    struct Wide: Codable { let title, author: String }
    try await Subject.inProcess[0].runAtPlace { place async throws in
      func check(_ wide: AnyDataSource<Wide>, _ narrow: AnyDataSource<Item>) async throws {
        for (id, author) in [("a", "ann"), ("b", "bob")] {
          try await wide.put(Wide(title: id, author: author), forId: id)
        }
        #expect(try await narrow.getAll(SelectorQuery(.field("author", .equal("bob")))) == ["b"])
        #expect(try await narrow.getAll(SelectorQuery(.field("_rev", .greater(1)))) == ["b"])
      }
      try await check(
        AnyDataSource(DeviceStorageDataSource(directory: place.url)),
        AnyDataSource(DeviceStorageDataSource(directory: place.url)))
      let client = try place.server.client
      try await check(
        AnyDataSource(client.dataSource(store: "s", creating: "memory")), AnyDataSource(client.dataSource(store: "s")))
    }
  }

  @Test func `a selector ignores values of another type that don't match`() async throws {
    try await Subject.inProcess[0].runAtPlace { place async throws in
      let client = try place.server.client
      let other = client.dataSource(of: [String: Int].self, store: "s", creating: "memory")
      try await other.put(["n": 1], forId: "a")
      let source = client.dataSource(of: Item.self, store: "s")
      try await source.put("fig", forId: "b")
      #expect(try await source.getAll(SelectorQuery(.field("title", .exists()))) == ["fig"])
      #expect(await failure { try await source.getAll(SelectorQuery(.all)) } == .dataSerialization)
    }
  }

  @Test func `queries with equal selectors are equal and have the same hash`() {
    let (integer, double) = (SelectorQuery(.field("n", .equal(1))), SelectorQuery(.field("n", .equal(1.0))))
    #expect(Set([integer, double]).count == 1)
    #expect(integer != SelectorQuery(.field("n", .equal(2))))
  }
}
