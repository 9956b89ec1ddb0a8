import Documents
import Foundation
import Larder
import LarderTesting
import Testing
import TypedQueries

/// Where requests run.
enum Backend: String, CaseIterable, CustomTestStringConvertible {
  case memory = "in memory"
  case scan = "on the server by scan"
  case indexed = "on the server with indexes"

  var testDescription: String { rawValue }
}

/// Runs requests over the same values in memory or on a server.
struct Runner<T: Queryable> {
  private let rows: [T]
  private let server: TestServer?
  let store: RemoteStore?

  /// - Parameter fields: The fields that have indexes, with them.
  init(_ rows: [T], on backend: Backend, indexing fields: [FieldPath] = []) async throws {
    self.rows = rows
    guard backend != .memory else {
      (server, store) = (nil, nil)
      return
    }
    let server = try TestServer.start(stores: ["rows": "memory"])
    let store = server.client.store("rows")
    for (number, row) in rows.enumerated() {
      let key = String(number + 1_000)
      try await store.put(key, T.encoder.encode(row))
    }
    if backend == .indexed {
      for field in fields {
        try await store.waitForIndex(named: store.ensureIndex(on: [.ascending(field)]))
      }
    }
    (self.server, self.store) = (server, store)
  }

  func fetch(_ request: Request<T>) async throws -> [T] {
    if let store { try await store.fetch(request) } else { try rows.fetch(request) }
  }

  func fetch<Value: Decodable>(_ request: Request<T>, _ field: KeyPath<T, Value>) async throws -> [Value] {
    if let store { try await store.fetch(request, field) } else { try rows.fetch(request, field) }
  }

  func fetch<Value>(_ aggregation: Aggregation<T, Value>) async throws -> Value {
    if let store { try await store.fetch(aggregation) } else { try rows.fetch(aggregation) }
  }

  func fetchOne(_ request: Request<T>) async throws -> T? {
    if let store { try await store.fetchOne(request) } else { try rows.fetchOne(request) }
  }

  func count(of request: Request<T>) async throws -> Int {
    if let store { try await store.count(of: request) } else { try rows.count(of: request) }
  }
}

extension Runner<Row> {
  /// Runs on rows, with indexes of some of their fields.
  static func make(_ rows: [Row], on backend: Backend) async throws -> Runner {
    try await Runner(rows, on: backend, indexing: ["a", "b", "c", "d", "name", "id", "tags", "subs.price"])
  }

  /// Returns the numbers of the rows that match.
  func a(_ filter: Filter<Row>) async throws -> [Int] { try await fetch(Row.all.where(filter), \.a) }
}
