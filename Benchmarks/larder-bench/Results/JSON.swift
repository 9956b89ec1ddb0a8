import Foundation

/// Results as files: sorted and indented, so that two of them can be compared by line too.
enum JSON {
  static func encode(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }

  static func decode<T: Decodable>(_ type: T.Type, from path: String) throws -> T {
    guard let bytes = FileManager.default.contents(atPath: path) else { throw BenchError("can't read \(path)") }
    do { return try JSONDecoder().decode(type, from: bytes) } catch {
      throw BenchError("\(path) is not a result of larder-bench: \(error)")
    }
  }
}
