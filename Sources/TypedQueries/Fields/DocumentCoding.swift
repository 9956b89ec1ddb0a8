import DataSources
import Documents
import FoundationEssentials

/// The encoder and the decoder of documents of a type, and between values and JSON.
package struct DocumentCoding: Sendable {
  /// The coding of the documents in whose arrays the elements are that filters are made for; nil outside of arrays.
  @TaskLocal static var enclosing: DocumentCoding?

  /// The type of documents if it has an encoder of its own.
  private let type: (any CustomJSONCoding.Type)?

  /// - Parameter type: The type of documents, or of elements of their arrays.
  package init(of type: Any.Type) {
    self = Self.enclosing ?? DocumentCoding(type: type as? any CustomJSONCoding.Type)
  }

  private init(type: (any CustomJSONCoding.Type)?) { self.type = type }

  private var encoder: JSONEncoder { type?.encoder ?? JSONCoding.defaultEncoder }
  var decoder: JSONDecoder { type?.decoder ?? JSONCoding.defaultDecoder }

  /// Calls a closure that makes filters for elements of arrays in the documents: their encoder writes the elements.
  func forElements<Result>(_ body: () throws -> Result) rethrows -> Result {
    try Self.$enclosing.withValue(self, operation: body)
  }

  /// Returns what a value is in documents of a type.
  /// - Throws: `FilterError` if the value can't be encoded.
  package static func json<Value: Encodable>(of value: Value, in type: Any.Type) throws -> JSONValue {
    // What every encoder writes the same way needs none. The most common types come first.
    if Value.self == Int.self, let value = value as? Int { return .integer(Int64(value)) }
    if Value.self == String.self, let value = value as? String { return .string(value) }
    if let json = try (value as? any PlainValue)?.plainJSON { return json }
    return try DocumentCoding(of: type).encoded(value)
  }

  /// Returns what a value is in documents.
  /// - Throws: `FilterError` if the value can't be encoded.
  package func json(of value: some Encodable) throws -> JSONValue {
    if let json = try (value as? any PlainValue)?.plainJSON { return json }
    return try encoded(value)
  }

  private func encoded(_ value: some Encodable) throws -> JSONValue {
    do { return try JSONValue(parsing: Array(encoder.encode(value)).span) } catch {
      throw FilterError(.badValue, "\(value) can't be encoded as JSON: \(error)")
    }
  }

  /// Returns the document that a value is encoded as.
  /// - Throws: The errors of the encoder.
  package func bytes(of value: some Encodable) throws -> [UInt8] {
    Array(try encoder.encode(value))
  }

  /// Returns the value that JSON in a document stands for; null for a missing field.
  /// - Throws: The errors of the decoder.
  package func value<Value: Decodable>(_ type: Value.Type = Value.self, of json: JSONValue?) throws -> Value {
    if let value = json as? Value { return value }
    return try value(type, in: (json ?? .null).encoded())
  }

  /// Returns the value that the text of a document stands for.
  /// - Throws: The errors of the decoder.
  package func value<Value: Decodable>(_ type: Value.Type = Value.self, in text: [UInt8]) throws -> Value {
    try decoder.decode(Value.self, from: Data(text))
  }
}

extension DocumentCoding: Hashable {
  package static func == (left: DocumentCoding, right: DocumentCoding) -> Bool { left.type == right.type }
  package func hash(into hasher: inout Hasher) { hasher.combine(type.map { ObjectIdentifier($0) }) }
}

/// A value that every `JSONEncoder` writes the same way.
private protocol PlainValue {
  /// The value as JSON; nil if the encoder is needed.
  /// - Throws: `FilterError` if documents can't have exactly this value.
  var plainJSON: JSONValue? { get throws }
}

extension PlainValue where Self: BinaryInteger {
  fileprivate var plainJSON: JSONValue? {
    get throws {
      if let integer = Int64(exactly: self) { return .integer(integer) }
      if let double = Double(exactly: self) { return .double(double) }
      throw FilterError(.badValue, "\(self) is too large: documents have numbers above \(Int64.max) only as doubles")
    }
  }
}

extension Int: PlainValue {}
extension Int8: PlainValue {}
extension Int16: PlainValue {}
extension Int32: PlainValue {}
extension Int64: PlainValue {}
extension UInt: PlainValue {}
extension UInt8: PlainValue {}
extension UInt16: PlainValue {}
extension UInt32: PlainValue {}
extension UInt64: PlainValue {}

extension String: PlainValue {
  fileprivate var plainJSON: JSONValue? { .string(self) }
}

extension Bool: PlainValue {
  fileprivate var plainJSON: JSONValue? { .bool(self) }
}

extension Double: PlainValue {
  fileprivate var plainJSON: JSONValue? { isFinite ? .double(self) : nil }
}

extension Optional: PlainValue {
  fileprivate var plainJSON: JSONValue? {
    get throws {
      guard let self else { return .null }
      return try (self as? any PlainValue)?.plainJSON
    }
  }
}

extension JSONValue: PlainValue {
  fileprivate var plainJSON: JSONValue? { self }
}
