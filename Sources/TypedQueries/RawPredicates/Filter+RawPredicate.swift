import Documents

extension Filter {
  /// Creates a filter from the text of a predicate: `Filter<Person>(raw: "age BETWEEN %@ AND name LIKE %@", [1, 9], "a*")`.
  ///
  /// Text that is no predicate is an error where the filter is used, and nothing is sent then.
  /// - Parameter arguments: What stands for `%@`: values that are encoded as they are in documents. For `%K`, the path
  ///   of a field as a string.
  public init(raw text: String, _ arguments: any Encodable...) { self.init(raw: text, arguments: arguments) }

  /// Creates a filter from the text of a predicate and its arguments; see `init(raw:_:)`.
  public init(raw text: String, arguments: [any Encodable]) {
    self.init {
      let coding = DocumentCoding(of: Root.self)
      return try Self.tree(of: text, arguments.map { .value(try coding.json(of: $0)) })
    }
  }

  private static func tree(
    of text: String, _ arguments: [PredicateParser.Argument], interpolations: Set<Int>? = nil
  ) throws -> SelectorTree {
    try PredicateParser.tree(
      of: text, arguments: arguments, interpolations: interpolations, isAboutDocuments: Root.self is any Queryable.Type)
  }
}

extension Filter: ExpressibleByStringInterpolation {
  /// Creates a filter from the text of a predicate: `"pets.@count > 0"`.
  public init(stringLiteral text: String) {
    self.init { try Self.tree(of: text, [], interpolations: []) }
  }

  /// Creates a filter from the text of a predicate with interpolated values, which are bound and never become text, and
  /// key paths.
  public init(stringInterpolation: StringInterpolation) { self.init { try stringInterpolation.tree() } }

  /// The text of a predicate, and what is bound to places in it.
  public struct StringInterpolation: StringInterpolationProtocol {
    private var text = ""
    private var arguments: [Result<PredicateParser.Argument, any Error>] = []
    private var offsets: Set<Int> = []

    public init(literalCapacity: Int, interpolationCount: Int) {
      text.reserveCapacity(literalCapacity + 2 * interpolationCount)
    }

    public mutating func appendLiteral(_ literal: String) { text += literal }

    /// Binds a value, which is encoded as it is in documents.
    public mutating func appendInterpolation(_ value: some Encodable) {
      bind { .value(try DocumentCoding.json(of: value, in: Root.self)) }
    }

    /// Binds a field.
    public mutating func appendInterpolation(_ field: KeyPath<Root, some Any>) where Root: Codable {
      bind { .field(try FieldResolver.path(of: field)) }
    }

    private mutating func bind(_ argument: () throws -> PredicateParser.Argument) {
      offsets.insert(text.utf8.count)
      text += "%@"
      arguments.append(Result(catching: argument))
    }

    fileprivate func tree() throws -> SelectorTree {
      try Filter.tree(of: text, arguments.map { try $0.get() }, interpolations: offsets)
    }
  }
}
