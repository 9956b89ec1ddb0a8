import CLinux
import Glibc

/// Text that is safe to print on a terminal: it contains no control characters, and its width is known.
enum EscapedText {
  /// Returns bytes as one line. Control characters and invalid UTF-8 become escapes such as `\n`, `\u001b` and `\xff`.
  static func line(_ bytes: some Collection<UInt8>) -> String {
    text(bytes, keeping: [])
  }

  static func line(_ text: String) -> String {
    line(text.utf8)
  }

  /// Returns bytes like `line`, but keeps line feeds and tabs.
  static func lines(_ bytes: some Collection<UInt8>) -> String {
    text(bytes, keeping: ["\n", "\t"])
  }

  /// Returns the width of a text in columns of a terminal.
  static func width(_ text: String) -> Int {
    text.unicodeScalars.reduce(0) { $0 + width($1) }
  }

  /// Returns the text, shortened with an ellipsis if it is wider than `columns`.
  static func cut(_ text: String, to columns: Int) -> String {
    guard text.utf8.count > columns, width(text) > columns else { return text }
    var cut = String.UnicodeScalarView()
    var remaining = columns - 1
    for scalar in text.unicodeScalars {
      remaining -= width(scalar)
      if remaining < 0 { break }
      cut.append(scalar)
    }
    return String(cut) + (columns > 0 ? "…" : "")
  }

  /// Returns the end of the last complete character: a part of a text up to there is escaped as in the whole text.
  static func endOfCharacters(in bytes: ArraySlice<UInt8>) -> Int {
    for (distance, byte) in bytes.suffix(3).reversed().enumerated() where byte & 0xC0 != 0x80 {
      let count = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1
      return count > distance + 1 ? bytes.endIndex - distance - 1 : bytes.endIndex
    }
    return bytes.endIndex
  }

  /// - Complexity: O(*n*).
  private static func text(_ bytes: some Collection<UInt8>, keeping kept: Set<Unicode.Scalar>) -> String {
    // Appending to a view of scalars counts them, which would be quadratic.
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count)
    var decoder = Unicode.UTF8.ForwardParser()
    var input = bytes.makeIterator()
    var index = bytes.startIndex
    while true {
      switch decoder.parseScalar(from: &input) {
      case .emptyInput: return String(decoding: text, as: UTF8.self)
      case .valid(let encoded):
        let scalar = Unicode.UTF8.decode(encoded)
        index = bytes.index(index, offsetBy: encoded.count)
        if kept.contains(scalar) || isHarmless(scalar) {
          text += encoded
        } else {
          text += escape(scalar).utf8
        }
      case .error(let length):
        for _ in 0..<length {
          text += ("\\x" + hex(UInt32(bytes[index]), digits: 2)).utf8
          index = bytes.index(after: index)
        }
      }
    }
  }

  /// Returns whether a terminal only shows the character. Those that control it, that change the direction of the following
  /// text, or that can't be seen are not harmless, except for what joins letters and emojis, or varies their form.
  private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x20...0x7E, 0x200C, 0x200D, 0xFE00...0xFE0F, 0xE0100...0xE01EF: true
    case 0x2028, 0x2029: false
    default:
      switch scalar.properties.generalCategory {
      case .control, .format: false
      default: !scalar.properties.isDefaultIgnorableCodePoint
      }
    }
  }

  private static func escape(_ scalar: Unicode.Scalar) -> String {
    switch scalar {
    case "\n": "\\n"
    case "\r": "\\r"
    case "\t": "\\t"
    default: "\\u" + hex(scalar.value, digits: 4)
    }
  }

  private static func hex(_ value: UInt32, digits: Int) -> String {
    let text = String(value, radix: 16)
    return String(repeating: "0", count: max(0, digits - text.count)) + text
  }

  private static func width(_ scalar: Unicode.Scalar) -> Int {
    if scalar.isASCII { return 1 }
    _ = Terminal.isUTF8
    return max(0, Int(wcwidth(wchar_t(bitPattern: scalar.value))))
  }
}
