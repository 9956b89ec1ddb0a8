/// The part of a file's name that represents the key (Protocol/directory-format.md, §2).
///
/// It contains only lowercase ASCII letters, digits and punctuation, so that no two keys collide on a file system that
/// folds case or normalizes text. If the escaped form of a key is too long, the name is the beginning of that form and
/// the key's SHA-256, and a key file beside the entry contains the key.
package struct EntryName: Hashable, Sendable {
  /// The maximum size of an escaped key that is its own name.
  private static let maxPlainByteCount = 180
  /// The size of the excerpt of a longer key, for people who read the folder.
  private static let excerptByteCount = 80
  private static let digestMark = "%~"
  private static let digestByteCount = 64

  /// The name, in ASCII.
  package let text: String

  package init(of key: [UInt8]) {
    var (escaped, excerptEnd) = ("", "".startIndex)
    for (index, byte) in key.enumerated() {
      escaped += Self.escaped(byte, isFirst: index == 0)
      if escaped.utf8.count <= Self.excerptByteCount { excerptEnd = escaped.endIndex }
    }
    guard escaped.utf8.count > Self.maxPlainByteCount else {
      text = escaped
      return
    }
    text = escaped[..<excerptEnd] + Self.digestMark + SHA256.hexadecimal(of: key)
  }

  /// Parses a name from a folder. Returns nil if it isn't the name of any key. A digest isn't checked against its key
  /// until the key file is read.
  package init?(reading text: String) {
    self.init(unchecked: text)
    if isDigest { return }
    guard let key, !key.isEmpty, EntryName(of: key).text.utf8.elementsEqual(text.utf8) else { return nil }
  }

  private init(unchecked text: String) { self.text = text }

  /// Whether the name is a digest, whose key is in a key file.
  package var isDigest: Bool {
    let bytes = Array(text.utf8)
    let mark = bytes.count - Self.digestByteCount - 2
    return mark >= 0 && bytes[mark..<mark + 2].elementsEqual(Self.digestMark.utf8)
      && bytes[(mark + 2)...].allSatisfy { Self.digit($0) != nil }
  }

  /// The name of the file that contains the key of a digest.
  package var keyFileName: String { text + "@key" }

  /// Parses the name of a key file. Returns nil if the file isn't a key file.
  package init?(ofKeyFile fileName: String) {
    guard let (text, rest) = EntryVersion.split(fileName), rest == "key" else { return nil }
    self.init(unchecked: text)
    guard isDigest else { return nil }
  }

  /// The key that the name encodes; nil for a digest.
  package var key: [UInt8]? {
    guard !isDigest else { return nil }
    var (key, bytes) = ([UInt8](), Array(text.utf8)[...])
    while let byte = bytes.popFirst() {
      switch byte {
      case UInt8(ascii: "^"):
        guard let letter = bytes.popFirst(), Self.isLowercaseLetter(letter) else { return nil }
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

  private static func isLowercaseLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}
