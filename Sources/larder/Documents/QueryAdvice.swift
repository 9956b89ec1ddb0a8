import Basics
import Documents
import Larder

/// What is probably wrong with a query: it names a field that no document has, or has the notation of another language.
///
/// It asks the server about the fields in doubt only, so that a query that finds documents costs nothing more.
struct QueryAdvice {
  /// The maximum number of fields to ask the server about.
  private static let maxFieldCount = 8
  /// How long a suggestion for a field's name may take.
  private static let sampleTimeout = Duration.milliseconds(300)

  private let store: RemoteStore
  private let name: String

  /// - Parameter name: The store's name.
  init(_ store: RemoteStore, named name: String) {
    (self.store, self.name) = (store, name)
  }

  /// Returns warnings about a query.
  /// - Parameters:
  ///   - selector: The query's selector.
  ///   - foundNothing: Whether no document matches the selector.
  ///   - fields: Fields outside of the selector that no returned document had, such as those of the sort.
  ///   - projected: Fields to print that no printed document had.
  func warnings(
    _ selector: Selector, foundNothing: Bool, unseen fields: [FieldPath] = [], projected: [FieldPath] = []
  ) async -> [String] {
    var doubts = QueryDoubts(selector, foundNothing: foundNothing)
    for field in fields { doubts.add(.field(field)) }
    for field in projected { doubts.add(.projected(field)) }
    do {
      var warnings: [String] = []
      for doubt in doubts.all.prefix(Self.maxFieldCount) {
        if let warning = try await warning(doubt, selector) { warnings.append(warning) }
      }
      // A store without documents has no fields.
      guard !warnings.isEmpty, try await exists(.all) else { return [] }
      return warnings
    } catch {
      // The query itself was answered, and advice is not worth an error.
      return []
    }
  }

  // MARK: Changes of everything

  /// Warns before a change of documents whose selector matches all of them, probably by mistake. On a terminal, asks
  /// whether to go on.
  /// - Parameters:
  ///   - isDryRun: Whether nothing will change, so that nothing is asked.
  ///   - needsConfirmation: Whether to ask even if there is nothing to warn of, and to refuse without a terminal.
  ///   - verb: What becomes of the documents, such as "Delete".
  /// - Throws: `CommandFailure` if the answer isn't yes.
  func confirm(
    _ selector: Selector, isDryRun: Bool, needsConfirmation: Bool = false, verb: String
  ) async throws {
    let suspicion = try await suspicion(about: selector)
    if let suspicion { LarderCommand.warn("\(suspicion), so that all documents match") }
    guard !isDryRun, needsConfirmation || suspicion != nil else { return }
    let canAsk = await Confirmation.isPossible
    guard needsConfirmation || canAsk else { return }
    let count = try await store.count(.all)
    let documents = "\(HumanReadable.number(Int(clamping: count))) \(count == 1 ? "document" : "documents")"
    try await Confirmation.require("\(verb) all \(documents) of '\(name)'?")
  }

  /// Returns why a selector matches all documents: it compares constants, or negates a condition on a field that no
  /// document has; nil if it doesn't match all of them, or for another reason.
  private func suspicion(about selector: Selector) async throws(LarderError) -> String? {
    let suspects = SuspectedParts(selector.tree)
    guard suspects.comparesConstants || !suspects.negatedFields.isEmpty,
      try await !exists(!selector), try await exists(.all)
    else { return nil }
    for path in suspects.negatedFields.prefix(Self.maxFieldCount) {
      guard try await !exists(.field(path, .exists())) else { continue }
      return missing(path) + (await suggestion(for: path).map { " (did you mean '\($0)'?)" } ?? "")
    }
    return suspects.comparesConstants
      ? "the condition compares two constants (in a predicate, the name of a field has no quotes)" : nil
  }

