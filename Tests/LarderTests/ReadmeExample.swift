import DataSources
import Documents
import Foundation
import Larder
import LarderTesting
import Testing
import TypedQueries

@Suite struct ReadmeExample {
  @Test func `the README's example runs as described`() async throws {
    try await withServer { server, _ in
      try await server.dropStore("items")
      try await Self.example(on: server)
      #expect(try await server.store("items").count() == 2)
    }
  }

  @Test func `the README's first example prints the cart`() async throws {
    let server = try TestServer.start(stores: ["carts": "memory"])
    let carts = try await Self.carts(on: server.client)
    #expect(carts == [try JSONValue(parsing: #"{"_id":"ada","items":["tea","milk","honey"]}"#)])
  }

  @Test func `the README's data sources work as described`() async throws {
    let server = try TestServer.start()
    try await Self.repository(on: server.client)
    #expect(try await server.client.store("books").get("7")?.bytes == Array(#"{"title":"Invisible Cities"}"#.utf8))
  }

  @Test func `the README's documents are found`() throws {
    let (found, cats) = try Self.documents()
    #expect(found == ["_id": "fred23", "age": 23])
    #expect(cats.map(\.id) == ["fred23"])
  }

  @Test func `the README's transfer moves money`() async throws {
    let server = try TestServer.start()
    try await Self.transfer(on: server.client)
    let accounts = server.client.store("accounts")
    #expect(try await accounts.get("bob")?.bytes == Array(#"{"balance":30}"#.utf8))
    #expect(try await accounts.get("statistics")?.bytes == Array(#"{"count":1}"#.utf8))
  }

