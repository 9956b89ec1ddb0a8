import DataSources
import Documents
import Foundation
import Larder
import LarderTesting
import SQLiteDataSource
import TestSupport
import Testing
import TypedQueries

/// Random conditions, written as typed filters, as selectors in JSON and as raw predicates, and evaluated in the
/// plainest way: all of them find the same documents, in memory and on the server.
@Suite struct RandomRequestTests {
  @Test func `random typed filters, selectors and raw predicates match the same documents`() throws {
    var generator = Generator(random: .announced())
    let documents = (0..<60).map { _ in generator.document() }
    let texts = documents.map { Document($0.description) }
    for _ in 0..<(SeededGenerator.isThorough ? 5_000 : 400) {
      let form = generator.condition(depth: 3)
      let expected = documents.map { form.holds($0) }
      let selectors = [
        try form.typed.selector, try Selector(parsing: form.json),
        try Filter<Thing>(raw: form.raw, arguments: form.arguments).selector,
      ]
      for selector in selectors {
        let compiled = try CompiledSelector(selector)
        #expect(texts.map { compiled.matches($0) } == expected, "\(form.json) as \(selector)")
        #expect(try Selector(parsing: selector.description) == selector)
      }
    }
  }

  @Test func `random requests find the same in SQLite, on the server and in memory`()
    async throws
  {
    var generator = Generator(random: .announced())
    let documents = (0..<120).map { _ in generator.document() }
    let entries = documents.enumerated().map {
      KeyValueEntry(key: String($0 + 1_000), value: .single($1))
    }
    let fields: [FieldPath] = ["n", "k", "m", "s", "t", "tags", "grid"]
    let folder = try TemporaryFolder()
    let database = try SQLiteDatabase(file: folder.url.appendingPathComponent("documents"))
    let server = try TestServer.start(stores: ["scanned": "memory", "indexed": "memory"])
    var sources: [any KeyValueDataSource<JSONValue>] = []
    for (name, indexed) in [("scanned", []), ("indexed", fields)] {
      let table = try SQLiteDataSource(database, store: name, of: JSONValue.self, indexes: indexed)
      let store = server.client.store(name)
      for field in indexed {
        try await store.waitForIndex(named: store.ensureIndex(on: [.ascending(field)]))
      }
      sources += [table, server.client.dataSource(of: JSONValue.self, store: name)]
    }
    for source in sources { try await source.store(entries) }
    for _ in 0..<(SeededGenerator.isThorough ? 1_000 : 60) {
      let form = generator.condition(depth: 3)
      let expected = documents.indices.filter { form.holds(documents[$0]) }.map {
        String($0 + 1_000)
      }
      let query = try Thing.all.where(form.typed).query
      for source in sources {
        #expect(try await source.entries(matching: query).map(\.key) == expected, "\(query)")
      }
      #expect(
        try await server.client.store("indexed").count(of: Thing.all.where(form.typed))
          == expected.count)
    }
  }
}
