import DataSources
import Documents
import Foundation
import Larder
import LarderTesting
import Testing
import TypedQueries

/// Requests that a server and data sources run.
@Suite struct RemoteRequestTests {
  struct Person: Codable, Queryable, Equatable {
    var name: String
    var age: Int
    var visits = 0
    var nickname: String?
    var tags: [String] = []
  }

  private static let people = (0..<25).map { Person(name: "p\($0)", age: $0, nickname: $0 % 5 == 0 ? "n" : nil) }

  private func withStore(_ body: (RemoteStore) async throws -> Void) async throws {
    let server = try TestServer.start(stores: ["people": "memory"])
    let store = server.client.store("people")
    for person in Self.people { try await store.put("k\(person.age + 100)", JSONEncoder().encode(person)) }
    try await body(store)
  }

  @Test func `pages follow each other up to the limit`() async throws {
    try await withStore { store in
      func sizes(_ request: Request<Person>, _ size: Int) async throws -> [Int] {
        var sizes: [Int] = []
        for try await page in store.pages(of: request, size: size) { sizes.append(page.count) }
        return sizes
      }
      #expect(try await sizes(Person.all, 10) == [10, 10, 5])
      #expect(try await sizes(Person.all, 25) == [25])
      #expect(try await sizes(Person.all.limit(12), 5) == [5, 5, 2])
      #expect(try await sizes(Person.all.limit(10), 5) == [5, 5])
      #expect(try await sizes(Person.all.limit(0), 5) == [])
      #expect(try await sizes(Person.all.where(\Person.age > 99), 5) == [])
      var ages: [Int] = []
      let request = Person.all.where(\Person.age >= 5).sort(\.age, ascending: false).offset(3).limit(11)
      for try await page in store.pages(of: request, size: 4) { ages += page.map(\.age) }
      #expect(ages == Array((11...21).reversed()))
    }
  }

  @Test func `documents are changed and deleted by requests`() async throws {
    try await withStore { store in
      let young = Person.all.where(\Person.age < 3)
      let changes = try await store.update(
        young, .set(\.nickname, to: "kid"), .increment(\.visits, by: 2), .append("new", to: \.tags))
      #expect(changes.matched == 3)
      #expect(try await store.count(of: Person.all.where(\Person.visits == 2 && \Person.nickname == "kid")) == 3)
      #expect(try await store.fetch(young).allSatisfy { $0.tags == ["new"] })
      try await store.update(young, .set(\.nickname, to: nil))
      #expect(try await store.count(of: Person.all.where(Query.isMissing(\Person.nickname) && \Person.age < 3)) == 3)
      await #expect(throws: FilterError.self) { try await store.delete(young.limit(1)) }
      await #expect(throws: FilterError.self) { try await store.update(young.offset(1), .set(\.age, to: 0)) }
      #expect(try await store.delete(young).changed == 3)
      #expect(try await store.count(of: Person.all) == 22)
    }
  }

  @Test func `a document found by its key has the key and the revision`() async throws {
    struct Keyed: Codable, Queryable {
      var _id: String
      var _rev: Int
      var age: Int
    }
    try await withStore { store in
      #expect(try await store.find(Person.self, id: "k103") == Self.people[3])
      #expect(try await store.find(Person.self, id: "none") == nil)
      let keyed = try #require(try await store.fetchOne(Keyed.all.where(\Keyed._id == "k104")))
      #expect(keyed.age == 4)
      #expect(try await store.fetch(Keyed.all.where(\Keyed._rev <= 2), \._id).count == 2)
    }
  }

  @Test func `every kind of source runs requests`() async throws {
    let server = try TestServer.start()
    let sources: [any KeyValueDataSource<Person>] = [
      InMemoryDataSource(), server.client.dataSource(of: Person.self, store: "p", creating: "memory"),
    ]
    for source in sources {
      for person in Self.people { try await source.put(person, forId: person.age + 100) }
      try await check(source)
    }
  }

  private func check(_ source: some KeyValueDataSource<Person>) async throws {
    let request = Person.all.where(\Person.nickname != nil).sort(\.age, ascending: false)
    #expect(try await source.fetch(request.limit(2), \.age) == [20, 15])
    #expect(try await source.fetchOne(request)?.age == 20)
    #expect(try await source.fetchOne(request.offset(1))?.age == 15)
    #expect(try await source.fetchOne(Person.all.where(\Person.age > 99)) == nil)
    #expect(try await source.count(of: request) == 5)
    #expect(try await source.fetch(request.max(\.age)) == 20)
    #expect(try await source.fetch(request.limit(2).sum(\.age)) == 35)
    #expect(try await source.find(id: 107) == Self.people[7])
    #expect(try await source.find(id: 99) == nil)
    #expect(try await source.update(Person.all.where(\Person.age == 7)) { $0.name = "seven" } == 1)
    #expect(try await source.find(id: 107)?.name == "seven")
    #expect(try await source.delete(Person.all.where(\Person.age > 20)) == 4)
    #expect(try await source.delete(Person.all.sort(\.age).limit(1)) == 1)
    #expect(try await source.count(of: Person.all) == 20)
  }