  @Test func `the README's changes are observed`() async throws {
    let server = try TestServer.start(stores: ["people": "memory"])
    let people = server.client.store("people")
    try await people.put("a", Array(#"{"age":20}"#.utf8))
    let observing = Task { try await Self.observe(people) }
    while try await people.stats()["watches"] != 1 { try await Task.sleep(for: .milliseconds(1)) }
    observing.cancel()
    await #expect(throws: LarderError.self) { try await observing.value }
  }

  @Test func `the README's query finds the same in three ways`() async throws {
    let server = try TestServer.start(stores: ["people": "memory"])
    let people = server.client.store("people")
    try await people.put("mike12", #"{"name":"mike","age":12,"pet":{"species":"cat"}}"#.utf8)
    try await people.put("mike34", #"{"name":"mike","age":34,"pet":{"species":"dog"}}"#.utf8)
    try await people.put("fred23", #"{"name":"fred","age":23,"pet":{"species":"cat"}}"#.utf8)
    let (names, ids, same) = try await Self.threeWays(server.client)
    #expect(names == ["fred"])
    #expect(ids == ["fred23"])
    #expect(same == ["fred"])
  }

  @Test(arguments: [
    "let larder", "let client", "let people", "struct Person", "try await client.createStore", "let changes",
    "let books = CacheRepository",
    "let live",
  ])
  func `the README shows the example that is run`(_ beginning: String) throws {
    let here = URL(fileURLWithPath: #filePath)
    let readme = here.deletingLastPathComponent().appendingPathComponent("../../README.md")
    let text = try String(contentsOf: readme, encoding: .utf8)
    let block = try #require(
      text.components(separatedBy: "```swift\n\(beginning)").dropFirst().first?.components(separatedBy: "```").first)
    let shown = block.split(separator: "\n").dropFirst().map { $0.trimmingCharacters(in: .whitespaces) }
    let source = try String(contentsOf: here, encoding: .utf8).split(separator: "\n").map {
      $0.trimmingCharacters(in: .whitespaces)
    }
    // The fixtures that run the examples shut down their client.
    let run = shown.filter { $0 != "await client.shutdown()" }
    let start = try #require(source.firstIndex(of: run[0]))
    #expect(Array(source[start..<start + run.count]) == run)
  }

  /// Returns the documents that the example prints.
  private static func carts(on larder: LarderClient) async throws -> [JSONValue] {
    let carts = larder.store("carts")
    try await carts.put("ada", #"{"items":["tea","milk"],"total":7}"#.utf8, expiresIn: .seconds(1_800))
    try await carts.update(
      where: .field("items", .equal("tea")),
      DocumentUpdate(changes: [.push("honey", to: "items"), .increment("total", by: 3)]))
    let query = DocumentQuery(.field("total", .greater(5)), fields: ["_id", "items"])
    for document in try await carts.find(query).result().documents {
      print(try document.value())  // {"_id":"ada","items":["tea","milk","honey"]}
    }
    return try await carts.find(query).result().documents.map { try $0.value() }
  }

  private static func example(on client: LarderClient) async throws {
    try await client.createStore("items")
    let items = client.store("items")

    let revision = try await items.put("book:1", "The Name of the Rose".utf8)
    try await items.put("book:2", "Invisible Cities".utf8, expiresIn: .seconds(3_600))

    if let entry = try await items.get("book:1"), let bytes = entry.bytes {
      print(String(decoding: bytes, as: UTF8.self), entry.revision == revision)
    }
    for try await page in items.pages(of: 100, prefix: "book:") {
      for entry in page { print(entry.key) }
    }
  }

  /// Returns the first document of the query, and those of the parsed selector.
  private static func documents() throws -> (found: JSONValue?, cats: [Document]) {
    let people = [
      Document(#"{"name":"mike","age":34,"pet":{"species":"dog"}}"#, id: "mike34"),
      Document(#"{"name":"fred","age":23,"pet":{"species":"cat"}}"#, id: "fred23"),
    ]
    let adults = Selector.field("age", .greater(18)) && .field("pet.species", .exists())
    let query = DocumentQuery(
      adults, sort: [.ascending("name"), .descending("age")], limit: 20, fields: ["_id", "age"])
    for document in try people.find(query).documents { print(try document.value()) }

    let cats = try people.find(Selector(parsing: #"{"pet.species":"cat"}"#))
    return (try people.find(query).documents.first?.value(), cats)
  }

  private struct Account: Codable {
    var balance: Int
  }

  private struct UnknownAccount: Error {}

  private static func transfer(on client: LarderClient) async throws {
    try await client.createStore("accounts")
    let accounts = client.store("accounts")
    try await accounts.apply { batch in
      batch.put("alice", Array(#"{"balance":100}"#.utf8), if: .absent)
      try batch.increment("count", of: "statistics", by: 1, orCreate: true)
    }
    let rest = try await accounts.perform(retries: 10) { context in
      guard var alice = try await context.get("alice", as: Account.self) else { throw UnknownAccount() }
      var bob = try await context.get("bob", as: Account.self) ?? Account(balance: 0)
      alice.balance -= 30
      bob.balance += 30
      try context.put("alice", alice)
      try context.put("bob", bob)
      return alice.balance
    }
    #expect(rest == 70)
  }

  private struct Person: Codable {
    let age: Int
  }

  private static func observe(_ store: RemoteStore) async throws {
    let changes = store.observe(.field("age", .greater(17)), as: Person.self)
    for try await change in changes {
      switch change {
      case .initial(let people): print(people.count, "adults")
      case .inserted(let person), .updated(let person): print(person.key, person.value.age)
      case .removed(let key): print("no longer an adult, or gone:", key)
      }
    }
  }

  private static func threeWays(
    _ client: LarderClient
  ) async throws -> (names: [String], ids: [String], same: [String]) {
    struct Person: Codable, Queryable {
      var name: String
      var age: Int
      var pet: Pet

      struct Pet: Codable {
        var species: String
      }
    }
    let typed = Person.all.where(\Person.age > 20 && \Person.pet.species == "cat").sort(\.name)
    let selector = try Selector(parsing: #"{"age":{"$gt":20,"$type":"number"},"pet.species":"cat"}"#)
    let predicate = Person.all.where("age > 20 AND pet.species = 'cat'").sort(\.name)

    let people = client.store("people")
    let names = try await people.fetch(typed, \.name)
    let documents = try await people.find(DocumentQuery(selector, sort: ["name"])).result().documents
    let same = try await people.fetch(predicate).map(\.name)
    print(names, documents.compactMap(\.id), same)  // ["fred"] ["fred23"] ["fred"]
    #expect(try typed.query.selector == selector)
    #expect(try predicate.query.selector == selector)
    return (names, documents.compactMap(\.id), same)
  }

  private struct Book: Codable, Equatable, Sendable {
    let title: String
  }

  private static func repository(on client: LarderClient) async throws {
    let books = CacheRepository(
      main: client.dataSource(of: Book.self, store: "books", creating: "memory"),
      cache: InMemoryDataSource())

    try await books.put(Book(title: "Invisible Cities"), forId: 7)
    let book = try await books.get(7)
    let asOfNow = try await books.get(7, operation: .mainSync)
    let page = try await books.getAll(PaginationOffsetLimitQuery(offset: 0, limit: 20), operation: .main)
    #expect([book, asOfNow] + page == Array(repeating: Book(title: "Invisible Cities"), count: 3))

    let live = LiveCacheRepository(main: client.dataSource(of: Book.self, store: "books"), limit: 10_000)

    let current = try await live.get(7)
    try await live.put(Book(title: "The Castle of Crossed Destinies"), forId: 8)
    #expect(try await live.get(8) != current)
  }
}
