/// The file names of keys: what a shell shows plainly stays, other bytes become `%` and two hexadecimal digits. So a name neither leaves
/// its folder, nor is hidden, nor clashes with another key's. Names that would be too long are made of the key's digest instead,
/// and the file has to tell its key.
enum EntryFileName {
  /// The longest escaped key that is a name; file systems take 255 bytes, of which endings need some.
  static let longestBytes = 240
  /// What a name begins with that is made of a digest. No escaped key has this character.
  static let digestMark: Character = "="

  /// The name of a key, without an ending.
  static func name(of key: String) -> String {
    let escaped = escaped(key)
    return escaped.utf8.count <= longestBytes ? escaped : "\(digestMark)\(SHA256.hexadecimal(of: key.utf8))"
  }

  /// The key of a name without its ending; nil when it isn't the name of one.
  static func key(of name: String) -> String? {
    var bytes: [UInt8] = []
    var rest = name.utf8[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%") {
        guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
          return nil
        }
        bytes.append(value)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    // Whatever is written in another way than ours isn't our file.
    guard let key = String(validating: bytes, as: UTF8.self), escaped(key) == name else { return nil }
    return key
  }

  static func escaped(_ key: String) -> String {
    var name: [UInt8] = []
    for byte in key.utf8 {
      if isPlain(byte) || byte == UInt8(ascii: ".") && !name.isEmpty {
        name.append(byte)
      } else {
        let hexadecimal = String(byte, radix: 16, uppercase: true)
        name += (hexadecimal.count == 1 ? "%0" : "%").utf8
        name += hexadecimal.utf8
      }
    }
    return String(decoding: name, as: UTF8.self)
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"): true
    default: false
    }
  }
}
