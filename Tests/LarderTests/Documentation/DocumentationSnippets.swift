import DataSources
import Documents
import Foundation
import Larder
import LarderTLS
import LarderTesting
import TestSupport
import Testing
import TypedQueries

/// The Swift code of the documentation. It prints what the pages say that it prints.
@Suite struct DocumentationSnippets {
  private final class Output {
    var lines: [String] = []
  }

  struct Person: Codable, Queryable, Identifiable {
    var id: String { name }
    var name: String
    var age: Int
  }

  private struct Account: Codable {
    var balance: Int
  }

  private struct Book: Codable {
    var title: String
  }

  private struct TransferError: Error {}

  private static let catalog = DocumentationCatalog(of: "Larder")
  private let output = Output()

  /// Records what a snippet prints.
  private func print(_ items: Any...) { output.lines.append(items.map { "\($0)" }.joined(separator: " ")) }

  /// Checks that the snippets of a page have printed what the page states.
  private func expectOutput(of page: String) throws {
    let stated = try Self.catalog.page(page).statedOutput
    #expect(!stated.isEmpty)
    #expect(output.lines == stated)
  }

  @Test func overview() throws {
    let larder = try LarderClient("unix:/run/larder.sock")
    let items = larder.store("items")
    // End of the snippet.
    #expect(items.name == "items")
  }

  @Test func `the snippets of Getting Started run`() async throws {
    do {
      let larder = try LarderClient("tcp:127.0.0.1:7411")
      // End of the snippet.
      larder.close()
    }
    do {
      let remote = try LarderClient("tls:db.example:7464", tls: .system)
      // End of the snippet.
      remote.close()
    }
    let server = try TestServer.start()
    let larder = server.client
    // The next snippet.
    try await larder.createStore("items", engine: "memory?limit=256MiB")
    let items = larder.store("items")
    // The next snippet.
    let revision = try await items.put("apple", "red".utf8)
    if let apple = try await items.get("apple"), let bytes = apple.bytes {
      print(String(decoding: bytes, as: UTF8.self), apple.revision == revision)  // red true
    }
    print(try await items.delete("apple"))  // true
    // The next snippet.
    try await items.put("session:1", "Ada".utf8, expiresIn: .seconds(1_800))
    // The next snippet.
    let lines = AsyncStream<String.UTF8View> { lines in
      for number in 1...100_000 { lines.yield("line \(number)\n".utf8) }
      lines.finish()
    }
    try await items.put("report", chunks: lines)
    if let report = try await items.value("report") {
      print(report.byteCount)  // 1088895
      print(String(decoding: try await report.bytes(in: 0..<6), as: UTF8.self))  // line 1
      var byteCount = 0
      for try await chunk in report.chunks(of: 65_536) { byteCount += chunk.count }
      print(byteCount == report.byteCount)  // true
    }
    // The next snippet.
    let first = try await items.put("count", "1".utf8, if: .absent)
    try await items.put("count", "2".utf8, if: .revision(first))
    do {
      try await items.put("count", "3".utf8, if: .revision(first))
    } catch {
      guard error.kind == .conditionFailed else { throw error }
      print("somebody was faster")  // somebody was faster
    }
    // The next snippet.
    try await items.putMany([Write("tree:oak", Array("1".utf8)), Write("tree:elm", Array("2".utf8))])
    print(try await items.getMany(["tree:oak", "tree:fir"]).map { $0 != nil })  // [true, false]
    for try await page in items.pages(of: 100, prefix: "tree:") {
      print(page.map(\.key))  // ["tree:elm", "tree:oak"]
    }
    for try await entry in items.all(prefix: "tree:", reverse: true, keysOnly: true) {
      print(entry.key)
    }
    // End of the snippet.
    try expectOutput(of: "GettingStarted")
  }

  @Test func errors() async throws {
    let server = try TestServer.start(stores: ["items": "memory"])
    await server.stop()
    let items = server.client.with(timeout: .milliseconds(100)).store("items")
    // The next snippet.
    do {
      try await items.put("apple", "green".utf8)
    } catch {
      switch error.kind {
      case .storeFull: print("make room first")
      case .connectFailed, .disconnected, .timedOut: print("try again:", error.isSafeToRetry)  // try again: true
      default: throw error
      }
    }
    // The next snippet.
    var configuration = LarderClient.Configuration()
    configuration.timeout = .seconds(2)
    configuration.backoff = Backoff(base: .milliseconds(10), cap: .seconds(1))
    configuration.retriesReads = false
    configuration.waitsForConnection = false
    // The next snippet.
    let patient = items.with(timeout: .seconds(60))
    // End of the snippet.
    try expectOutput(of: "ErrorsAndRetries")
    #expect(patient.name == "items" && configuration.connections == 1)
  }