  @Test func `a remote source counts, changes and deletes on the server`() async throws {
    let server = try TestServer.start()
    let source = server.client.dataSource(of: Person.self, store: "p", creating: "memory")
    for person in Self.people { try await source.put(person, forId: person.age + 100) }
    let old = Person.all.where(\Person.age >= 20)
    #expect(try await source.count(of: old.offset(1)) == 4)
    #expect(try await source.fetch(old.average(\.age)) == 22)
    #expect(try await source.fetch(old.sort(\.age).limit(2).max(\.age)) == 21)
    #expect(try await source.update(old, .increment(\.visits)) == 5)
    #expect(try await source.count(of: Person.all.where(\Person.visits == 1)) == 5)
    #expect(try await source.delete(old.limit(1)) == 1)
    #expect(try await source.delete(old) == 4)
  }

  @Test func `requests read and write in transactions`() async throws {
    struct Item: Codable, Queryable, Identifiable, Equatable {
      var id: Int
      var date: Date
      static let encoder: JSONEncoder = {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .secondsSince1970
        return encoder
      }()
      static let decoder: JSONDecoder = {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .secondsSince1970
        return decoder
      }()
    }
    func date(_ second: Int) -> Date { Date(timeIntervalSince1970: Double(second)) }
    let server = try TestServer.start(stores: ["items": "memory"])
    let store = server.client.store("items")
    let late = Item.all.where(\Item.date >= date(3)).sort(\.id)
    try await store.perform { context in
      for number in 0..<6 { try await context.insert(Item(id: number, date: date(number))) }
      #expect(try await context.count(of: late) == 3)
    }
    #expect(try await store.get("4")?.bytes.map { try JSONValue(parsing: $0.span) } == ["id": 4, "date": 4])
    try await store.perform { context in
      #expect(try await context.fetch(late, \.id) == [3, 4, 5])
      #expect(try await context.fetchOne(late.offset(1))?.decode() == Item(id: 4, date: date(4)))
      #expect(try await context.fetchOne(late.limit(0)) == nil)
      let third = try #require(try await context.find(Item.self, id: 3))
      #expect(third.id == "3" && third.revision != nil)
      try context.update(third) { $0.date = date(0) }
      try context.delete(try #require(try await context.find(Item.self, id: 5)))
      #expect(try await context.find(Item.self, id: 5) == nil)
      #expect(try await context.fetch(late, \.id) == [4])
      #expect(try await context.delete(Item.all.where(\Item.date < date(2))) == 3)
    }
    #expect(try await store.fetch(Item.all, \.id) == [2, 4])
    await #expect(throws: LarderError.self) {
      try await store.perform { context in try await context.insert(Item(id: 4, date: date(9))) }
    }
    await #expect(throws: LarderError.self) {
      try await store.perform { context in
        for item in try await context.fetch(late) {
          try await store.put("4", Item.encoder.encode(Item(id: 4, date: date(7))))
          try context.update(item) { $0.date += 1 }
        }
      }
    }
    #expect(try await store.fetch(late) == [Item(id: 4, date: date(7))])
  }

  @Test func `requests are observed`() async throws {
    try await withStore { store in
      let adults = Person.all.where(\Person.age >= 18)
      var changes = try store.observe(adults).makeAsyncIterator()
      let first = try await changes.next()
      guard case .initial(let people) = first else {
        Issue.record("\(String(describing: first))")
        return
      }
      #expect(people.map(\.value.age) == Array(18...24))
      try await store.put("new", JSONEncoder().encode(Person(name: "new", age: 30)))
      let second = try await changes.next()
      guard case .inserted(let new) = second else {
        Issue.record("\(String(describing: second))")
        return
      }
      #expect(new.key == "new" && new.value == Person(name: "new", age: 30))
      try await store.update(Person.all.where(\Person.name == "new"), .set(\.age, to: 3))
      #expect(try await changes.next() == .removed(key: "new"))
      #expect(throws: FilterError.self) { try store.observe(adults.limit(3)) }
      #expect(throws: FilterError.self) { try store.observe(adults.sort(\.age)) }
    }
  }
}
