import Documents
import FoundationEssentials

extension KeyValueDataSource {
  public func entries(matching query: DocumentQuery) async throws -> [KeyValueEntry<T>] {
    try await entries(in: .all).find(query)
  }

  /// Returns the first value that a query finds.
  func first(_ query: SelectorQuery) async throws -> T {
    var first = query.query
    first.limit = min(first.limit ?? 1, 1)
    guard let value = try await values(SelectorQuery(first)).first else {
      throw DataSourceError(.notFound, "no value matches the selector")
    }
    return value
  }

  /// Returns the values that a query finds, in its order.
  func values(_ query: SelectorQuery) async throws -> [T] {
    let query = query.query
    guard query.fields.isEmpty else {
      throw DataSourceError(.illegalArgument, "a data source returns whole values: the query can't have fields")
    }
    guard query.skip >= 0, query.limit ?? 0 >= 0 else {
      throw DataSourceError(.illegalArgument, "skip and limit of a query must not be negative")
    }
    do {
      return try await entries(matching: query).flatMap(\.value.elements)
    } catch let error as SelectorError {
      throw DataSourceError(.illegalArgument, "\(error)")
    }
  }
}

extension Array {
  /// Returns the entries whose single values, as JSON, a query finds, in its order.
  /// - Precondition: The entries are in the order of their keys' bytes, and each key occurs once.
  package func find<T>(_ query: DocumentQuery) throws -> [KeyValueEntry<T>] where Element == KeyValueEntry<T> {
    var finder = try DocumentFinder(query, isOrdered: true)
    let encoder = try ValueEncoder<T>()
    var values: [EntryKey: T] = [:]
    for entry in self where !finder.isFinished {
      guard let value = entry.value.single else { continue }
      if finder.examine(Document(try encoder.json(of: value, entry.key), id: entry.key)) {
        values[EntryKey(entry.key)] = value
      }
    }
    return finder.result().documents.map { document in
      let key = document.id!
      return KeyValueEntry(key: key, value: .single(values[EntryKey(key)]!))
    }
  }
}

/// The JSON of values, for queries about documents.
private struct ValueEncoder<T> {
  private let encoder = JSONCoding.encoder(of: T.self)

  init() throws {
    guard T.self is any Encodable.Type else {
      throw DataSourceError(.queryNotSupported, "a selector can't find values of \(T.self), which isn't Encodable")
    }
  }

  /// Returns the JSON of a value. Bytes and text are what they are, as in all sources.
  func json(of value: T, _ key: String) throws -> [UInt8] {
    switch value {
    case let bytes as [UInt8]: return bytes
    case let bytes as Data: return Array(bytes)
    case let text as String: return Array(text.utf8)
    case let value as any Encodable:
      do { return Array(try encoder.encode(value)) } catch {
        throw DataSourceError(
          .dataSerialization, "the value of \(key.debugDescription) can't be encoded as JSON: \(error)")
      }
    default: return []
    }
  }
}
