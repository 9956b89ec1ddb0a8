import Documents

/// A change of one field of documents, written with a key path.
///
///     try await store.update(Person.all.where(\Person.age < 18), .set(\.isMinor, to: true), .increment(\.visits))
public struct FieldChange<T: Queryable>: Sendable {
  fileprivate let change: Result<DocumentUpdate.Change, any Error>

  private init(_ change: () throws -> DocumentUpdate.Change) { self.change = Result(catching: change) }

  /// Gives the field a value; nil removes it.
  public static func set<Value: Encodable>(_ field: KeyPath<T, Value>, to value: Value) -> FieldChange {
    FieldChange {
      let path = try FieldResolver.comparedPath(of: field).description
      let json = try DocumentCoding.json(of: value, in: T.self)
      if case .null = json { return .unset(path) }
      return .set(path, to: json)
    }
  }

  /// Adds a number to the field, which counts as 0 where it is missing.
  public static func increment<Value: Numeric & Encodable>(
    _ field: KeyPath<T, Value>, by amount: Value = 1
  ) -> FieldChange {
    FieldChange {
      .increment(
        try FieldResolver.comparedPath(of: field).description, by: try DocumentCoding.json(of: amount, in: T.self))
    }
  }

  /// Adds a number to the optional field, which counts as 0 where it is missing.
  public static func increment<Value: Numeric & Encodable>(
    _ field: KeyPath<T, Value?>, by amount: Value = 1
  ) -> FieldChange {
    FieldChange {
      .increment(
        try FieldResolver.comparedPath(of: field).description, by: try DocumentCoding.json(of: amount, in: T.self))
    }
  }

  /// Appends a value to the field's array, which counts as empty where it is missing.
  public static func append<Element: Encodable>(
    _ element: Element, to field: KeyPath<T, some FilterElements<Element>>
  ) -> FieldChange {
    FieldChange {
      .push(
        try DocumentCoding.json(of: element, in: T.self), to: try FieldResolver.comparedPath(of: field).description)
    }
  }
}

extension DocumentUpdate {
  /// Makes an update of changes that are written with key paths.
  /// - Throws: `FilterError` if a key path is no field; `DocumentUpdateError` for two changes of the same field.
  public init<T>(_ changes: [FieldChange<T>]) throws {
    try self.init(changes: changes.map { try $0.change.get() })
  }
}
