/// What to find: a selector, and the order, part and form of the result.
///
/// As JSON, a query is an object with the members `selector`, `sort`, `skip`, `limit`, `fields` and `bookmark`, all of
/// which are optional:
///
///     {"selector": {"age": {"$gt": 12}}, "sort": [{"name": "asc"}, {"age": "desc"}], "limit": 20, "fields": ["name"]}
public struct DocumentQuery: Equatable, Sendable {
  /// Which documents match.
  public var selector: Selector
  /// The order of the result. Documents that are equal in it are ordered by `_id`, in the direction of the last field.
  public var sort: [SortField]
  /// The number of matching documents to leave out at the start of the first page, from 0. With a bookmark, it has no
  /// effect.
  public var skip: Int
  /// The maximum number of documents to return, from 0; nil for all. In JSON, 0 stands for all.
  public var limit: Int?
  /// The fields to return; whole documents if there are none.
  public var fields: [FieldPath]
  /// The end of an earlier page of the same query, after which this one starts.
  public var bookmark: String?

  /// Creates a query. By default, it finds all documents in the order of their ids.
  public init(
    _ selector: Selector = .all, sort: [SortField] = [], skip: Int = 0, limit: Int? = nil, fields: [FieldPath] = [],
    bookmark: String? = nil
  ) {
    self.selector = selector
    self.sort = sort
    self.skip = skip
    self.limit = limit
    self.fields = fields
    self.bookmark = bookmark
  }
}

/// A field to sort by, or that an index is sorted by. As a literal, an ascending field is its path.
///
/// A missing field sorts below `null`. An array sorts by its least element, or by its greatest if descending.
public struct SortField: Hashable, Sendable {
  /// The direction of a sort. The raw values are those in JSON.
  public enum Direction: String, Sendable {
    case ascending = "asc"
    case descending = "desc"
  }

  /// The path of the field.
  public let path: FieldPath
  /// Whether the least or the greatest values come first.
  public let direction: Direction

  /// Creates a field to sort by.
  public init(_ path: FieldPath, _ direction: Direction = .ascending) {
    self.path = path
    self.direction = direction
  }

  /// Returns a field to sort by, least values first.
  public static func ascending(_ path: FieldPath) -> SortField { SortField(path, .ascending) }

  /// Returns a field to sort by, greatest values first.
  public static func descending(_ path: FieldPath) -> SortField { SortField(path, .descending) }
}

extension SortField: ExpressibleByStringLiteral {
  /// Creates an ascending field from a literal.
  /// - Precondition: No name of the path is empty.
  public init(stringLiteral path: String) { self.init(FieldPath(stringLiteral: path)) }
}

extension SortField: CustomStringConvertible {
  /// The path and the direction: `age desc`.
  public var description: String { "\(path) \(direction.rawValue)" }
}
