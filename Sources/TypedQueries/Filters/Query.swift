import Documents

/// The functions that make filters: `Query.endsWith(\Person.name, "foo")`.
///
/// A value and not a type, so that it stands beside the protocol `Query` of the module `DataSources`.
// swift-format-ignore: AlwaysUseLowerCamelCase
public let Query = FilterFunctions.self

/// The functions that make filters. Write `Query` for it.
public enum FilterFunctions {
  // MARK: Comparisons

  /// Returns a filter that matches where a field equals a value: `==`.
  public static func equalTo<Root: Codable, Value: Encodable & Equatable>(
    _ field: KeyPath<Root, Value>, _ value: Value
  ) -> Filter<Root> {
    field == value
  }

  /// Returns a filter that matches where a field doesn't equal a value: `!=`.
  public static func notEqualTo<Root: Codable, Value: Encodable & Equatable>(
    _ field: KeyPath<Root, Value>, _ value: Value
  ) -> Filter<Root> {
    field != value
  }

  /// Returns a filter that matches where a field is less than a value: `<`.
  public static func lessThan<Root: Codable, Value: Encodable & Comparable>(
    _ field: KeyPath<Root, Value>, _ value: Value
  ) -> Filter<Root> {
    field < value
  }

  /// Returns a filter that matches where a field has a value that is less than another one: `<`.
  public static func lessThan<Root: Codable, Value: Encodable & Comparable>(
    _ field: KeyPath<Root, Value?>, _ value: Value
  ) -> Filter<Root> {
    field < value
  }

  /// Returns a filter that matches where a field is less than or equal to a value: `<=`.
  public static func lessThanOrEqualTo<Root: Codable, Value: Encodable & Comparable>(
    _ field: KeyPath<Root, Value>, _ value: Value
  ) -> Filter<Root> {
    field <= value
  }

  /// Returns a filter that matches where a field has a value that is less than or equal to another one: `<=`.
  public static func lessThanOrEqualTo<Root: Codable, Value: Encodable & Comparable>(
    _ field: KeyPath<Root, Value?>, _ value: Value
  ) -> Filter<Root> {
    field <= value
  }

  /// Returns a filter that matches where a field is greater than a value: `>`.
  public static func greaterThan<Root: Codable, Value: Encodable & Comparable>(
    _ field: KeyPath<Root, Value>, _ value: Value
  ) -> Filter<Root> {
    field > value
  }

  /// Returns a filter that matches where a field has a value that is greater than another one: `>`.
  public static func greaterThan<Root: Codable, Value: Encodable & Comparable>(
    _ field: KeyPath<Root, Value?>, _ value: Value
  ) -> Filter<Root> {
    field > value
  }

  /// Returns a filter that matches where a field is greater than or equal to a value: `>=`.
  public static func greaterThanOrEqualTo<Root: Codable, Value: Encodable & Comparable>(
    _ field: KeyPath<Root, Value>, _ value: Value
  ) -> Filter<Root> {
    field >= value
  }

  /// Returns a filter that matches where a field has a value that is greater than or equal to another one: `>=`.
  public static func greaterThanOrEqualTo<Root: Codable, Value: Encodable & Comparable>(
    _ field: KeyPath<Root, Value?>, _ value: Value
  ) -> Filter<Root> {
    field >= value
  }

  /// Returns a filter that matches where a field equals one of some values. Without values, nothing matches.
  public static func `in`<Root: Codable, Value: Encodable & Equatable>(
    _ field: KeyPath<Root, Value>, _ values: some Sequence<Value>
  ) -> Filter<Root> {
    .isIn(field, values)
  }

  /// Returns a filter that matches where a field has no value, not even null. `\Person.nickname == nil` matches both.
  public static func isMissing<Root: Codable>(_ field: KeyPath<Root, some Any>) -> Filter<Root> {
    Filter { .field(try FieldResolver.path(of: field), .exists(false)) }
  }

  // MARK: Combinations

  /// Returns a filter that matches what the given one doesn't match: `!`.
  public static func not<Root>(_ filter: Filter<Root>) -> Filter<Root> { !filter }

  /// Returns a filter that matches what all filters match, as everything does if there are none: `&&`.
  public static func and<Root>(_ filters: Filter<Root>...) -> Filter<Root> { and(filters) }

  /// Returns a filter that matches what all filters match, as everything does if there are none: `&&`.
  public static func and<Root>(_ filters: [Filter<Root>]) -> Filter<Root> {
    Filter { .all(of: try filters.map { try $0.tree }) }
  }

  /// Returns a filter that matches what at least one filter matches, as nothing does if there are none: `||`.
  public static func or<Root>(_ filters: Filter<Root>...) -> Filter<Root> { or(filters) }

  /// Returns a filter that matches what at least one filter matches, as nothing does if there are none: `||`.
  public static func or<Root>(_ filters: [Filter<Root>]) -> Filter<Root> {
    Filter { .any(of: try filters.map { try $0.tree }) }
  }
}

// MARK: - Strings

/// A field with a string: `String` and `String?`.
public protocol FilterText {}

extension String: FilterText {}
extension Optional: FilterText where Wrapped == String {}

extension FilterFunctions {
  /// Returns a filter that matches where a string begins with another one. Every string begins with the empty one.
  public static func beginsWith<Root: Codable>(
    _ field: KeyPath<Root, some FilterText>, _ prefix: String, caseInsensitive: Bool = true,
    diacriticInsensitive: Bool = false
  ) -> Filter<Root> {
    let options = Selector.StringOptions(caseInsensitive, diacriticInsensitive)
    return Filter { .field(try FieldResolver.path(of: field), .beginsWith(prefix, options)) }
  }

