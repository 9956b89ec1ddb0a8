import DataSources
import Documents
import Foundation
import GRDB

/// Values in comparisons, converted to JSON as the stored entities are, and from there to SQL.
extension JSONValue {
  /// Converts a value of any type.
  /// - Throws: `DataSourceError.illegalArgument` if it can't be encoded as JSON.
  private init(encoding value: any Encodable) throws {
    do {
      self = try JSONValue(parsing: Array(try JSONEncoder().encode(value)).span)
    } catch {
      throw Self.incomparable(value)
    }
  }

  /// Converts the values of a list of any type.
  /// - Throws: `DataSourceError.illegalArgument` if it is no list, or if one of its elements can't be compared.
  static func list(encoding values: any Encodable) throws -> [JSONValue] {
    guard let elements = try JSONValue(encoding: values).array, elements.allSatisfy({ $0.scalar != nil }) else {
      throw incomparable(values)
    }
    return elements
  }

  /// Converts a value of any type to a value in SQL.
  /// - Throws: `DataSourceError.illegalArgument` if its JSON is an array or object.
  static func databaseValue(of value: any Encodable) throws -> DatabaseValue {
    guard let scalar = try JSONValue(encoding: value).scalar else { throw incomparable(value) }
    return scalar
  }

  private var scalar: DatabaseValue? {
    switch self {
    case .null: .null
    case .bool(let bool): bool.databaseValue
    case .integer(let integer): integer.databaseValue
    case .double(let number): number.databaseValue
    case .string(let text): text.databaseValue
    case .array, .object: nil
    }
  }

  private static func incomparable(_ value: any Encodable) -> DataSourceError {
    DataSourceError(
      .illegalArgument,
      "a predicate can only compare with texts, numbers, true, false and null, not with \(Swift.type(of: value))")
  }
}
