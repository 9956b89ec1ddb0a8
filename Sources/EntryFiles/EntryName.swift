/// The part of a file's name that stands for the key (Protocol/directory-format.md, §2).
///
/// It has only small ASCII letters, digits and marks, so no two keys can meet on a file system that folds case or normalises text. A key
/// whose escaped form is too long is named by the beginning of that form and its SHA-256; a key file beside the entry then holds the key.
package struct EntryName: Hashable, Sendable {
  /// The longest escaped key that is a name by itself.
  static let maximumPlainByteCount = 180
  /// What is kept of a longer one, for those who read the folder.
  static let excerptByteCount = 80
  private static let digestMark = "%~"
  private static let digestByteCount = 64

  /// ASCII.
  package let text: String

  package init(of key: [UInt8]) {
    var (escaped, excerptEnd) = ("", "".startIndex)
    for (index, byte) in key.enumerated() {
      escaped += Self.escaped(byte, isFirst: index == 0)
      if escaped.utf8.count <= Self.excerptByteCount { excerptEnd = escaped.endIndex }
    }
    guard escaped.utf8.count > Self.maximumPlainByteCount else {
      text = escaped
      return
    }
    text = escaped[..<excerptEnd] + Self.digestMark + SHA256.hexadecimal(of: key)
  }

  /// What a folder has as a name; nil when no key is written so. The key of a digest is believed until its file is read.
  package init?(reading text: String) {
    self.init(unchecked: text)
    if isDigest { return }
    guard let key, !key.isEmpty, EntryName(of: key).text.utf8.elementsEqual(text.utf8) else { return nil }
  }

  private init(unchecked text: String) { self.text = text }

  /// Whether the key is in a file of its own.
  package var isDigest: Bool {
    let bytes = Array(text.utf8)
    let mark = bytes.count - Self.digestByteCount - 2
    return mark >= 0 && bytes[mark..<mark + 2].elementsEqual(Self.digestMark.utf8)
      && bytes[(mark + 2)...].allSatisfy { Self.digit($0) != nil }
  }

  /// The file that holds the key of a digest.
  package var keyFileName: String { text + "@key" }

  /// The name whose key is in a file; nil when the file is none of that kind.
  package init?(ofKeyFile fileName: String) {
    guard let (text, rest) = EntryVersion.split(fileName), rest == "key" else { return nil }
    self.init(unchecked: text)
    guard isDigest else { return nil }
  }

  /// The key that the name spells; nil for a digest.
  package var key: [UInt8]? {
    guard !isDigest else { return nil }
    var (key, bytes) = ([UInt8](), Array(text.utf8)[...])
    while let byte = bytes.popFirst() {
      switch byte {
      case UInt8(ascii: "^"):
        guard let letter = bytes.popFirst(), Self.isSmallLetter(letter) else { return nil }
        key.append(letter - 32)
      case UInt8(ascii: "%"):
        guard let high = bytes.popFirst().flatMap(Self.digit), let low = bytes.popFirst().flatMap(Self.digit) else {
          return nil
        }
        key.append(high << 4 | low)
      default: key.append(byte)
      }
    }
    return key
  }

  private static func escaped(_ byte: UInt8, isFirst: Bool) -> String {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): break
    case UInt8(ascii: "_"), UInt8(ascii: ":"), UInt8(ascii: "@"), UInt8(ascii: ","), UInt8(ascii: "+"): break
    case UInt8(ascii: "="): break
    case UInt8(ascii: "."), UInt8(ascii: "-"):
      if isFirst { return "%" + hexadecimalText(UInt64(byte), digits: 2) }
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): return "^" + String(UnicodeScalar(byte + 32))
    default: return "%" + hexadecimalText(UInt64(byte), digits: 2)
    }
    return String(UnicodeScalar(byte))
  }

  private static func isSmallLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}
