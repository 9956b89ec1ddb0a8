import DataSources
import Foundation

/// Bytes as they are.
public struct BytesCodec: ValueCodec {
  public init() {}
  public func encode(_ value: [UInt8]) -> [UInt8] { value }
  public func decode(_ bytes: [UInt8]) -> [UInt8] { bytes }
}

/// Data as it is.
public struct DataCodec: ValueCodec {
  public init() {}
  public func encode(_ value: Data) -> [UInt8] { Array(value) }
  public func decode(_ bytes: [UInt8]) -> Data { Data(bytes) }
}

/// Text as its UTF-8 bytes, without quotes. Bytes that are no UTF-8 are no text.
public struct TextCodec: ValueCodec {
  public init() {}
  public func encode(_ value: String) -> [UInt8] { Array(value.utf8) }

  public func decode(_ bytes: [UInt8]) throws -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw DataSourceError(.dataSerialization, "bytes that are no UTF-8")
    }
    return text
  }
}

/// The codec of a type for which none is given: bytes, data and text are kept as they are, anything else as JSON. It is the same for a
/// type that only generic code knows.
func standardCodec<T: Codable & Sendable>(of type: T.Type) -> any ValueCodec<T> {
  let raw: [any ValueCodec] = [BytesCodec(), DataCodec(), TextCodec()]
  for codec in raw {
    if let codec = codec as? any ValueCodec<T> { return codec }
  }
  return JSONCodec<T>()
}
