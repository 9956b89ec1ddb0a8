import DataSources
import Documents
import Foundation
import Larder
import LarderTesting
import SQLiteDataSource
import TestSupport
import Testing
import TypedQueries

/// Where requests run.
enum Backend: String, CaseIterable, CustomTestStringConvertible {
  case memory = "in memory"
  case decoded = "in memory, encoded and decoded"
  case table = "in SQLite"
  case indexedTable = "in SQLite with indexes"
  case scan = "on the server by scan"
  case indexed = "on the server with indexes"

  var testDescription: String { rawValue }
  fileprivate var hasIndexes: Bool { self == .indexed || self == .indexedTable }
}

/// Runs requests over the same values in memory, in a database or on a server.
struct Runner<T: Queryable> {
  private enum Values {
    case array([T], decodesRequests: Bool)
    case table(SQLiteDataSource<T, T>, TemporaryFolder)
    case store(RemoteStore, TestServer)
  }

  private let values: Values

  /// - Parameter fields: The fields that have indexes, with them.
  init(_ rows: [T], on backend: Backend, indexing fields: [FieldPath] = []) async throws {
    let fields = backend.hasIndexes ? fields : []
    switch backend {
    case .memory, .decoded: values = .array(rows, decodesRequests: backend == .decoded)
    case .table, .indexedTable:
      let folder = try TemporaryFolder()
      let database = try SQLiteDatabase(file: folder.url.appendingPathComponent("rows"))
      let source = try SQLiteDataSource(database, store: "rows", of: T.self, indexes: fields)
      try await source.store(
        rows.enumerated().map { KeyValueEntry(key: String($0 + 1_000), value: .single($1)) })
      values = .table(source, folder)
    case .scan, .indexed:
      let server = try TestServer.start(stores: ["rows": "memory"])
      let store = server.client.store("rows")
      for (number, row) in rows.enumerated() { try await store.put(String(number + 1_000), T.encoder.encode(row)) }
      for field in fields { try await store.waitForIndex(named: store.ensureIndex(on: [.ascending(field)])) }
      values = .store(store, server)
    }
  }

  func fetch(_ request: Request<T>) async throws -> [T] {
    switch values {
    case .array(let rows, let decodesRequests): try rows.fetch(decodesRequests ? Self.decoded(request) : request)
    case .table(let source, _): try await source.fetch(request)
    case .store(let store, _): try await store.fetch(request)
    }
  }

  func fetch<Value: Decodable>(_ request: Request<T>, _ field: KeyPath<T, Value>) async throws -> [Value] {
    switch values {
    case .array(let rows, let decodesRequests):
      try rows.fetch(decodesRequests ? Self.decoded(request) : request, field)
    case .table(let source, _): try await source.fetch(request, field)
    case .store(let store, _): try await store.fetch(request, field)
    }
  }

  func fetch<Value>(_ aggregation: Aggregation<T, Value>) async throws -> Value {
    switch values {
    case .array(let rows, _): try rows.fetch(aggregation)
    case .table(let source, _): try await source.fetch(aggregation)
    case .store(let store, _): try await store.fetch(aggregation)
    }
  }

  func fetchOne(_ request: Request<T>) async throws -> T? {
    switch values {
    case .array(let rows, let decodesRequests): try rows.fetchOne(decodesRequests ? Self.decoded(request) : request)
    case .table(let source, _): try await source.fetchOne(request)
    case .store(let store, _): try await store.fetchOne(request)
    }
  }

  func count(of request: Request<T>) async throws -> Int {
    switch values {
    case .array(let rows, let decodesRequests):
      try rows.count(of: decodesRequests ? Self.decoded(request) : request)
    case .table(let source, _): try await source.count(of: request)
    case .store(let store, _): try await store.count(of: request)
    }
  }

  private static func decoded(_ request: Request<T>) throws -> Request<T> {
    try JSONDecoder().decode(Request<T>.self, from: JSONEncoder().encode(request))
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
