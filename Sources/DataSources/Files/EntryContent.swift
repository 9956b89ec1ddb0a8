import Foundation

/// What is in the file of an entry (Protocol/directory-format.md, §1): the value as JSON; of a list each element as JSON, behind its size
/// in four bytes.
enum EntryContent {
  static func bytes(of value: StoredValue<some Encodable>) throws -> Data {
    switch value {
    case .single(let value): return try ReadableJSON.encode(value)
    case .list(let values):
      var bytes = Data()
      for value in values {
        let element = try ReadableJSON.encode(value)
        guard let count = UInt32(exactly: element.count) else {
          throw DataSourceError(.dataSerialization, "a list's element of \(element.count) bytes")
        }
        for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: count >> UInt32(shift))) }
        bytes += element
      }
      return bytes
    }
  }

  static func value<T: Decodable>(_ bytes: Data, isList: Bool, file name: String) throws -> StoredValue<T> {
    guard isList else { return .single(try ReadableJSON.decode(T.self, bytes, file: name)) }
    var (values, rest) = ([T](), bytes)
    while !rest.isEmpty {
      let count = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
      guard rest.count >= 4, rest.count - 4 >= count else {
        throw DataSourceError(.dataSerialization, "the file \(name) is no list: an element is longer than the file")
      }
      values.append(try ReadableJSON.decode(T.self, Data(rest.dropFirst(4).prefix(count)), file: name))
      rest = rest.dropFirst(4 + count)
    }
    return .list(values)
  }
}
