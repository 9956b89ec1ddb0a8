import DataSources

/// A query for the entities that a condition is true of. Queries of one's own adopt it, as key queries adopt `KeyQuery`:
///
/// ```swift
/// struct SearchQuery: Query {
///   let text: String
/// }
/// extension SearchQuery: PredicateQuery {
///   var predicate: EntityPredicate { EntityPredicate { $0.title.contains(text, ignoringCase: true) } }
/// }
/// ```
///
/// It is about all that `AllObjectsQuery` gives: single values, and the elements of lists. A query that is a `KeyQuery` too is answered by
/// its predicate when values are got or deleted, and by its key when they are put.
public protocol PredicateQuery: Query {
  var predicate: EntityPredicate { get }
  /// What `get` and `getAll` sort by; then, or when it is empty, by the keys' bytes.
  var order: [EntityOrder] { get }
  /// How many `getAll` skips; not negative.
  var offset: Int { get }
  /// How many `getAll` gives at most, not negative; nil for all.
  var limit: Int? { get }
}

extension PredicateQuery {
  public var order: [EntityOrder] { [] }
  public var offset: Int { 0 }
  public var limit: Int? { nil }
}

/// What entities are sorted by: nothing and null first, then numbers, then texts by their bytes.
public struct EntityOrder: Hashable, Sendable {
  let field: EntityField
  let isDescending: Bool

  /// By a field, which may be inside another: `author.name`.
  /// - Throws: `DataSourceError.illegalArgument` for what is no name of a field.
  public init(_ field: String, descending: Bool = false) throws {
    self.field = try EntityField(path: field)
    isDescending = descending
  }
}

/// The entities that a condition is true of.
public struct EntityQuery: PredicateQuery {
  public let predicate: EntityPredicate
  public let order: [EntityOrder]
  public let offset: Int
  public let limit: Int?

  public init(_ predicate: EntityPredicate, order: [EntityOrder] = [], offset: Int = 0, limit: Int? = nil) {
    self.predicate = predicate
    self.order = order
    self.offset = offset
    self.limit = limit
  }

  /// The entities that a body's condition is true of: `EntityQuery { $0.price < 20 }`.
  public init(
    order: [EntityOrder] = [], offset: Int = 0, limit: Int? = nil, _ body: (EntityField) -> EntityPredicate
  ) {
    self.init(EntityPredicate(body), order: order, offset: offset, limit: limit)
  }

  /// The entities that a condition in words is true of: `try EntityQuery("price < %@", 20)`.
  /// - Throws: `DataSourceError.illegalArgument` as `EntityPredicate` does.
  public init(_ format: String, _ arguments: any EntityField.Value...) throws {
    self.init(try EntityPredicate(format, arguments: arguments))
  }
}