  @Test func documents() async throws {
    let server = try TestServer.start(stores: ["people": "memory"])
    let people = server.client.store("people")
    // The next snippet.
    for person in [Person(name: "Ada", age: 36), Person(name: "Bob", age: 12), Person(name: "Cleo", age: 40)] {
      try await people.put(person.id, JSONEncoder().encode(person))
    }
    let adults = Person.all.where(\Person.age >= 18).sort(\.name)
    print(try await people.fetch(adults, \.name))  // ["Ada", "Cleo"]
    print(try await people.count(of: adults))  // 2
    print(try await people.fetch(Person.all.max(\.age)) ?? 0)  // 40
    // The next snippet.
    let query = DocumentQuery(.field("age", .greater(17)), sort: [.descending("age")], limit: 1)
    for try await document in people.find(query) {
      print(document.id ?? "")  // Cleo
    }
    // The next snippet.
    let changes = try await people.update(adults, .increment(\.age, by: 1))
    print(changes.changed)  // 2
    try await people.delete(where: .field("age", .less(13)))
    // The next snippet.
    let index = try await people.ensureIndex(on: ["age"])
    let status = try await people.waitForIndex(named: index)
    print(status.state)  // ready
    // End of the snippet.
    try expectOutput(of: "DocumentsAndIndexes")
    #expect(try await people.count() == 2)
  }

  @Test func changes() async throws {
    let server = try TestServer.start(stores: ["items": "memory", "people": "memory"])
    let (items, people) = (server.client.store("items"), server.client.store("people"))
    // The next snippet.
    var watch = items.watch(prefix: "tree:").makeAsyncIterator()
    _ = try await watch.start()
    try await items.put("tree:oak", "1".utf8)
    if let commit = try await watch.next() {
      for change in commit.changes {
        switch change {
        case .put(let entry): print("put", entry.key)  // put tree:oak
        case .delete(let key): print("deleted", key)
        case .deleteAll: print("deleted all")
        }
      }
    }
    // The next snippet.
    var adults = try people.observe(Person.all.where(\Person.age >= 18)).makeAsyncIterator()
    if case .initial(let documents) = try await adults.next() {
      print(documents.count)  // 0
    }
    try await people.put("Ada", JSONEncoder().encode(Person(name: "Ada", age: 36)))
    if case .inserted(let person) = try await adults.next() {
      print(person.value.name)  // Ada
    }
    // End of the snippet.
    try expectOutput(of: "WatchingAndObserving")
  }

  @Test func transactions() async throws {
    let server = try TestServer.start(stores: ["accounts": "memory"])
    let accounts = server.client.store("accounts")
    // The next snippet.
    try await accounts.apply { batch in
      batch.put("Ada", Array(#"{"balance":100}"#.utf8), if: .absent)
      batch.put("Bob", Array(#"{"balance":0}"#.utf8), if: .absent)
      try batch.increment("count", of: "statistics", by: 2, orCreate: true)
    }
    // The next snippet.
    let rest = try await accounts.perform(retries: 10) { context in
      guard var ada = try await context.get("Ada", as: Account.self),
        var bob = try await context.get("Bob", as: Account.self), ada.balance >= 30
      else { throw TransferError() }
      ada.balance -= 30
      bob.balance += 30
      try context.put("Ada", ada)
      try context.put("Bob", bob)
      return ada.balance
    }
    print(rest)  // 70
    // End of the snippet.
    try expectOutput(of: "Transactions")
  }

  @Test func `data sources`() async throws {
    let server = try TestServer.start()
    let larder = server.client
    // The next snippet.
    let books = larder.dataSource(of: Book.self, store: "books", creating: "log")
    try await books.put(Book(title: "Invisible Cities"), forId: "cities")
    print(try await books.get("cities").title)  // Invisible Cities
    // The next snippet.
    let notes = larder.dataSource(store: "notes", codec: TextCodec(), creating: "memory")
    try await notes.put("remember the milk", forId: "1")
    // The next snippet.
    let cached = CacheRepository(main: books, cache: InMemoryDataSource())
    print(try await cached.get("cities").title)  // Invisible Cities
    // End of the snippet.
    try expectOutput(of: "StoresAsDataSources")
  }

  @Test func testing() async throws {
    let server = try TestServer.start(stores: ["items": "memory"])
    let items = server.client.store("items")
    try await items.put("apple", "red".utf8)
    print(try await items.count())  // 1
    // The next snippet.
    await server.stop()
    do {
      try await items.with(timeout: .milliseconds(100)).put("pear", "green".utf8)
    } catch {
      print(error.kind, error.outcome)  // connectFailed notExecuted
    }
    try server.restart()
    try await server.client.ping()
    // End of the snippet.
    try expectOutput(of: "Testing")
  }

  @Test func `every snippet of the documentation is compiled and run`() throws {
    #expect(try Self.catalog.pages().count == 9)
    let sources = ["Tests/LarderTests/Documentation", "Tests/LarderObservabilityTests"]
    #expect(try Self.catalog.missingSnippets(in: sources) == [])
    #expect(try Self.catalog.deadLinks() == [])
  }

  @Test func `the overview lists every public type`() throws {
    let types = try Self.catalog.publicTypes()
    #expect(types.count >= 25)
    for type in types { #expect(type.isListed, "\(type.name)") }
  }
}
