import DataSources
import Documents
import Foundation
import GRDB

/// A field of the documents in the column `value`: its expressions in SQL, and conditions on it.
///
/// `json_extract` returns numbers as numbers, false and true as 0 and 1, strings, and arrays and objects as text, which
/// starts with a bracket; NULL for null and for a missing field. An index on it serves ranges of these: that is what
/// conditions that select at least the matches consist of. `json_type` tells values apart, but no index serves it.
///
/// What SQLite doesn't know, conditions allow for: a field under an array has the values of all elements; a condition
/// on an array is one on its elements; a number may have been read with a small error; a string ends before U+0000.
struct SQLField: Sendable {
  /// The value of the field.
  private let value: String
  /// The name of the value's type.
  private let type: String
  /// The names of the types of the values that the field is in, from the outside.
  private let parentTypes: [String]
  private let path: FieldPath

  /// The maximum number of names in a path. Each adds a condition on the field.
  private static let maxNameCount = 16
  /// The maximum number of values that a field is compared with one by one.
  private static let (maxNumberCount, maxStringCount) = (50, 1_000)

  /// Returns nil if the path has a name that JSON text has to escape, or too many names.
  init?(_ path: FieldPath) {
    guard path.names.count <= Self.maxNameCount, path.names.allSatisfy(Self.isPlain) else { return nil }
    // An expression is always written in the same way. Otherwise SQLite would not use an index on it.
    func literal(_ names: ArraySlice<String>) -> String {
      "'$" + names.map { ".\"\(Self.withDoubledQuotes($0))\"" }.joined() + "'"
    }
    value = "json_extract(value, \(literal(path.names[...])))"
    type = "json_type(value, \(literal(path.names[...])))"
    parentTypes = (1..<path.names.count).map { "json_type(value, \(literal(path.names[..<$0])))" }
    self.path = path
  }

  /// Returns whether the encoder writes a name as it is.
  private static func isPlain(_ name: String) -> Bool {
    name.unicodeScalars.allSatisfy { $0 >= " " && !["\"", "\\", "/", "\u{7F}"].contains($0) }
  }

  /// Doubles each single quote, also one that a combining character follows: SQL knows no grapheme clusters.
  private static func withDoubledQuotes(_ name: String) -> String {
    String(String.UnicodeScalarView(name.unicodeScalars.flatMap { $0 == "'" ? [$0, $0] : [$0] }))
  }

  // MARK: Indexes

  /// The indexes that serve conditions on the field: what follows `CREATE INDEX`, by the end of the index's name. Each
  /// array that the field is in needs an entry, because its elements may have the field.
  func indexes(on table: String) -> [(name: String, definition: String)] {
    let arrays = zip(1..., parentTypes).map { count, type in
      ("arrays_" + Self.indexName(path.names.prefix(count)), "\(table) (\(type)) WHERE \(type) = 'array'")
    }
    return [(Self.indexName(path.names[...]), "\(table) (\(value))")] + arrays
  }

  /// SQLite ignores the case of an index's name, but not that of a field's.
  private static func indexName(_ names: ArraySlice<String>) -> String {
    names.joined(separator: "\0").utf8.map { String($0, radix: 16) }.joined(separator: "_")
  }

  // MARK: Conditions

  /// Returns what a condition of a selector is in SQL.
  /// - Parameter known: The type that the value has wherever the condition matters; nil for any type.
  func condition(_ condition: SelectorTree.Condition, _ bound: SQLBound, type known: JSONType?) -> SQLCondition {
    let exact = exactCondition(condition)
    switch bound {
    case .superset:
      let arrays = parentTypes.map { SQLCondition("\($0) = 'array'") }
      return .any((exact.map { [$0] } ?? supersets(condition, known)) + arrays, bound)
    case .subset:
      let noArrays = parentTypes.map { SQLCondition("\($0) IS NOT 'array'") }
      return .all([exact ?? .any(subsets(condition), bound)] + noArrays, bound)
    }
  }

  /// Returns a condition that is about a whole value, and exact unless an array is above it; nil for other conditions.
  private func exactCondition(_ condition: SelectorTree.Condition) -> SQLCondition? {
    switch condition {
    case .exists(let exists): SQLCondition("\(type) IS \(exists ? "NOT " : "")NULL")
    case .type(let type): hasType([type])
    case .size(let count):
      SQLCondition(
        "(\(type) = 'array' AND json_array_length(\(value)) = ?)", [count.databaseValue])
    default: nil
    }
  }

  private func hasType(_ types: [JSONType]) -> SQLCondition {
    SQLCondition("\(type) IN (\(types.flatMap(\.sqliteNames).map { "'\($0)'" }.joined(separator: ", ")))")
  }
}

// MARK: - At least what matches

extension SQLField {
  /// Returns conditions that together select at least the matches of a type, or of all types.
  private func supersets(_ condition: SelectorTree.Condition, _ known: JSONType?) -> [SQLCondition] {
    let supersets = supersets(condition)
    return JSONType.allCases.filter { known == nil || known == $0 }.compactMap { supersets[$0] }
  }

