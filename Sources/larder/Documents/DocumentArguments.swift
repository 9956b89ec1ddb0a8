import ArgumentParser
import Documents
import TypedQueries

/// Reads the parts of queries and changes of documents from the command line. What is wrong is a usage error that says
/// where.
struct DocumentArguments {
  /// The command that they are for, such as `find`, for messages.
  private let command: String

  init(for command: String) {
    self.command = command
  }

  /// Reads a selector in JSON.
  func selector(_ text: String) throws(CommandFailure) -> Selector {
    do throws(SelectorError) { return try Selector(parsing: text) } catch {
      // A predicate, which can't begin with a brace or a bracket, is no selector.
      let isPredicate = text.first.map { !"{[".contains($0) } == true && (try? Selector(predicate: text)) != nil
      throw failure("selector at \(error.path)", error.reason + (isPredicate ? "; give a predicate with --where" : ""))
    }
  }

  /// Reads a raw predicate.
  func predicate(_ text: String) throws(CommandFailure) -> Selector {
    do { return try Selector(predicate: text) } catch { throw failure("predicate", "\(error)") }
  }

  /// Reads which documents are meant: those that match a selector, a condition, or both.
  /// - Parameter condition: The value of `--where`.
  /// - Returns: nil if there is neither.
  func selector(_ text: String?, where condition: String?) throws(CommandFailure) -> Selector? {
    var selectors: [Selector] = []
    if let text { selectors.append(try selector(text)) }
    if let condition { selectors.append(try self.condition(condition)) }
    return selectors.count == 2 ? selectors[0] && selectors[1] : selectors.first
  }

  /// Reads a selector, which begins with a brace, or a raw predicate.
  func condition(_ text: String) throws(CommandFailure) -> Selector {
    text.drop { " \t\n".contains($0) }.first == "{" ? try selector(text) : try predicate(text)
  }

  /// Checks that a query can be evaluated, before the server is asked.
  func check(_ query: DocumentQuery) throws(CommandFailure) {
    _ = try reading("selector") { () throws(SelectorError) in try DocumentFinder(query) }
  }

  /// Reads fields and their directions, such as `name,-age` or `["name",{"age":"desc"}]`.
  func sort(_ text: String) throws(CommandFailure) -> [SortField] {
    try reading("sort") { () throws(SelectorError) in
      if let json = try Self.json(text, orThrow: .badSort) { return try SortField.fields(json) }
      return try SortField.fields(.array(try Self.names(text).enumerated().map(Self.sortField)))
    }
  }

  /// Returns the JSON of a field to sort by.
  /// - Throws: `SelectorError` for a direction in the notation of SQL, which would otherwise be part of a field's name.
  private static func sortField(_ number: Int, _ name: String) throws(SelectorError) -> JSONValue {
    let words = name.split(whereSeparator: \.isWhitespace)
    if words.count == 2, let direction = words.last?.lowercased(), ["asc", "desc"].contains(direction) {
      let meant = direction == "desc" ? "-\(words[0])" : "\(words[0])"
      throw SelectorError(
        .badSort, at: "$[\(number)]",
        "a dash before a field makes its order descending: write \(meant), or [\"\(name)\"] for a field of that name")
    }
    return name.hasPrefix("-") ? [String(name.dropFirst()): "desc"] : .string(name)
  }

  /// Reads paths of fields, such as `name,pet.species` or `["name","pet.species"]`.
  func fields(_ text: String) throws(CommandFailure) -> [FieldPath] {
    try reading("fields") { () throws(SelectorError) in
      if let json = try Self.json(text, orThrow: .badFields) { return try FieldPath.fields(json) }
      return try FieldPath.fields(.array(Self.names(text).map { .string($0) }))
    }
  }

  /// Reads what to compute from groups, such as `count,avg:age`.
  func aggregates(_ text: String) throws(CommandFailure) -> [Aggregate] {
    var aggregates: [Aggregate] = []
    for name in Self.names(text) {
      guard let aggregate = Aggregate(name: name) else {
        throw failure("compute", "it is count, sum:FIELD, avg:FIELD, min:FIELD or max:FIELD, with commas between them")
      }
      aggregates.append(aggregate)
    }
    return aggregates
  }

  /// Reads what groups are sorted by, such as `count:desc` or `-sum:age,city`: aggregates and fields of the groups.
  func groupOrder(
    _ text: String, by fields: [FieldPath], computing aggregates: [Aggregate]
  ) throws(CommandFailure) -> [GroupOrder] {
    var orders: [GroupOrder] = []
    for part in Self.names(text) {
      var (name, direction) = (part[...], SortField.Direction.ascending)
      if name.hasPrefix("-") {
        (name, direction) = (name.dropFirst(), .descending)
      } else if name.hasSuffix(":desc") {
        (name, direction) = (name.dropLast(5), .descending)
      } else if name.hasSuffix(":asc") {
        name = name.dropLast(4)
      }
      if let aggregate = Aggregate(name: String(name)), aggregates.contains(aggregate) {
        orders.append(GroupOrder(.aggregate(aggregate), direction))
      } else if let path = FieldPath(String(name)), fields.contains(path) {
        orders.append(GroupOrder(.field(path), direction))
      } else {
        throw failure("sort", "'\(name)' is neither among the fields of --group-by nor in --compute")
      }
    }
    return orders
  }

  /// Reads the path of a field.
  func field(_ text: String) throws(CommandFailure) -> FieldPath {
    guard let path = FieldPath(text) else { throw failure("field", "a field's path can't have empty names") }
    return path
  }

  /// Reads an update in JSON: a merge patch, or operators.
  func update(_ text: String) throws(CommandFailure) -> DocumentUpdate {
    do throws(DocumentUpdateError) { return try DocumentUpdate(parsing: text) } catch {
      throw failure("update at \(error.path)", error.reason)
    }
  }

  /// Returns the failure of an argument.
  /// - Parameter part: What is wrong, with its place.
  func failure(_ part: String, _ reason: String) -> CommandFailure {
    CommandFailure(.usage, "bad \(part): \(reason); see 'larder \(command) --help'")
  }

  private func reading<Part>(
    _ name: String, _ read: () throws(SelectorError) -> Part
  ) throws(CommandFailure) -> Part {
    do throws(SelectorError) { return try read() } catch {
      throw failure(error.code == .badBookmark ? "bookmark" : "\(name) at \(error.path)", error.reason)
    }
  }

  /// Returns the names between commas, without the spaces around them.
  private static func names(_ text: String) -> [String] {
    text.split(separator: ",", omittingEmptySubsequences: false).map { name in
      let start = name.drop { $0 == " " }
      return String(start.dropLast(start.reversed().prefix { $0 == " " }.count))
    }
  }

  /// Returns nil for text that can't be an array or object, but names with commas between them.
  private static func json(_ text: String, orThrow code: SelectorError.Code) throws(SelectorError) -> JSONValue? {
    guard text.hasPrefix("[") || text.hasPrefix("{") else { return nil }
    do throws(JSONError) { return try JSONValue(parsingInstruction: text.utf8.span) } catch {
      throw SelectorError(code, "\(error)")
    }
  }
}
