import EntryFiles

/// What a data directory records about a store: the text of the file `store` in its folder (Protocol/data-directory.md,
/// §3).
package struct StoreDescription: Equatable, Sendable {
  private static let firstLinePrefix = "larder store "
  private static let firstLine = firstLinePrefix + "1"

  package let name: StoreName
  package let engine: EngineKind
  package let durability: Durability
  /// 32 hexadecimal digits that identify the store. No other store ever has them, whatever its name.
  package let identity: String

  /// Describes a new store.
  package init(name: StoreName, engine: EngineKind, durability: Durability = .always) {
    var random = SystemRandomNumberGenerator()
    let words = [random.next(), random.next()]
    self.name = name
    self.engine = engine
    self.durability = durability
    identity = words.map { hexadecimalText($0, digits: 16) }.joined()
  }

  var text: String {
    """
    \(Self.firstLine)
    name = \(name)
    engine = \(engine.rawValue)
    durability = \(durability)
    identity = \(identity)

    """
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
  init(parsing text: String) throws(ParseError) {
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
      guard ["name", "engine", "durability", "identity"].contains(field) else {
        throw ParseError(line: index + 1, reason: "unknown field \"\(field)\"")
      }
      guard values.updateValue((line[separator.upperBound...], index + 1), forKey: field) == nil else {
        throw ParseError(line: index + 1, reason: "duplicate field \"\(field)\"")
      }
    }
    name = try Self.value("name", in: values, "not a valid store name") { try? StoreName(String($0)) }
    engine = try Self.value("engine", in: values, "not an engine that keeps files") { text in
      EngineKind(rawValue: String(text)).flatMap { $0.isDurable ? $0 : nil }
    }
    durability = try Self.value("durability", in: values, "not a durability") { Durability(String($0)) }
    identity = try Self.value("identity", in: values, "not an identity") { text in
      text.utf8.count == 32 && text.utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) } ? String(text) : nil
    }
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
