import TestSupport

/// Makes random values for entries: documents with a few fields that repeat, and others.
struct DocumentMaker {
  /// Returns the text of a value.
  static func value(using random: inout SeededGenerator) -> [UInt8] {
    switch Int.random(in: 0..<20, using: &random) {
    case 0: return Array("[1, 2]".utf8)
    case 1: return Array("no JSON".utf8)
    case 2: return []
    case 3: return Array("{".utf8) + document(using: &random).dropFirst()
    default: return document(using: &random)
    }
  }

  private static func document(using random: inout SeededGenerator) -> [UInt8] {
    var members: [String] = []
    for name in ["a", "b", "c"] where Int.random(in: 0..<5, using: &random) > 0 {
      members.append("\"\(name)\": \(field(using: &random))")
    }
    // Padding changes the size of the record.
    let padding = String(repeating: "x", count: [0, 0, 0, 8, 300].randomElement(using: &random)!)
    members.append("\"p\": \"\(padding)\"")
    return Array("{\(members.joined(separator: ", "))}".utf8)
  }

  private static func field(using random: inout SeededGenerator) -> String {
    switch Int.random(in: 0..<12, using: &random) {
    case 0: "null"
    case 1: "\"text \(Int.random(in: 0..<5, using: &random))\""
    case 2: "[\(Int.random(in: 0..<4, using: &random)), \(Int.random(in: 0..<4, using: &random))]"
    case 3: "{\"x\": \(Int.random(in: 0..<3, using: &random))}"
    case 4: "[{\"x\": 1}, {\"x\": \(Int.random(in: 0..<3, using: &random))}]"
    case 5: "1.5"
    default: "\(Int.random(in: 0..<6, using: &random))"
    }
  }

  /// Returns the text of a document whose value isn't in its record.
  static func large(_ byteCount: Int, using random: inout SeededGenerator) -> [UInt8] {
    let number = Int.random(in: 0..<6, using: &random)
    return Array("{\"a\": \(number), \"p\": \"\(String(repeating: "y", count: byteCount))\"}".utf8)
  }

  /// Returns the text of a document with more keys than an index takes.
  static func manyKeys() -> [UInt8] {
    Array("{\"a\": [\((0..<1_200).map(String.init).joined(separator: ","))]}".utf8)
  }
}
