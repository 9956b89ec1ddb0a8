import DataSources
import Foundation
import GRDB

/// A value in a comparison, converted to JSON as the stored entities are.
enum JSONScalar: Codable, Sendable {
  case null
  case bool(Bool)
  case integer(Int64)
  case number(Double)
  case text(String)

  /// Converts a value of any type.
  /// - Throws: `DataSourceError.illegalArgument` if its JSON is not a scalar.
  init(_ value: any Encodable) throws {
    self = try Self.converted(value, to: JSONScalar.self)
  }

  /// Converts a list of values.
  static func list(_ values: any Encodable) throws -> [JSONScalar] {
    try converted(values, to: [JSONScalar].self)
  }

  private static func converted<R: Decodable>(_ value: any Encodable, to type: R.Type) throws -> R {
    do {
      return try JSONDecoder().decode(type, from: try JSONEncoder().encode(value))
    } catch {
      throw DataSourceError(
        .illegalArgument,
        "a predicate can only compare with texts, numbers, true, false and null, not with \(Swift.type(of: value))")
    }
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let bool = try? container.decode(Bool.self) {
      self = .bool(bool)
    } else if let integer = try? container.decode(Int64.self) {
      self = .integer(integer)
    } else if let number = try? container.decode(Double.self) {
      self = .number(number)
    } else {
      self = .text(try container.decode(String.self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let bool): try container.encode(bool)
    case .integer(let integer): try container.encode(integer)
    case .number(let number): try container.encode(number)
    case .text(let text): try container.encode(text)
    }
  }

  var databaseValue: DatabaseValue {
    switch self {
    case .null: .null
    case .bool(let bool): bool.databaseValue
    case .integer(let integer): integer.databaseValue
    case .number(let number): number.databaseValue
    case .text(let text): text.databaseValue
    }
  }
}
