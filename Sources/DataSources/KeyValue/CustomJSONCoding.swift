import FoundationEssentials

/// A type whose values are JSON of their own form in every data source, such as with names in snake case.
///
/// Only whole values are encoded in this form: not those that are parts of other values.
public protocol CustomJSONCoding: Codable, Sendable {
  /// The encoder that writes values of the type. It must not be changed once it was returned.
  static var encoder: JSONEncoder { get }
  /// The decoder that reads values of the type. It must not be changed once it was returned.
  static var decoder: JSONDecoder { get }
}

/// The encoders and decoders of types: their own if they have some, or else the default ones.
package enum JSONCoding {
  /// An encoder that doesn't escape slashes.
  package static let defaultEncoder: JSONEncoder = {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    return encoder
  }()
  package static let defaultDecoder = JSONDecoder()

  package static func encoder(of type: Any.Type) -> JSONEncoder {
    (type as? any CustomJSONCoding.Type)?.encoder ?? defaultEncoder
  }

  package static func decoder(of type: Any.Type) -> JSONDecoder {
    (type as? any CustomJSONCoding.Type)?.decoder ?? defaultDecoder
  }
}
