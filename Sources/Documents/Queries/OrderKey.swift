/// Bytes whose order is the total order of JSON values: null, false, true, numbers, strings, arrays, objects. A missing
/// value comes before all of them.
///
/// Keys of one value are never the beginning of another's, so that keys can follow each other.
enum OrderKey {
  private enum Tag {
    static let end: UInt8 = 0
    static let missing: UInt8 = 1
    /// Before each member of an object.
    static let member: UInt8 = 1
    static let null: UInt8 = 2
    static let `false`: UInt8 = 3
    static let `true`: UInt8 = 4
    static let number: UInt8 = 5
    static let string: UInt8 = 6
    static let array: UInt8 = 7
    static let object: UInt8 = 8
  }

  static func appendMissing(to key: inout [UInt8]) { key.append(Tag.missing) }

  /// Appends the key of a value. Complexity: O(*n*), and O(*n* log *n*) in the members of an object.
  static func append(_ value: SourceValue, to key: inout [UInt8]) {
    switch value.type {
    case .null: key.append(Tag.null)
    case .boolean: key.append(value.rank == 2 ? Tag.true : Tag.false)
    case .number: append(value.number, to: &key)
    case .string: value.withText { append($0, to: &key) }
    case .array, .object: append(value.tree, to: &key)
    }
  }

  private static func append(_ value: JSONValue, to key: inout [UInt8]) {
    switch value {
    case .null: key.append(Tag.null)
    case .bool(let value): key.append(value ? Tag.true : Tag.false)
    case .integer(let value): append(JSONNumber.integer(value), to: &key)
    case .double(let value): append(JSONNumber.double(value), to: &key)
    case .string(let text): append(Array(text.utf8).span, to: &key)
    case .array(let elements):
      key.append(Tag.array)
      for element in elements { append(element, to: &key) }
      key.append(Tag.end)
    case .object(let members):
      key.append(Tag.object)
      for (name, value) in members.sorted {
        key.append(Tag.member)
        append(Array(name.utf8).span, to: &key)
        append(value, to: &key)
      }
      key.append(Tag.end)
    }
  }

  /// Appends the nearest double and, for an integer, its difference from that, which is at most 512.
  private static func append(_ number: JSONNumber, to key: inout [UInt8]) {
    var double = number.double
    var difference = 0
    // Doubles hold smaller integers exactly.
    if case .integer(let integer) = number, integer.magnitude > 1 << 53 {
      difference = Int(Int128(integer) - Int128(double))
    }
    // Negative zero equals zero.
    if double == 0 { double = 0 }
    let bits = double.bitPattern
    // Positive numbers follow negative ones, whose magnitudes are in reverse order.
    let ordered = bits >> 63 == 0 ? bits | 1 << 63 : ~bits
    var bytes = InlineArray<11, UInt8>(repeating: Tag.number)
    for index in 0..<8 { bytes[index &+ 1] = UInt8(truncatingIfNeeded: ordered >> UInt64(56 &- 8 &* index)) }
    let biased = UInt16(difference + 1 << 15)
    bytes[9] = UInt8(biased >> 8)
    bytes[10] = UInt8(truncatingIfNeeded: biased)
    append(bytes: bytes.span, to: &key)
  }

  /// Appends text with each zero followed by a byte that text doesn't have, and two zeros at its end.
  private static func append(_ text: Span<UInt8>, to key: inout [UInt8]) {
    key.append(Tag.string)
    var copied = 0
    for index in text.indices where text[index] == 0 {
      append(bytes: text.extracting(copied...index), to: &key)
      key.append(0xFF)
      copied = index + 1
    }
    append(bytes: text.extracting(copied...), to: &key)
    key.append(0)
    key.append(0)
  }

  /// Returns the text that a key is of; nil if the key is of something else.
  static func text(of key: [UInt8]) -> [UInt8]? {
    guard key.count >= 3, key[0] == Tag.string, key[key.count - 2] == 0, key[key.count - 1] == 0 else { return nil }
    var text: [UInt8] = []
    var position = 1
    while position < key.count - 2 {
      let byte = key[position]
      text.append(byte)
      position += 1
      guard byte == 0 else { continue }
      guard key[position] == 0xFF else { return nil }
      position += 1
    }
    return position == key.count - 2 ? text : nil
  }

  private static func append(bytes: Span<UInt8>, to key: inout [UInt8]) {
    unsafe bytes.withUnsafeBufferPointer { unsafe key.append(contentsOf: $0) }
  }
}
