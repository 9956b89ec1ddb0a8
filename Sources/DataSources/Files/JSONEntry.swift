import Foundation

/// An entry as JSON: `{"key": …, "value": …}`, or `{"key": …, "list": […]}`.
package struct JSONEntry<T: Codable & Sendable>: Codable, Sendable {
  package let entry: KeyValueEntry<T>

  private enum CodingKeys: CodingKey {
    case key, value, list
  }

  package init(_ entry: KeyValueEntry<T>) {
    self.entry = entry
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let value: StoredValue<T> =
      if container.contains(.list) {
        .list(try container.decode([T].self, forKey: .list))
      } else {
        .single(try container.decode(T.self, forKey: .value))
      }
    entry = KeyValueEntry(key: try container.decode(String.self, forKey: .key), value: value)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(entry.key, forKey: .key)
    switch entry.value {
    case .single(let value): try container.encode(value, forKey: .value)
    case .list(let values): try container.encode(values, forKey: .list)
    }
  }
}

/// Readable JSON, and its errors as those of a data source.
enum ReadableJSON {
  static func encode(_ value: some Encodable) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    do {
      return try encoder.encode(value) + Data("\n".utf8)
    } catch {
      throw DataSourceError(.dataSerialization, "a value has no JSON: \(error)")
    }
  }

  static func decode<V: Decodable>(_ type: V.Type, _ bytes: Data, file name: String) throws -> V {
    do {
      return try JSONDecoder().decode(type, from: bytes)
    } catch {
      throw DataSourceError(.dataSerialization, "the file \(name) is no \(type): \(error)")
    }
  }
}
