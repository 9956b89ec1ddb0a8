import DataSources

extension RemoteDataSource {
  func encoded(_ value: StoredValue<T>, _ key: String) throws -> EntryValue {
    try serialising(key) {
      switch value {
      case .single(let value): .single(try codec.encode(value))
      case .list(let values): .list(try values.map(codec.encode))
      }
    }
  }

  func decoded(_ entry: Entry) throws -> KeyValueEntry<T> {
    KeyValueEntry(key: entry.key, value: try decoded(entry.value, entry.key))
  }

  func decoded(_ value: EntryValue, _ key: String) throws -> StoredValue<T> {
    try serialising(key) {
      switch value {
      case .single(let bytes): .single(try codec.decode(bytes))
      case .list(let elements): .list(try elements.map(codec.decode))
      }
    }
  }

  private func serialising<R>(_ key: String, _ body: () throws -> R) throws -> R {
    do { return try body() } catch let error as DataSourceError { throw error } catch {
      throw DataSourceError(.dataSerialization, "\(key.debugDescription) has no \(T.self): \(error)")
    }
  }
}
