/// The first two cases of enums without payloads, whose raw values or keys can't be guessed.
///
/// Safe because it reads only types of at most one byte, and only the bytes 0 and 1: an enum that needs a byte has at
/// least two values, which are numbered from 0. One that needs none has one value: an enum without cases has neither
/// raw values nor keys to ask for. What turns out to be no enum is not used.
enum EnumCases {
  /// Returns two cases of an enum with raw values; nothing for other types.
  static func first<Value>(of type: Value.Type) -> [Value] {
    guard type is any RawRepresentable.Type else { return [] }
    return cases(type)
  }

  /// Returns two keys of an enum of coding keys; nothing for other types.
  static func firstKeys<Key: CodingKey>(of type: Key.Type) -> [Key] { cases(type) }

  private static func cases<Value>(_ type: Value.Type) -> [Value] {
    guard MemoryLayout<Value>.size <= 1, _isPOD(type) else { return [] }
    let values = unsafe [UInt8](0...1).withUnsafeBytes { bytes in
      bytes.indices.prefix(MemoryLayout<Value>.size + 1).map { unsafe bytes.load(fromByteOffset: $0, as: Value.self) }
    }
    return values.allSatisfy { Mirror(reflecting: $0).displayStyle == .enum } ? values : []
  }
}
