import Documents

extension Selector {
  /// Creates a selector from the text of a predicate: `try Selector(predicate: "age BETWEEN %@ AND name LIKE %@", [1, 9],
  /// "a*")`.
  /// - Parameter arguments: What stands for `%@`: values that are encoded as JSON. For `%K`, the path of a field as a
  ///   string.
  /// - Throws: `PredicateSyntaxError` for text that is no predicate; `FilterError` for a value that can't be encoded or
  ///   has no order; `SelectorError` for a predicate that exceeds a limit.
  public init(predicate text: String, _ arguments: any Encodable...) throws {
    let coding = DocumentCoding(of: JSONValue.self)
    let tree = try PredicateParser.tree(
      of: text, arguments: arguments.map { .value(try coding.json(of: $0)) }, isAboutDocuments: true)
    self.init(tree)
    _ = try checkedTree()
  }
}