  /// Returns what selects at least the matches, by the type of the value.
  private func supersets(_ condition: SelectorTree.Condition) -> [JSONType: SQLCondition] {
    switch condition {
    case .equal(let value, let options): matches(of: [value], options)
    case .in(let values, let options): matches(of: values, options)
    case .less(let value), .lessOrEqual(let value): comparisons(value, isLess: true)
    case .greater(let value), .greaterOrEqual(let value): comparisons(value, isLess: false)
    case .remainder: [.number: all(.number), .array: all(.array)]
    case .beginsWith(let prefix, []): [.string: hasPrefix(prefix), .array: all(.array)]
    case .endsWith(let suffix, []): [.string: hasSuffix(suffix), .array: all(.array)]
    case .contains(let part, []): [.string: contains(part), .array: all(.array)]
    case .beginsWith, .endsWith, .contains, .like, .regex: [.string: all(.string), .array: all(.array)]
    case .all, .elemMatch, .allMatch: [.array: all(.array)]
    case .keyMapMatch: [.object: all(.object)]
    case .exists, .type, .size: preconditionFailure("these conditions are exact")
    }
  }

  /// Returns a condition that holds for all values of a type.
  private func all(_ type: JSONType) -> SQLCondition {
    switch type {
    case .null: SQLCondition("(\(value) IS NULL AND \(self.type) = 'null')")
    case .boolean: SQLCondition("(\(value) IN (0, 1) AND \(self.type) IN ('false', 'true'))")
    case .number: SQLCondition("\(value) < ''")
    case .string: SQLCondition("\(value) >= ''")
    case .array: SQLCondition("(\(value) >= '[' AND \(value) < '\\')")
    case .object: SQLCondition("(\(value) >= '{' AND \(value) < '|')")
    }
  }

  /// Returns what selects at least the values that are equal to operands, or have an element that is.
  private func matches(of operands: [JSONValue], _ options: Selector.StringOptions) -> [JSONType: SQLCondition] {
    var matches: [JSONType: SQLCondition] = [.array: all(.array)]
    var (numbers, strings) = ([SQLNumber](), [SQLString]())
    for operand in operands {
      switch operand {
      case .null, .bool, .object: matches[operand.type] = all(operand.type)
      case .integer(let number): numbers.append(SQLNumber(number))
      case .double(let number): numbers.append(SQLNumber(number))
      case .string(let text): strings.append(SQLString(text))
      case .array: break
      }
    }
    if !numbers.isEmpty { matches[.number] = isOne(of: numbers) }
    if !strings.isEmpty { matches[.string] = options.isEmpty ? isOne(of: strings) : all(.string) }
    return matches
  }

  private func isOne(of numbers: [SQLNumber]) -> SQLCondition {
    func between(_ least: Double, _ greatest: Double) -> SQLCondition {
      SQLCondition("\(value) BETWEEN ? AND ?", [least.databaseValue, greatest.databaseValue])
    }
    guard numbers.count > Self.maxNumberCount else {
      return .any(numbers.map { between($0.least, $0.greatest) }, .superset)
    }
    return between(numbers.map(\.least).min() ?? 0, numbers.map(\.greatest).max() ?? 0)
  }

  private func isOne(of strings: [SQLString]) -> SQLCondition {
    func isBefore(_ left: String, _ right: String) -> Bool { left.utf8.lexicographicallyPrecedes(right.utf8) }
    if strings.count == 1, strings[0].isExact { return SQLCondition("\(value) = ?", [strings[0].least.databaseValue]) }
    guard strings.allSatisfy(\.isExact), strings.count <= Self.maxStringCount else {
      let (least, greatest) = (strings.map(\.least).min(by: isBefore), strings.map(\.greatest).max(by: isBefore))
      return SQLCondition("\(value) BETWEEN ? AND ?", [(least ?? "").databaseValue, (greatest ?? "").databaseValue])
    }
    return SQLCondition(
      "\(value) IN (\(SQLCondition.placeholders(strings.count)))", strings.map { $0.least.databaseValue })
  }

  /// Returns what selects at least the values before or after an operand in the total order, with the operand.
  private func comparisons(_ operand: JSONValue, isLess: Bool) -> [JSONType: SQLCondition] {
    var comparisons: [JSONType: SQLCondition] = [.array: all(.array)]
    for type in JSONType.allCases where type != .array {
      let order = type.order - operand.type.order
      if order == 0 ? [.null, .boolean, .object].contains(type) : (order < 0) == isLess {
        comparisons[type] = all(type)
      }
    }
    switch operand {
    case .integer(let number): comparisons[.number] = compared(with: SQLNumber(number), isLess: isLess)
    case .double(let number): comparisons[.number] = compared(with: SQLNumber(number), isLess: isLess)
    case .string(let text):
      let text = SQLString(text)
      comparisons[.string] =
        isLess
        ? SQLCondition("(\(value) >= '' AND \(value) <= ?)", [text.greatest.databaseValue])
        : SQLCondition("\(value) >= ?", [text.least.databaseValue])
    case .null, .bool, .array, .object: break
    }
    return comparisons
  }

