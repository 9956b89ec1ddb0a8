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

  private static func text(_ bytes: some Collection<UInt8>, keeping kept: Set<Unicode.Scalar>) -> String {
    var text = String.UnicodeScalarView()
    var decoder = Unicode.UTF8.ForwardParser()
    var input = bytes.makeIterator()
    var index = bytes.startIndex
    while true {
      switch decoder.parseScalar(from: &input) {
      case .emptyInput: return String(text)
      case .valid(let encoded):
        let scalar = Unicode.UTF8.decode(encoded)
        index = bytes.index(index, offsetBy: encoded.count)
        if kept.contains(scalar) || isHarmless(scalar) {
          text.append(scalar)
        } else {
          text.append(contentsOf: escape(scalar))
        }
      case .error(let length):
        for _ in 0..<length {
          text.append(contentsOf: ("\\x" + hex(UInt32(bytes[index]), digits: 2)).unicodeScalars)
          index = bytes.index(after: index)
        }
      }
    }
  }

  /// Returns whether a terminal only shows the character. Characters that change the direction of the following text
  /// are not harmless.
  private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x20...0x7E: true
    case 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: false
    default: scalar.properties.generalCategory != .control
    }
  }

  private static func escape(_ scalar: Unicode.Scalar) -> String.UnicodeScalarView {
    switch scalar {
    case "\n": "\\n".unicodeScalars
    case "\r": "\\r".unicodeScalars
    case "\t": "\\t".unicodeScalars
    default: ("\\u" + hex(scalar.value, digits: 4)).unicodeScalars
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
