import EntryFiles

/// What a data directory records about a store: the text of the file `store` in its folder (Protocol/data-directory.md,
/// §3).
package struct StoreDescription: Equatable, Sendable {
  private static let firstLinePrefix = "larder store "
  private static let firstLine = firstLinePrefix + "1"

  /// The fields of every description. The others are the options of the store's engine.
  static let reservedFields = ["name", "engine", "identity"]

  package let name: StoreName
  /// The specification, with a value for every option that has a default.
  package let specification: StoreSpecification
  /// 32 hexadecimal digits that identify the store. No other store ever has them, whatever its name.
  package let identity: String

  /// Describes a new store.
  package init(name: StoreName, specification: StoreSpecification) {
    var random = SystemRandomNumberGenerator()
    let words = [random.next(), random.next()]
    self.name = name
    self.specification = specification.complete
    identity = words.map { hexadecimalText($0, digits: 16) }.joined()
  }

  /// Describes a new store of an engine that has a durability.
  package init(name: StoreName, engine: EngineKind, durability: Durability = .always) {
    self.init(name: name, specification: StoreSpecification(engine, durability: durability))
  }

  package var engine: EngineKind { specification.engine }
  /// What the store guarantees for a write that it has acknowledged.
  package var durability: Durability { specification.durability ?? .always }

  var text: String {
    var lines = [Self.firstLine, "name = \(name)", "engine = \(engine)"]
    for option in engine.options {
      if let value = specification.value(of: option.name, as: String.self) { lines.append("\(option.name) = \(value)") }
    }
    return (lines + ["identity = \(identity)", ""]).joined(separator: "\n")
  }

  /// Returns whether a later version of this program has written a description.
  static func isOfLaterVersion(_ bytes: [UInt8]) -> Bool {
    let line = String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    guard line.hasPrefix(firstLinePrefix), let version = UInt(line.dropFirst(firstLinePrefix.count)) else {
      return false
    }
    return version > 1
  }

  /// Why a text is not a description: what is wrong, and in which line, counted from 1; 0 for the text as a whole.
  struct ParseError: Error, Equatable {
    let line: Int
    let reason: String
  }

  /// Parses what `text` returns. The lines after the first may be in any order. Empty lines and lines that start with
  /// `#` are ignored.
  /// - Parameter engines: The engines that there are.
  init(parsing text: String, engines: [EngineKind]) throws(ParseError) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.first == Self.firstLine[...] else {
      throw ParseError(line: 1, reason: "it should be \"\(Self.firstLine)\"")
    }
    var values: [Substring: (text: Substring, line: Int)] = [:]
    for (index, line) in lines.enumerated().dropFirst() where !line.isEmpty && line.first != "#" {
      guard let separator = line.firstRange(of: " = ") else {
        throw ParseError(line: index + 1, reason: "it should have the form \"name = value\"")
      }
      let field = line[..<separator.lowerBound]
      guard values.updateValue((line[separator.upperBound...], index + 1), forKey: field) == nil else {
        throw ParseError(line: index + 1, reason: "duplicate field \"\(field)\"")
      }
    }
    if values["engine"] == nil { try Self.checkFields(of: values, engines) }
    name = try Self.value("name", in: values, "not a valid store name") { try? StoreName(String($0)) }
    let engine = try Self.value("engine", in: values, "not an engine whose stores a data directory records") { text in
      engines.first { $0.name == text && $0.isRecorded }
    }
    try Self.checkFields(of: values, [engine])
    specification = try Self.specification(engine, values)
    identity = try Self.value("identity", in: values, "not an identity") { text in
      text.utf8.count == 32 && text.utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) } ? String(text) : nil
    }
  }

  /// Checks that there are no fields but those of descriptions of stores with these engines.
  private static func checkFields(
    of values: [Substring: (text: Substring, line: Int)], _ engines: [EngineKind]
  ) throws(ParseError) {
    let fields = reservedFields + engines.flatMap(\.options).map(\.name)
    let unknown = values.filter { !fields.contains(String($0.key)) }.min { $0.value.line < $1.value.line }
    if let unknown { throw ParseError(line: unknown.value.line, reason: "unknown field \"\(unknown.key)\"") }
  }

  /// Returns the specification with the options in those fields. An option that has a default is never omitted.
  private static func specification(
    _ engine: EngineKind, _ values: [Substring: (text: Substring, line: Int)]
  ) throws(ParseError) -> StoreSpecification {
    var specification = StoreSpecification(engine)
    for option in engine.options where option.defaultValue != nil || values[option.name[...]] != nil {
      _ = try value(option.name[...], in: values, "not a valid \(option.name)") { text in
        try? specification.set(option.name, to: String(text))
      }
    }
    return specification
  }

  private static func value<Value>(
    _ field: Substring, in values: [Substring: (text: Substring, line: Int)], _ complaint: String,
    _ parse: (Substring) -> Value?
  ) throws(ParseError) -> Value {
    guard let (text, line) = values[field] else { throw ParseError(line: 0, reason: "\"\(field)\" is missing") }
    guard let value = parse(text) else { throw ParseError(line: line, reason: "\"\(text)\" is \(complaint)") }
    return value
  }
}
