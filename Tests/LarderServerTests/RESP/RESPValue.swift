import Testing

@testable import LarderServer

/// A reply of RESP.
enum RESPValue: Equatable, Sendable, ExpressibleByIntegerLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral
{
  case simple(String)
  case error(String)
  case integer(Int)
  case bulk(String)
  case array([RESPValue])
  case map([RESPValue])
  case push([RESPValue])
  case null

  static let ok = RESPValue.simple("OK")

  init(integerLiteral value: Int) { self = .integer(value) }
  init(stringLiteral value: String) { self = .bulk(value) }
  init(arrayLiteral elements: RESPValue...) { self = .array(elements) }

  var elements: [RESPValue] { if case .array(let elements) = self { elements } else { [] } }
  var isError: Bool { if case .error = self { true } else { false } }
  var text: String { if case .bulk(let text) = self { text } else { "" } }
}

extension TestClient {
  /// Sends a command, and returns the reply.
  func call(_ words: String...) throws -> RESPValue {
    try send(words)
    return try reply()
  }

  func send(_ words: [String]) throws { try send(Self.encoded(words)) }

  static func encoded(_ words: [String]) -> [UInt8] { encoded(words.map { Array($0.utf8) }) }

  static func encoded(_ words: [[UInt8]]) -> [UInt8] {
    Array("*\(words.count)\r\n".utf8) + words.flatMap { Array("$\($0.count)\r\n".utf8) + $0 + [0x0D, 0x0A] }
  }

  /// Returns the next replies.
  func replies(_ count: Int) throws -> [RESPValue] { try (0..<count).map { _ in try reply() } }

  func reply() throws -> RESPValue {
    let line = try line()
    let rest = String(line.dropFirst())
    switch line.first {
    case "+": return .simple(rest)
    case "-": return .error(rest)
    case ":": return .integer(try #require(Int(rest)))
    case "_": return .null
    case "$", "=":
      let count = try #require(Int(rest))
      if count < 0 { return .null }
      return .bulk(String(decoding: try receive(byteCount: count + 2).dropLast(2), as: UTF8.self))
    case "*", "~":
      let count = try #require(Int(rest))
      return count < 0 ? .null : .array(try replies(count))
    case ">": return .push(try replies(try #require(Int(rest))))
    case "%": return .map(try replies(2 * (try #require(Int(rest)))))
    default: throw Unreadable(line: line)
    }
  }

  private struct Unreadable: Error { let line: String }

  private func line() throws -> String {
    var line: [UInt8] = []
    while true {
      line.append(try receive(byteCount: 1)[0])
      if line.suffix(2) == [0x0D, 0x0A] { return String(decoding: line.dropLast(2), as: UTF8.self) }
    }
  }
}
