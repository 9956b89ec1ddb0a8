import CLinux
import Glibc

/// Text as a terminal may have it: nothing in it steers the terminal or breaks a line, and its width is known.
enum EscapedText {
  /// Bytes in one line, with what is no character, or none that shows, as an escape: `\n`, `\u001b`, `\xff`.
  static func line(_ bytes: some Collection<UInt8>) -> String {
    text(bytes, keeping: [])
  }

  static func line(_ text: String) -> String {
    line(text.utf8)
  }

  /// As `line`, but line feeds and tabs stay.
  static func lines(_ bytes: some Collection<UInt8>) -> String {
    text(bytes, keeping: ["\n", "\t"])
  }

  /// How many columns of a terminal a text takes.
  static func width(_ text: String) -> Int {
    text.unicodeScalars.reduce(0) { $0 + width($1) }
  }

  /// The text, or its beginning and an ellipsis where it is wider than so many columns.
  static func cut(_ text: String, to columns: Int) -> String {
    guard text.utf8.count > columns, width(text) > columns else { return text }
    var cut = String.UnicodeScalarView()
    var left = columns - 1
    for scalar in text.unicodeScalars {
      left -= width(scalar)
      if left < 0 { break }
      cut.append(scalar)
    }
    return String(cut) + (columns > 0 ? "…" : "")
  }

  private static func text(_ bytes: some Collection<UInt8>, keeping kept: Set<Unicode.Scalar>) -> String {
    var text = String.UnicodeScalarView()
    var decoder = Unicode.UTF8.ForwardParser()
    var input = bytes.makeIterator()
    var place = bytes.startIndex
    while true {
      switch decoder.parseScalar(from: &input) {
      case .emptyInput: return String(text)
      case .valid(let encoded):
        let scalar = Unicode.UTF8.decode(encoded)
        place = bytes.index(place, offsetBy: encoded.count)
        if kept.contains(scalar) || isHarmless(scalar) {
          text.append(scalar)
        } else {
          text.append(contentsOf: escape(scalar))
        }
      case .error(let length):
        for _ in 0..<length {
          text.append(contentsOf: ("\\x" + hex(UInt32(bytes[place]), digits: 2)).unicodeScalars)
          place = bytes.index(after: place)
        }
      }
    }
  }

  /// Whether a terminal shows the character and does nothing else. Those that turn the direction of what follows are not harmless.
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
