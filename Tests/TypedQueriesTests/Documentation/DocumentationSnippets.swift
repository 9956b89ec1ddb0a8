import DataSources
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing
import TypedQueries

/// The Swift code of the documentation. It prints what the pages say that it prints.
@Suite struct DocumentationSnippets {
  private final class Output {
    var lines: [String] = []
  }

  private let output = Output()

  /// Records what a snippet prints.
  private func print(_ items: Any...) { output.lines.append(items.map { "\($0)" }.joined(separator: " ")) }

  private let people = [
    Person(name: "Ada", age: 36, city: "Zürich"), Person(name: "Bob", age: 12), Person(name: "Cleo", age: 40),
  ]

  struct Person: Codable, Queryable, Identifiable {
    var id: String { name }
    var name: String
    var age: Int
    var city: String?
    var tags: [String] = []
    var shout: String { "\(name.uppercased())!" }
  }

  struct TrackingCode: Codable {
    let text: String

    init(from decoder: any Decoder) throws {
      text = try decoder.singleValueContainer().decode(String.self)
      guard text.count == 13 else {
        throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "no code"))
      }
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(text)
    }
  }

  private static let catalog = DocumentationCatalog(of: "TypedQueries")

  /// Checks that the snippets of a page have printed what the page states.
  private func expectOutput(of page: String) throws {
    let stated = try Self.catalog.page(page).statedOutput
    #expect(!stated.isEmpty)
    #expect(output.lines == stated)
  }

  @Test func overview() throws {
    let people = [
      Person(name: "Ada", age: 36, city: "Zürich"), Person(name: "Bob", age: 12), Person(name: "Cleo", age: 40),
    ]
    let request = Person.all.where(\Person.age >= 18 && \Person.city != nil).sort(\.name).limit(20)
    print(try people.fetch(request).map(\.name))  // ["Ada"]
    print(try people.fetch(Person.all.max(\.age)) ?? 0)  // 40
    // End of the snippet.
    try expectOutput(of: "TypedQueries")
  }

  @Test func filters() throws {
    let inTown = Query.contains(\Person.city, "ZURICH", diacriticInsensitive: true)
    let grown: Filter<Person> = \Person.age >= 18 && !inTown
    print(try people.fetch(Person.all.where(grown)).map(\.name))  // ["Cleo"]
    print(grown)
    // The next snippet.
    let short = Query.any(\Person.tags) { Query.like(\String.self, "??") }
    // End of the snippet.
    try expectOutput(of: "Filters")
    #expect(try people.count(of: Person.all.where(short)) == 0)
  }

  @Test func `the snippets about raw predicates run`() throws {
    let most = 1
    let few: Filter<Person> = \Person.age > 10 && "tags.@count <= \(most)"
    let named = Person.all.where(raw: "name BEGINSWITH[c] %@ OR %K = NULL", "c", "city")
    print(try people.fetch(named).map(\.name))  // ["Bob", "Cleo"]
    // The next snippet.
    let wrong = Person.all.where(raw: "age > 3 AND (name = 'x'")
    print(wrong)  // Person.all.where(<the predicate needs an operator or a closing parenthesis at offset 23>)
    // End of the snippet.
    try expectOutput(of: "RawPredicates")
    #expect(try people.count(of: Person.all.where(few)) == 3)
  }

  @Test func fields() throws {
    let loud: Filter<Person> = \Person.shout == "ADA!"
    print(loud)
    // The next snippet.
    struct Parcel: Codable, Queryable {
      var code: TrackingCode
      var weight: Double

      static let fields: FieldNames<Parcel> = [\.code: "code", \.weight: "weight"]
    }
    // End of the snippet.
    try expectOutput(of: "Fields")
    #expect((\Parcel.weight > 3).description == #"{"weight":{"$gt":3.0,"$type":"number"}}"#)
  }

  @Test func running() async throws {
    let source = InMemoryDataSource<Person>()
    for person in people { try await source.put(person, forId: person.name) }
    print(try await source.fetch(Person.all.where(\Person.age < 40).sort(\.age), \.name))  // ["Bob", "Ada"]
    print(try await source.count(of: Person.all.offset(1)))  // 2
    print(try await source.delete(Person.all.where(\Person.age < 18)))  // 1
    let server = try TestServer.start(stores: ["people": "memory"])
    let store = server.client.store("people")
    for person in people { try await store.put(person.name, JSONEncoder().encode(person)) }
    // The next snippet.
    let names = try await store.perform(retries: 10) { context in
      try await context.insert(Person(name: "Dora", age: 101))
      let old = try await context.fetch(Person.all.where(\Person.age > 35).sort(\.name))
      for person in old { try context.update(person) { $0.city = "Chur" } }
      return try old.map { try $0.decode().name }
    }
    print(names)  // ["Ada", "Cleo", "Dora"]
    // The next snippet.
    let json = try JSONEncoder().encode(Person.all.where(\Person.age == 12))
    print(try JSONDecoder().decode(Request<Person>.self, from: json))  // Person.all.where({"age":12})
    // End of the snippet.
    try expectOutput(of: "Running")
  }

  @Test func `every snippet of the documentation is compiled and run`() throws {
    #expect(try Self.catalog.pages().count == 5)
    #expect(try Self.catalog.missingSnippets(in: ["Tests/TypedQueriesTests/Documentation"]) == [])
    #expect(try Self.catalog.deadLinks() == [])
  }

  @Test func `the overview lists every public type`() throws {
    let types = try Self.catalog.publicTypes()
    #expect(types.count >= 12)
    for type in types { #expect(type.isListed, "\(type.name)") }
  }

  @Test func `the texts of raw predicates on the page are accepted`() throws {
    let rows = try Self.catalog.page("RawPredicates").rows("Text")
    #expect(rows.count >= 10)
    for row in rows {
      let text = try #require(DocumentationPage.code(row[0]).first)
      #expect(throws: Never.self, "\(text)") { try Filter<Person>(raw: text).selector }
    }
  }
}
