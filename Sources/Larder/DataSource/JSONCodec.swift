import Foundation

/// Values as JSON: what an object becomes is a document, which the server can look into.
public struct JSONCodec<Value: Codable & Sendable>: ValueCodec {
  private let encoder: JSONEncoder
  private let decoder: JSONDecoder

  /// - Parameters:
  ///   - encoder: one that is not changed any more; by default one that leaves slashes as they are.
  ///   - decoder: one that is not changed any more.
  public init(encoder: JSONEncoder = Self.plainEncoder, decoder: JSONDecoder = JSONDecoder()) {
    self.encoder = encoder
    self.decoder = decoder
  }

  public func encode(_ value: Value) throws -> [UInt8] { Array(try encoder.encode(value)) }
  public func decode(_ bytes: [UInt8]) throws -> Value { try decoder.decode(Value.self, from: Data(bytes)) }

  /// A new encoder that writes slashes as they are.
  public static var plainEncoder: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    return encoder
  }
}
