import EntryFiles

/// What a data directory remembers of a store: the text of the file `store` in its folder (Protocol/data-directory.md, §3).
package struct StoreDescription: Equatable, Sendable {
  private static let firstLine = "larder store 1"

  package let name: StoreName
  package let engine: EngineKind
  package var durability: Durability
  /// 32 hexadecimal digits that no other store ever has, whatever its name.
  package let identity: String

  /// Describes a store that is new.
  package init(name: StoreName, engine: EngineKind, durability: Durability = .always) {
    var random = SystemRandomNumberGenerator()
    let words = [random.next(), random.next()]
    self.init(
      name: name, engine: engine, durability: durability,
      identity: words.map { hexadecimalText($0, digits: 16) }.joined())
  }

  private init(name: StoreName, engine: EngineKind, durability: Durability, identity: String) {
    self.name = name
    self.engine = engine
    self.durability = durability
    self.identity = identity
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

  /// Why a text is no description: what is wrong, and in which line, from 1.
  struct Mistake: Error, Equatable {
    let line: Int
    let reason: String
  }

  /// Reads what `text` gives, its lines in any order but the first, with empty ones and ones that begin with `#` in between.
  init(reading text: String) throws(Mistake) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.first == Self.firstLine[...] else {
      throw Mistake(line: 1, reason: "it should be \"\(Self.firstLine)\"")
    }
    var values: [Substring: (text: Substring, line: Int)] = [:]
    for (index, line) in lines.enumerated().dropFirst() where !line.isEmpty && line.first != "#" {
      guard let mark = line.firstRange(of: " = ") else {
        throw Mistake(line: index + 1, reason: "it should have the form \"name = value\"")
      }
      let field = line[..<mark.lowerBound]
      guard ["name", "engine", "durability", "identity"].contains(field) else {
        throw Mistake(line: index + 1, reason: "\"\(field)\" is not known here")
      }
      guard values.updateValue((line[mark.upperBound...], index + 1), forKey: field) == nil else {
        throw Mistake(line: index + 1, reason: "\"\(field)\" is there twice")
      }
    }
    name = try Self.value("name", of: values, "is no name for a store") { try? StoreName(String($0)) }
    engine = try Self.value("engine", of: values, "is no engine that keeps files") { text in
      EngineKind(rawValue: String(text)).flatMap { $0.isDurable ? $0 : nil }
    }
    durability = try Self.value("durability", of: values, "is no durability") { Durability(String($0)) }
    identity = try Self.value("identity", of: values, "is no identity") { text in
      text.utf8.count == 32 && text.utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) } ? String(text) : nil
    }
  }

  private static func value<Value>(
    _ field: Substring, of values: [Substring: (text: Substring, line: Int)], _ complaint: String,
    _ read: (Substring) -> Value?
  ) throws(Mistake) -> Value {
    guard let (text, line) = values[field] else { throw Mistake(line: 0, reason: "\"\(field)\" is missing") }
    guard let value = read(text) else { throw Mistake(line: line, reason: "\"\(text)\" \(complaint)") }
    return value
  }
}