  /// Returns a filter that matches where a string ends with another one. Every string ends with the empty one.
  public static func endsWith<Root: Codable>(
    _ field: KeyPath<Root, some FilterText>, _ suffix: String, caseInsensitive: Bool = true,
    diacriticInsensitive: Bool = false
  ) -> Filter<Root> {
    let options = Selector.StringOptions(caseInsensitive, diacriticInsensitive)
    return Filter { .field(try FieldResolver.path(of: field), .endsWith(suffix, options)) }
  }

  /// Returns a filter that matches where a string contains another one. Every string contains the empty one.
  public static func contains<Root: Codable>(
    _ field: KeyPath<Root, some FilterText>, _ part: String, caseInsensitive: Bool = true,
    diacriticInsensitive: Bool = false
  ) -> Filter<Root> {
    let options = Selector.StringOptions(caseInsensitive, diacriticInsensitive)
    return Filter { .field(try FieldResolver.path(of: field), .contains(part, options)) }
  }

  /// Returns a filter that matches where a whole string matches a pattern: `*` is any run of characters, `?` one
  /// Unicode scalar, and `\` makes the next character an ordinary one.
  public static func like<Root: Codable>(
    _ field: KeyPath<Root, some FilterText>, _ pattern: String, caseInsensitive: Bool = true,
    diacriticInsensitive: Bool = false
  ) -> Filter<Root> {
    let options = Selector.StringOptions(caseInsensitive, diacriticInsensitive)
    return Filter { try Lowering.like(try FieldResolver.path(of: field), pattern, options) }
  }

  /// Returns a filter that matches where a whole string matches a regular expression; `RegularExpression` has its
  /// syntax.
  public static func matches<Root: Codable>(
    _ field: KeyPath<Root, some FilterText>, _ pattern: String, caseInsensitive: Bool = false
  ) -> Filter<Root> {
    Filter { try Lowering.matches(try FieldResolver.path(of: field), pattern, ignoresCase: caseInsensitive) }
  }
}

extension Selector.StringOptions {
  init(_ caseInsensitive: Bool, _ diacriticInsensitive: Bool) {
    self = []
    if caseInsensitive { insert(.ignoringCase) }
    if diacriticInsensitive { insert(.ignoringDiacritics) }
  }
}

// MARK: - Arrays

/// A field with elements: an array, or an optional array.
public protocol FilterElements<Element> {
  associatedtype Element
}

extension Array: FilterElements {}
extension Set: FilterElements {}
extension Optional: FilterElements where Wrapped: FilterElements {
  public typealias Element = Wrapped.Element
}

extension FilterFunctions {
  /// Returns a filter that matches where an array has an element that equals a value.
  public static func contains<Root: Codable, Element: Encodable & Equatable>(
    _ field: KeyPath<Root, some FilterElements<Element>>, _ element: Element
  ) -> Filter<Root> {
    Filter {
      let value = try DocumentCoding.json(of: element, in: Root.self)
      return Lowering.any(try FieldResolver.path(of: field), Lowering.equal(nil, value))
    }
  }

  /// Returns a filter that matches where some element of an array matches. It compares fields of the element with
  /// values: two fields, arithmetic, functions such as `@count`, and `ALL` of a raw predicate are for whole documents.
  ///
  ///     Query.any(\Person.pets) { \Pet.species == "cat" && \Pet.age < 3 }
  ///     Query.any(\Person.tags) { Query.beginsWith(\String.self, "a") }
  ///
  /// Make the filter of elements in the closure: it is about elements as `Root`'s encoder writes them.
  public static func any<Root: Codable, Element>(
    _ field: KeyPath<Root, some FilterElements<Element>>, _ element: () -> Filter<Element>
  ) -> Filter<Root> {
    Filter { Lowering.any(try FieldResolver.path(of: field), try elementTree(Root.self, element)) }
  }

  /// Returns a filter that matches where every element of an array matches, as they do in an empty or missing one.
  public static func all<Root: Codable, Element>(
    _ field: KeyPath<Root, some FilterElements<Element>>, _ element: () -> Filter<Element>
  ) -> Filter<Root> {
    Filter { Lowering.all(try FieldResolver.path(of: field), try elementTree(Root.self, element)) }
  }

  /// Returns a filter that matches where no element of an array matches: the complement of `any`.
  public static func none<Root: Codable, Element>(
    _ field: KeyPath<Root, some FilterElements<Element>>, _ element: () -> Filter<Element>
  ) -> Filter<Root> {
    !any(field, element)
  }

  private static func elementTree<Element>(
    _ type: Any.Type, _ element: () -> Filter<Element>
  ) throws -> SelectorTree {
    try DocumentCoding(of: type).forElements { try element().elementTree }
  }
}

extension Filter {
  /// The tree of a filter for elements of an array.
  /// - Throws: As `tree`; `FilterError` if the filter has what is for whole documents only.
  fileprivate var elementTree: SelectorTree {
    get throws {
      let tree = try tree
      guard !tree.hasExpression else {
        throw FilterError(
          .unsupportedExpression,
          "a filter for elements compares their fields with values: "
            + "two fields, arithmetic, functions such as @count, and ALL are for whole documents")
      }
      return tree
    }
  }
}

extension SelectorTree {
  fileprivate var hasExpression: Bool {
    switch self {
    case .and(let parts), .or(let parts): parts.contains(where: \.hasExpression)
    case .not(let part), .someElementNot(_, let part): part.hasExpression
    case .field(_, .elemMatch(let inner)), .field(_, .allMatch(let inner)), .field(_, .keyMapMatch(let inner)):
      inner.hasExpression
    case .field, .text: false
    case .expression: true
    }
  }
}
