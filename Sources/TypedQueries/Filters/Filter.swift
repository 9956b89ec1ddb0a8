import Documents

/// A condition on documents of a type, written with key paths and checked by the compiler.
///
///     let filter = \Person.age >= 18 && Query.beginsWith(\Person.name, "a")
///
/// A filter is made of
/// - the operators `==`, `!=`, `<`, `<=`, `>`, `>=` and `===` ("in") on key paths,
/// - the functions of ``Query``,
/// - text in the language of raw predicates, in which interpolated values are bound and never become text:
///   `"pets.@count > \(limit)"`,
/// - `!`, `&&` and `||`.
///
/// It is lowered to a `Selector` at once, so it holds no key paths, and can be sent, encoded and printed. What can't be
/// lowered, such as a key path that is no field, is an error where the filter is used: `selector` throws it.
///
/// **Types.** A comparison is false for a value of another JSON type: `\Person.age < 50` doesn't match where the age is
/// null, missing or a string. `!` is the complement: it matches what the filter doesn't match, and `!=` is the
/// complement of `==`.
public struct Filter<Root>: Sendable {
  private let lowered: Result<SelectorTree, any Error>

  /// Creates a filter of the tree that a closure returns, or of the error that it throws.
  package init(lowering: () throws -> SelectorTree) { lowered = Result(catching: lowering) }

  /// Creates a filter that matches what a selector matches.
  public init(_ selector: Selector) { lowered = .success(selector.tree) }

  /// The tree that the filter is lowered to.
  package var tree: SelectorTree { get throws { try lowered.get() } }

  /// The selector that the filter is lowered to. Like every selector that is built in Swift, it is checked against the
  /// limits of selectors where it is first used.
  /// - Throws: `FilterError` or `PredicateSyntaxError` if a part of the filter can't be lowered.
  public var selector: Selector { get throws { Selector(try tree) } }

  /// Returns a Boolean value that indicates whether a document matches.
  /// - Throws: As `selector` does; `SelectorError` if the selector exceeds a limit.
  public func matches(_ document: Document) throws -> Bool {
    try CompiledSelector(selector).matches(document)
  }
}

extension Filter where Root: Codable {
  /// Returns a Boolean value that indicates whether a value matches, as the document that it is encoded as.
  /// - Throws: As `matches(_:)` for a document does; errors of the encoder.
  public func matches(_ value: Root) throws -> Bool {
    try matches(Document(DocumentCoding(of: Root.self).bytes(of: value)))
  }
}

// MARK: Combinations

extension Filter {
  /// Returns a filter that matches what both filters match.
  public static func && (left: Filter, right: Filter) -> Filter {
    Filter { .all(of: [try left.tree, try right.tree]) }
  }

  /// Returns a filter that matches what at least one of the filters matches.
  public static func || (left: Filter, right: Filter) -> Filter {
    Filter { .any(of: [try left.tree, try right.tree]) }
  }

  /// Returns a filter that matches what the given one doesn't match.
  public static prefix func ! (filter: Filter) -> Filter { Filter { .complement(of: try filter.tree) } }
}

// MARK: Printing and coding

extension Filter: CustomStringConvertible {
  /// The JSON of the selector, or the error that it throws.
  public var description: String {
    do { return try selector.description } catch { return "<\(error)>" }
  }
}

extension Filter: Codable {
  /// Decodes a filter from the JSON of a selector.
  public init(from decoder: any Decoder) throws { self.init(try Selector(from: decoder)) }

  /// Encodes the filter as the JSON of its selector.
  /// - Throws: As `selector` does; `SelectorError` if the selector exceeds a limit; errors of the encoder.
  public func encode(to encoder: any Encoder) throws {
    let selector = try selector
    _ = try selector.checkedTree()
    try selector.encode(to: encoder)
  }
}
