import Documents

/// A value that is computed from a field of the documents of a request: its least, greatest, sum or average.
///
///     let oldest = try people.fetch(Person.all.where(\Person.city == "Bern").max(\.age))
public struct Aggregation<T: Queryable, Value: Decodable & Sendable>: Sendable {
  /// The documents.
  public let request: Request<T>
  private let field: Result<FieldPath, FilterError>
  private let make: @Sendable (FieldPath) -> Aggregate

  fileprivate init(
    _ request: Request<T>, _ field: KeyPath<T, some Any>, _ make: @escaping @Sendable (FieldPath) -> Aggregate
  ) {
    self.request = request
    self.field = Result { () throws(FilterError) in try FieldResolver.comparedPath(of: field) }
    self.make = make
  }

  /// What is computed from the documents of the request.
  /// - Throws: `FilterError` if the key path is no field.
  public var aggregate: Aggregate { get throws { make(try field.get()) } }

  /// Returns the result as a value.
  /// - Parameter json: The result; nil if it is missing.
  package func value(_ json: JSONValue?) throws -> Value { try DocumentCoding(of: T.self).value(of: json) }
}

extension Request {
  /// Returns the least value of a field in the documents of the request; nil if there is none. The order is that of
  /// the encoded values, as in `sort`.
  public func min<Value: Comparable & Decodable & Sendable>(_ field: KeyPath<T, Value>) -> Aggregation<T, Value?> {
    Aggregation(self, field) { .min($0) }
  }

  /// Returns the least value of an optional field in the documents of the request; nil if there is none.
  public func min<Value: Comparable & Decodable & Sendable>(_ field: KeyPath<T, Value?>) -> Aggregation<T, Value?> {
    Aggregation(self, field) { .min($0) }
  }

  /// Returns the value of a field with the least raw value in the documents of the request; nil if there is none.
  @_disfavoredOverload
  public func min<Value: RawRepresentable & Decodable & Sendable>(
    _ field: KeyPath<T, Value>
  ) -> Aggregation<T, Value?> where Value.RawValue: Comparable {
    Aggregation(self, field) { .min($0) }
  }

  /// Returns the value of an optional field with the least raw value in the documents of the request; nil if there is
  /// none.
  @_disfavoredOverload
  public func min<Value: RawRepresentable & Decodable & Sendable>(
    _ field: KeyPath<T, Value?>
  ) -> Aggregation<T, Value?> where Value.RawValue: Comparable {
    Aggregation(self, field) { .min($0) }
  }

  /// Returns the greatest value of a field in the documents of the request; nil if there is none. The order is that of
  /// the encoded values, as in `sort`.
  public func max<Value: Comparable & Decodable & Sendable>(_ field: KeyPath<T, Value>) -> Aggregation<T, Value?> {
    Aggregation(self, field) { .max($0) }
  }

  /// Returns the greatest value of an optional field in the documents of the request; nil if there is none.
  public func max<Value: Comparable & Decodable & Sendable>(_ field: KeyPath<T, Value?>) -> Aggregation<T, Value?> {
    Aggregation(self, field) { .max($0) }
  }

  /// Returns the value of a field with the greatest raw value in the documents of the request; nil if there is none.
  @_disfavoredOverload
  public func max<Value: RawRepresentable & Decodable & Sendable>(
    _ field: KeyPath<T, Value>
  ) -> Aggregation<T, Value?> where Value.RawValue: Comparable {
    Aggregation(self, field) { .max($0) }
  }

  /// Returns the value of an optional field with the greatest raw value in the documents of the request; nil if there is
  /// none.
  @_disfavoredOverload
  public func max<Value: RawRepresentable & Decodable & Sendable>(
    _ field: KeyPath<T, Value?>
  ) -> Aggregation<T, Value?> where Value.RawValue: Comparable {
    Aggregation(self, field) { .max($0) }
  }

  /// Returns the sum of a field in the documents of the request, which is 0 if there are none. A sum beyond the range
  /// of the field's type is a decoding error.
  public func sum<Value: Numeric & Decodable & Sendable>(_ field: KeyPath<T, Value>) -> Aggregation<T, Value> {
    Aggregation(self, field) { .sum($0) }
  }

  /// Returns the sum of an optional field in the documents of the request, which is 0 if there are no values.
  public func sum<Value: Numeric & Decodable & Sendable>(_ field: KeyPath<T, Value?>) -> Aggregation<T, Value> {
    Aggregation(self, field) { .sum($0) }
  }

  /// Returns the average of a field in the documents of the request; nil if there are none.
  public func average(_ field: KeyPath<T, some Numeric>) -> Aggregation<T, Double?> {
    Aggregation(self, field) { .average($0) }
  }

  /// Returns the average of an optional field in the documents of the request; nil if there are no values.
  public func average(_ field: KeyPath<T, (some Numeric)?>) -> Aggregation<T, Double?> {
    Aggregation(self, field) { .average($0) }
  }
}