  private func warning(_ doubt: QueryDoubts.Doubt, _ selector: Selector) async throws(LarderError) -> String? {
    switch doubt {
    case .pattern(let text):
      return "no document matches the pattern '\(text)', in which % is an ordinary character: "
        + "* stands for any text, and ? for one character"
    case .field(let path):
      guard try await !exists(.field(path, .exists())) else { return nil }
      if let condition = Self.operatorNotation(path) {
        return "\(missing(path)); the names of operators begin with $, as in \(condition)"
      }
      let suggestion = await suggestion(for: path)
      return missing(path) + (suggestion.map { "; did you mean '\($0)'?" } ?? "")
    case .operand(let path):
      guard try await !exists(.field(path, .exists())) else { return nil }
      return "\(missing(path)); in a predicate, text to compare with has quotes: '\(path)'"
    case .difference(let path, let operands):
      if try await exists(.field(path, .exists())) {
        let name = path.names.map { $0.replacing("-", with: "\\-") }.joined(separator: ".")
        return "the predicate subtracts one field from another; the name of the field '\(path)' is written \(name)"
      }
      for operand in operands {
        if let warning = try await warning(.field(operand), selector) { return warning }
      }
      return nil
    case .projected(let path):
      // The path of a condition leads into arrays, and that of a projected field doesn't.
      let query = DocumentQuery(selector && .field(path, .exists()), limit: 1, fields: [path])
      guard let document = try await store.find(query).result().documents.first else {
        return try await warning(.field(path), selector)
      }
      guard document.text == Array("{}".utf8) else { return nil }
      return "--fields \(path) leads into an array, and such fields are not printed; print \(path.names[0])"
    }
  }

  private func missing(_ path: FieldPath) -> String { "no document of '\(name)' has the field '\(path)'" }

  private func exists(_ selector: Selector) async throws(LarderError) -> Bool {
    let query = DocumentQuery(selector, limit: 1, fields: ["_id"])
    return try await !store.find(query).result().documents.isEmpty
  }

  private func suggestion(for path: FieldPath) async -> String? {
    let paths = await FieldNames().paths(in: store, named: name, timeout: Self.sampleTimeout)
    return SpellingSuggestion.nearest(to: path.description, of: paths.map(\.description).sorted())
  }

  /// Returns a condition with an operator if the path's last name is that of an operator without its `$`.
  private static func operatorNotation(_ path: FieldPath) -> String? {
    guard path.names.count > 1, let name = path.names.last, SelectorOperator(rawValue: "$\(name)") != nil else {
      return nil
    }
    let field = FieldPath(names: Array(path.names.dropLast()))
    return JSONValue.object([field.description: .object(["$\(name)": "…"])]).description.replacing("\"…\"", with: "…")
  }
}

/// The parts of a query that are in doubt if it doesn't find what was meant.
struct QueryDoubts {
  enum Doubt: Equatable {
    /// A field that documents should have.
    case field(FieldPath)
    /// A field that another operand is compared with, where quotes may be missing.
    case operand(FieldPath)
    /// A difference of fields, which a name with a hyphen may be meant by.
    case difference(FieldPath, of: [FieldPath])
    /// A pattern of `LIKE` with the wildcards of SQL.
    case pattern(String)
    /// A field to print.
    case projected(FieldPath)
  }

  private(set) var all: [Doubt] = []

  /// - Parameter foundNothing: Whether no document matches the selector. If some do, only computed operands are in doubt.
  init(_ selector: Selector, foundNothing: Bool) {
    add(selector.tree, under: [], conditions: foundNothing)
  }

  mutating func add(_ doubt: Doubt) {
    switch doubt {
    case .field(let path), .operand(let path), .projected(let path):
      // Every document has these.
      if path.names == ["_id"] || path.names == ["_rev"] { return }
    case .difference, .pattern: break
    }
    // A field that is an operand and has a condition, too, gets one warning: the one that says more.
    if case .operand(let path) = doubt { all.removeAll { $0 == .field(path) } }
    if case .field(let path) = doubt, all.contains(.operand(path)) { return }
    if !all.contains(doubt) { all.append(doubt) }
  }

  /// - Parameters:
  ///   - parent: The names that lead to the element that the tree is about.
  ///   - conditions: Whether conditions on fields are in doubt.
  private mutating func add(_ tree: SelectorTree, under parent: [String], conditions: Bool) {
    switch tree {
    case .and(let parts), .or(let parts): for part in parts { add(part, under: parent, conditions: conditions) }
    // A document without the field matches.
    case .not(let part): add(part, under: parent, conditions: false)
    case .someElementNot, .text: break
    case .field(let path, let condition):
      let names = parent + (path?.names ?? [])
      guard conditions, !names.isEmpty else { return }
      add(condition, of: names)
    case .expression(_, let left, let right):
      for operand in [left, right] { add(operand, conditions: conditions) }
    }
  }