  private func compared(with number: SQLNumber, isLess: Bool) -> SQLCondition {
    isLess
      ? SQLCondition("\(value) <= ?", [number.greatest.databaseValue])
      : SQLCondition("(\(value) >= ? AND \(value) < '')", [number.least.databaseValue])
  }

  private func hasPrefix(_ prefix: String) -> SQLCondition {
    let prefix = SQLString(prefix).least
    guard let end = prefix.endOfStringsWithPrefix else { return all(.string) }
    return SQLCondition(
      "(\(value) >= ? AND \(value) < ?)", [prefix.databaseValue, end.databaseValue])
  }

  private func hasSuffix(_ suffix: String) -> SQLCondition {
    guard SQLString(suffix).isExact, !suffix.isEmpty else { return all(.string) }
    let count = suffix.unicodeScalars.count
    return SQLCondition(
      "(substr(\(value), ?) = ? OR \(Self.mayHaveNUL))", [(-count).databaseValue, suffix.databaseValue])
  }

  private func contains(_ part: String) -> SQLCondition {
    guard SQLString(part).isExact, !part.isEmpty else { return all(.string) }
    return SQLCondition("(instr(\(value), ?) > 0 OR \(Self.mayHaveNUL))", [part.databaseValue])
  }

  /// Whether some string of the document may have U+0000.
  private static let mayHaveNUL = #"instr(value, '\u0000') > 0"#
}

// MARK: - At most what matches

extension SQLField {
  /// Returns conditions, each of which selects only matches.
  private func subsets(_ condition: SelectorTree.Condition) -> [SQLCondition] {
    switch condition {
    case .equal(let value, let options): [equal(value, options)]
    case .in(let values, let options): values.map { equal($0, options) }
    case .less(let value): certainComparisons(value, isLess: true, orEqual: false)
    case .lessOrEqual(let value): certainComparisons(value, isLess: true, orEqual: true)
    case .greater(let value): certainComparisons(value, isLess: false, orEqual: false)
    case .greaterOrEqual(let value): certainComparisons(value, isLess: false, orEqual: true)
    case .beginsWith(let prefix, []):
      SQLString(prefix).isExact ? [.all([hasType([.string]), hasPrefix(prefix)], .subset)] : []
    case .beginsWith, .endsWith, .contains, .like, .regex, .remainder, .all, .elemMatch, .allMatch, .keyMapMatch: []
    case .exists, .type, .size: preconditionFailure("these conditions are exact")
    }
  }

  private func equal(_ operand: JSONValue, _ options: Selector.StringOptions) -> SQLCondition {
    switch operand {
    case .null: return hasType([.null])
    case .bool(let bool): return SQLCondition("\(type) = '\(bool)'")
    case .integer(let number): return equal(number)
    case .double(let number): return Int64(exactly: number).map(equal) ?? .never
    case .string(let text):
      guard options.isEmpty, SQLString(text).isExact else { return .never }
      return SQLCondition(
        "(\(type) = 'text' AND \(value) = ? AND NOT \(Self.mayHaveNUL))", [text.databaseValue])
    case .array, .object: return .never
    }
  }

  private func equal(_ number: Int64) -> SQLCondition {
    // A greater one could be what an integer of more than 64 bits was read as.
    guard number.magnitude < 1 << 62 else { return .never }
    return SQLCondition("(\(type) = 'integer' AND \(value) = ?)", [number.databaseValue])
  }

  private func certainComparisons(_ operand: JSONValue, isLess: Bool, orEqual: Bool) -> [SQLCondition] {
    let types = JSONType.allCases.filter { type in
      type != .array && type.order != operand.type.order && (type.order < operand.type.order) == isLess
    }
    let others = types.isEmpty ? [] : [hasType(types)]
    let equal = orEqual ? [equal(operand, [])] : []
    switch operand {
    case .integer(let number): return others + equal + [isCertain(SQLNumber(number), isLess: isLess)]
    case .double(let number): return others + equal + [isCertain(SQLNumber(number), isLess: isLess)]
    case .string(let text):
      let text = SQLString(text)
      let comparison = SQLCondition(
        "(\(type) = 'text' AND \(value) \(isLess ? "<" : ">") ?)",
        [(isLess ? text.least : text.greatest).databaseValue])
      return others + equal + [comparison]
    case .bool(let bool):
      return others + equal + (bool == isLess ? [SQLCondition("\(type) = '\(!bool)'")] : [])
    case .null, .array, .object: return others + equal
    }
  }

  private func isCertain(_ number: SQLNumber, isLess: Bool) -> SQLCondition {
    SQLCondition(
      "(\(type) IN ('integer', 'real') AND \(value) \(isLess ? "<" : ">") ?)",
      [(isLess ? number.least : number.greatest).databaseValue])
  }
}
