import DataSources
import FoundationEssentials

/// Converts the values of a remote data source to the bytes that a store keeps, and back.
///
/// Each element of a list is encoded separately, so that the server recognizes a list. An error that is no
/// `DataSourceError` reaches the user of the source as `DataSourceError.dataSerialization`.
public protocol ValueCodec<Value>: Sendable {
  associatedtype Value: Sendable

  func encode(_ value: Value) throws -> [UInt8]

  /// Decodes bytes, which may come from any client that writes to the store.
  func decode(_ bytes: [UInt8]) throws -> Value
}

/// Keeps bytes as they are.
public struct BytesCodec: ValueCodec {
  public init() {}
  public func encode(_ value: [UInt8]) -> [UInt8] { value }
  public func decode(_ bytes: [UInt8]) -> [UInt8] { bytes }
}

/// Keeps data as it is.
public struct DataCodec: ValueCodec {
  public init() {}
  public func encode(_ value: Data) -> [UInt8] { Array(value) }
  public func decode(_ bytes: [UInt8]) -> Data { Data(bytes) }
}

/// Keeps a string as its UTF-8 bytes, without quotes. Bytes that are not UTF-8 can't be decoded.
public struct TextCodec: ValueCodec {
  public init() {}
  public func encode(_ value: String) -> [UInt8] { Array(value.utf8) }

  public func decode(_ bytes: [UInt8]) throws -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw DataSourceError(.dataSerialization, "the bytes are not UTF-8")
    }
    return text
  }
}

/// Keeps values as JSON. A value that is encoded as an object becomes a document, which the server can query.
public struct JSONCodec<Value: Codable & Sendable>: ValueCodec {
  private let encoder: JSONEncoder
  private let decoder: JSONDecoder

  /// - Parameters:
  ///   - encoder: An encoder that must not be changed afterwards; by default one that does not escape slashes.
  ///   - decoder: A decoder that must not be changed afterwards.
  public init(encoder: JSONEncoder = Self.plainEncoder, decoder: JSONDecoder = JSONDecoder()) {
    self.encoder = encoder
    self.decoder = decoder
  }

  public func encode(_ value: Value) throws -> [UInt8] { Array(try encoder.encode(value)) }
  public func decode(_ bytes: [UInt8]) throws -> Value { try decoder.decode(Value.self, from: Data(bytes)) }

  /// A new encoder that does not escape slashes.
  public static var plainEncoder: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    return encoder
  }
}

/// Returns the default codec of a type: bytes, data and strings are kept as they are, any other type as JSON, with its
/// own encoder and decoder if it is `CustomJSONCoding`. The result does not depend on whether the caller is generic
/// code.
func defaultCodec<T: Codable & Sendable>(of type: T.Type) -> any ValueCodec<T> {
  let raw: [any ValueCodec] = [BytesCodec(), DataCodec(), TextCodec()]
  for codec in raw {
    if let codec = codec as? any ValueCodec<T> { return codec }
  }
  guard let type = type as? any CustomJSONCoding.Type else { return JSONCodec<T>() }
  return JSONCodec<T>(encoder: type.encoder, decoder: type.decoder)
}