  private mutating func add(_ condition: SelectorTree.Condition, of names: [String]) {
    switch condition {
    case .exists(false): return
    case .like(let pattern, _) where pattern.description.contains("%"): add(.pattern(pattern.description))
    case .elemMatch(let tree), .allMatch(let tree): add(tree, under: names, conditions: true)
    default: break
    }
    add(.field(FieldPath(names: names)))
  }

  private mutating func add(_ operand: SelectorTree.Expression, conditions: Bool) {
    switch operand {
    case .literal: break
    case .field(let path): add(.operand(path))
    case .operation(_, let left, let right):
      let fields = Self.minuendAndSubtrahends(operand)
      if fields.count > 1 {
        add(.difference(Self.hyphenated(fields), of: fields))
      } else {
        for operand in [left, right] { add(operand, conditions: conditions) }
      }
    case .aggregate(_, let path), .countWhere(let path, _): if conditions { add(.field(path)) }
    }
  }

  /// Returns the fields of a difference in which there is nothing else; none for any other operand.
  private static func minuendAndSubtrahends(_ operand: SelectorTree.Expression) -> [FieldPath] {
    switch operand {
    case .field(let path): return [path]
    case .operation(.subtract, let left, .field(let path)):
      let fields = minuendAndSubtrahends(left)
      return fields.isEmpty ? [] : fields + [path]
    default: return []
    }
  }

  /// Returns the field whose name, without escapes, is read as this difference.
  private static func hyphenated(_ fields: [FieldPath]) -> FieldPath {
    var names = fields[0].names
    for field in fields.dropFirst() {
      names[names.count - 1] += "-" + field.names[0]
      names += field.names.dropFirst()
    }
    return FieldPath(names: names)
  }
}

/// The parts of a selector for which it can match all documents by mistake.
struct SuspectedParts {
  /// The fields of conditions that are negated, so that documents without the field match.
  private(set) var negatedFields: [FieldPath] = []
  private(set) var comparesConstants = false

  init(_ tree: SelectorTree) { add(tree, isNegated: false) }

  private mutating func add(_ tree: SelectorTree, isNegated: Bool) {
    switch tree {
    case .and(let parts), .or(let parts): for part in parts { add(part, isNegated: isNegated) }
    case .not(let part): add(part, isNegated: !isNegated)
    case .someElementNot(let path, _): if let path { add(path) }
    case .field(let path?, .exists(false)): if !isNegated { add(path) }
    case .field(let path?, _): if isNegated { add(path) }
    case .expression(_, .literal, .literal): comparesConstants = true
    case .expression(_, let left, let right):
      if isNegated { for case .field(let path) in [left, right] { add(path) } }
    case .field, .text: break
    }
  }

  private mutating func add(_ path: FieldPath) {
    if path.names != ["_id"], path.names != ["_rev"], !negatedFields.contains(path) { negatedFields.append(path) }
  }
}

/// The fields of a query that no document of its result has had so far.
struct UnseenFields {
  private struct Field {
    let path: FieldPath
    let test: CompiledSelector
  }

  private var sorted: [Field] = []
  private var projected: [Field] = []
  private(set) var documentCount = 0

  init(_ query: DocumentQuery) throws(SelectorError) {
    for field in query.sort { sorted.append(try Self.field(field.path)) }
    for path in query.fields { projected.append(try Self.field(path)) }
  }

  private static func field(_ path: FieldPath) throws(SelectorError) -> Field {
    Field(path: path, test: try CompiledSelector(.field(path, .exists())))
  }

  var sortedPaths: [FieldPath] { sorted.map(\.path) }
  var projectedPaths: [FieldPath] { projected.map(\.path) }

  /// Takes note of a document of the result. What a projection leaves out is not seen.
  mutating func examine(_ document: Document) {
    documentCount += 1
    if !sorted.isEmpty { sorted.removeAll { $0.test.matches(document) } }
    if !projected.isEmpty { projected.removeAll { $0.test.matches(document) } }
  }
}
