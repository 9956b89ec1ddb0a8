import FoundationEssentials

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

/// The content of an entry's file (Protocol/directory-format.md, §1): the value as JSON; of a list, each element as
/// JSON after its size in four bytes.
enum EntryContent {
  static func encode(_ value: StoredValue<some Encodable>) throws -> Data {
    switch value {
    case .single(let value): return try ReadableJSON.encode(value)
    case .list(let values):
      var bytes = Data()
      for value in values {
        let element = try ReadableJSON.encode(value)
        guard let count = UInt32(exactly: element.count) else {
          throw DataSourceError(.dataSerialization, "an element of a list has \(element.count) bytes")
        }
        for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: count >> UInt32(shift))) }
        bytes += element
      }
      return bytes
    }
  }

  static func decode<T: Decodable>(_ bytes: Data, isList: Bool, file name: String) throws -> StoredValue<T> {
    guard isList else { return .single(try ReadableJSON.decode(T.self, bytes, file: name)) }
    var (values, rest) = ([T](), bytes)
    while !rest.isEmpty {
      let count = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
      guard rest.count >= 4, rest.count - 4 >= count else {
        throw DataSourceError(.dataSerialization, "the file \(name) is not a list: an element is longer than the file")
      }
      values.append(try ReadableJSON.decode(T.self, Data(rest.dropFirst(4).prefix(count)), file: name))
      rest = rest.dropFirst(4 + count)
    }
    return .list(values)
  }
}

/// JSON that people can read, unless the type has an encoder of its own. Its errors are data source errors.
enum ReadableJSON {
  private static let encoder: JSONEncoder = {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return encoder
  }()

  static func encode<V: Encodable>(_ value: V) throws -> Data {
    let typeEncoder = JSONCoding.encoder(of: V.self)
    do {
      return try (typeEncoder === JSONCoding.defaultEncoder ? encoder : typeEncoder).encode(value) + Data("\n".utf8)
    } catch {
      throw DataSourceError(.dataSerialization, "the value can't be encoded as JSON: \(error)")
    }
  }

  static func decode<V: Decodable>(_ type: V.Type, _ bytes: Data, file name: String) throws -> V {
    do {
      return try JSONCoding.decoder(of: type).decode(type, from: bytes)
    } catch {
      throw DataSourceError(.dataSerialization, "the file \(name) doesn't contain a \(type): \(error)")
    }
  }
}
