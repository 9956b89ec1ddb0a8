import Foundation

/// JSON results, sorted and indented so that they can also be compared line by line.
enum JSON {
  /// - Parameter levels: The number of levels of objects and arrays that are indented. What is inside takes one line.
  static func encode(_ value: some Encodable, levels: Int = 2) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    var lines: [String] = []
    var isInside = false
    for line in String(decoding: try encoder.encode(value), as: UTF8.self).split(separator: "\n") {
      let text = line.drop { $0 == " " }
      let level = (line.count - text.count) / 2
      if level > levels || isInside && level == levels {
        lines[lines.count - 1] += " " + text
        isInside = level > levels
      } else {
        lines.append(String(line))
      }
      if level == levels, let last = text.last, "[{".contains(last) { isInside = true }
    }
    return lines.joined(separator: "\n")
  }

  static func decode<T: Decodable>(_ type: T.Type, from path: String) throws -> T {
    guard let bytes = FileManager.default.contents(atPath: path) else { throw BenchError("can't read \(path)") }
    do { return try JSONDecoder().decode(type, from: bytes) } catch {
      throw BenchError("\(path) is not a result of larder-bench: \(error)")
    }
  }
}

/// A Markdown table with names in the first column and figures in the others.
struct MarkdownTable {
  private let rows: [[String]]

  /// - Parameter rows: The rows. The first one is the header.
  init(_ rows: [[String]]) { self.rows = rows }

  var text: String {
    let lines = rows.map { "| " + $0.joined(separator: " | ") + " |" }
    let rule = "|" + rows[0].indices.map { $0 == 0 ? "---|" : "---:|" }.joined()
    return ([lines[0], rule] + lines.dropFirst()).joined(separator: "\n")
  }
}

/// Rounds a number to four significant digits, because no measurement here is more precise.
func rounded(_ value: Double) -> Double {
  guard value != 0, value.isFinite else { return 0 }
  var scale = 1.0
  while abs(value) * scale < 1_000 { scale *= 10 }
  return (value * scale).rounded() / scale
}

func decimal(_ value: Double, _ places: Int) -> String { String(format: "%.\(places)f", value) }

func percent(_ fraction: Double) -> String { "\(Int((fraction * 100).rounded()))%" }

/// Formats a number with at least three significant digits and thousands separators.
func grouped(_ value: Double) -> String {
  guard value >= 100 else { return decimal(value, value >= 10 ? 1 : value >= 1 ? 2 : 3) }
  var digits = String(Int(value.rounded()))
  var groups: [String] = []
  while digits.count > 3 {
    groups.insert(String(digits.suffix(3)), at: 0)
    digits.removeLast(3)
  }
  return ([digits] + groups).joined(separator: ",")
}

/// Returns the distinct values in their order.
func distinct(_ values: [String]) -> [String] {
  var seen: Set<String> = []
  return values.filter { seen.insert($0).inserted }
}
