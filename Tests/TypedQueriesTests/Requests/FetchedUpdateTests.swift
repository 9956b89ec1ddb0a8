import Foundation
import Larder
import LarderTesting
import Testing
import TypedQueries

/// Updates and deletions of fetched documents in transactions.
@Suite struct FetchedUpdateTests {
  struct Counter: Codable, Queryable, Equatable {
    var a = 0
    var b = 0
  }

  private func withCounter(_ body: (RemoteStore) async throws -> Void) async throws {
    let server = try TestServer.start(stores: ["counters": "memory"])
    let store = server.client.store("counters")
    try await put(Counter(), to: store)
    try await body(store)
  }

  private func put(_ counter: Counter, to store: RemoteStore) async throws {
    try await store.put("c", JSONEncoder().encode(counter))
  }

  private func fetch(_ store: RemoteStore) async throws -> Fetched<Counter> {
    try await store.perform { context in try #require(try await context.find(Counter.self, id: "c")) }
  }

  private func value(_ store: RemoteStore) async throws -> Counter? {
    try await store.get("c")?.bytes.map { try JSONDecoder().decode(Counter.self, from: Data($0)) }
  }

  @Test func `two updates of a document in one transaction both take effect`() async throws {
    try await withCounter { store in
      try await store.perform { context in
        let counter = try #require(try await context.find(Counter.self, id: "c"))
        try context.update(counter) { $0.a = 1 }
        try context.update(counter) { $0.b = 2 }
        let own = try #require(try await context.find(Counter.self, id: "c"))
        #expect(own.revision == nil)
        try context.update(own) { $0.b += 1 }
      }
      #expect(try await value(store) == Counter(a: 1, b: 3))
    }
  }

  @Test func `a document that was fetched before is written only if it is still the same`() async throws {
    try await withCounter { store in
      let counter = try await fetch(store)
      try await store.perform { context in try context.update(counter) { $0.a = 1 } }
      #expect(try await value(store) == Counter(a: 1))
      typealias Write = @Sendable (TransactionContext) throws -> Void
      let writes: [Write] = [{ try $0.update(counter) { $0.b = 2 } }, { try $0.delete(counter) }]
      for write in writes {
        for readsFirst in [false, true] {
          do {
            try await store.perform { context in
              if readsFirst { _ = try await context.get("c") }
              try write(context)
            }
            Issue.record("the document was written")
          } catch let error as LarderError {
            #expect(error.kind == .conditionFailed && error.isSafeToRetry, "\(error)")
          }
        }
      }
      #expect(try await value(store) == Counter(a: 1))
      let newer = try await fetch(store)
      try await store.perform { context in try context.delete(newer) }
      #expect(try await value(store) == nil)
    }
  }

  @Test func `a transaction doesn't update a document it has deleted or another one has written`() async throws {
    try await withCounter { store in
      let own = try await store.perform { context in
        let counter = try #require(try await context.find(Counter.self, id: "c"))
        try context.update(counter) { $0.a = 1 }
        return try #require(try await context.find(Counter.self, id: "c"))
      }
      try await put(Counter(b: 7), to: store)
      for isDeletion in [false, true] {
        do {
          try await store.perform { context in
            if isDeletion { try context.delete(own) } else { try context.update(own) { $0.a = 2 } }
          }
          Issue.record("the document was written")
        } catch let error as LarderError { #expect(error.kind == .illegalArgument, "\(error)") }
      }
      do {
        try await store.perform { context in
          let counter = try #require(try await context.find(Counter.self, id: "c"))
          try context.delete(counter)
          try context.delete(counter)
          try context.update(counter) { $0.a = 2 }
        }
        Issue.record("a deleted document was written")
      } catch let error as LarderError { #expect(error.kind == .notFound, "\(error)") }
      #expect(try await value(store) == Counter(b: 7))
    }
  }
}
