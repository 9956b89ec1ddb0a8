import Documents
import Foundation
import GRDB

/// A number as SQLite may read it from JSON text: with an error of a few units in the last of its 15 digits.
struct SQLNumber {
  let least: Double
  let greatest: Double

  init(_ number: Int64) { self.init(Double(number)) }

  init(_ number: Double) {
    if number.isNaN {
      // It is before all numbers, which only the evaluation of the selector knows.
      (least, greatest) = (-.infinity, .infinity)
    } else if number.isInfinite {
      (least, greatest) =
        number < 0 ? (number, -.greatestFiniteMagnitude) : (.greatestFiniteMagnitude, number)
    } else {
      let margin = max(abs(number) * 1e-13, .leastNormalMagnitude)
      (least, greatest) = (number - margin, number + margin)
    }
  }
}

/// A string as SQLite may read it from JSON text: some versions end it before U+0000.
struct SQLString {
  /// The string, or what comes before U+0000.
  let least: String
  /// The string, or a string behind all that begin with `least` and U+0000.
  let greatest: String
  /// Whether the string has no U+0000.
  let isExact: Bool

  init(_ text: String) {
    let end = text.unicodeScalars.firstIndex(of: "\0")
    isExact = end == nil
    least = end.map { String(text.unicodeScalars[..<$0]) } ?? text
    greatest = isExact ? text : least + "\u{1}"
  }
}

extension String {
  /// The first string behind all that begin with this one; nil if there is none, as behind the empty string.
  var endOfStringsWithPrefix: String? {
    var scalars = Array(unicodeScalars)
    while let last = scalars.popLast() {
      // The surrogates are no scalars.
      let next = last.value == 0xD7FF ? 0xE000 : last.value + 1
      guard let next = Unicode.Scalar(next) else { continue }
      return String(String.UnicodeScalarView(scalars + [next]))
    }
    return nil
  }
}

extension JSONType {
  /// The place of the type in the total order.
  var order: Int {
    switch self {
    case .null: 0
    case .boolean: 1
    case .number: 2
    case .string: 3
    case .array: 4
    case .object: 5
    }
  }

  /// What `json_type` calls values of the type.
  var sqliteNames: [String] {
    switch self {
    case .null: ["null"]
    case .boolean: ["false", "true"]
    case .number: ["integer", "real"]
    case .string: ["text"]
    case .array: ["array"]
    case .object: ["object"]
    }
  }
}

extension DatabaseValue {
  /// A key as the tables have it.
  static func key(_ key: String) -> DatabaseValue { Data(key.utf8).databaseValue }
}

extension SQLCondition {
  static func placeholders(_ count: Int) -> String { Array(repeating: "?", count: count).joined(separator: ", ") }
}
