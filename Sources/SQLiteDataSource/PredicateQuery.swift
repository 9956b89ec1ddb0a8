import DataSources

/// A query for the entities that satisfy a condition. Your own queries adopt it as they adopt `KeyQuery`:
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
/// It searches what `AllObjectsQuery` returns: single values, and the elements of lists. If a query is also a
/// `KeyQuery`, gets and deletions use its predicate, and puts its key.
public protocol PredicateQuery: Query {
  var predicate: EntityPredicate { get }
  /// The order of the results of `get` and `getAll`. Entities that it leaves equal are ordered by the bytes of their
  /// keys.
  var order: [EntityOrder] { get }
  /// The number of entities to skip; not negative.
  var offset: Int { get }
  /// The maximum number of entities that `getAll` returns; not negative; nil for no limit.
  var limit: Int? { get }
}

extension PredicateQuery {
  public var order: [EntityOrder] { [] }
  public var offset: Int { 0 }
  public var limit: Int? { nil }
}

/// An order of entities by a field: missing and null values first, then numbers, then texts by their bytes.
public struct EntityOrder: Hashable, Sendable {
  private let field: EntityField
  private let isDescending: Bool

  /// Creates an order by a field. `author.name` is a nested field.
  /// - Throws: `DataSourceError.illegalArgument` for text that can't be the name of a field.
  public init(_ field: String, descending: Bool = false) throws {
    self.field = try EntityField(path: field)
    isDescending = descending
  }

  var sql: String { field.sql + (isDescending ? " DESC" : "") }
}

/// A query for the entities that satisfy a condition.
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

  /// Creates a query from a closure: `EntityQuery { $0.price < 20 }`.
  public init(
    order: [EntityOrder] = [], offset: Int = 0, limit: Int? = nil, _ body: (EntityField) -> EntityPredicate
  ) {
    self.init(EntityPredicate(body), order: order, offset: offset, limit: limit)
  }

  /// Creates a query from the text of a condition: `try EntityQuery("price < %@", 20)`.
  /// - Throws: `DataSourceError.illegalArgument` as `EntityPredicate` does.
  public init(_ format: String, _ arguments: any EntityField.Value...) throws {
    self.init(try EntityPredicate(format, arguments: arguments))
  }
}
