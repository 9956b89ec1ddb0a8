/// Bytes whose order is the total order of JSON values: null, false, true, numbers, strings, arrays, objects. A missing
/// value comes before all of them, and the mark of arrays in arrays, which indexes have, behind them.
///
/// Keys of different values are never the beginning of one another, so that keys can follow each other.
package enum OrderKey {
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
    static let nested: UInt8 = 9
  }

  // MARK: Values

  /// The key of a missing value.
  package static let missing: [UInt8] = [Tag.missing]

  /// The mark of a field with an array that is an element of an array.
  package static let nested: [UInt8] = [Tag.nested]

  static func appendNested(to key: inout some KeyOutput & ~Copyable) { key.append(Tag.nested) }

  @inline(__always)
  static func appendMissing(to key: inout some KeyOutput & ~Copyable) { key.append(Tag.missing) }

  /// Appends the key of a value. Complexity: O(*n*), and O(*n* log *n*) in the members of an object.
  @inline(__always)
  static func append(_ value: SourceValue, to key: inout some KeyOutput & ~Copyable) {
    switch value.type {
    case .null: key.append(Tag.null)
    case .boolean: key.append(value.rank == 2 ? Tag.true : Tag.false)
    case .number: append(value.number, to: &key)
    case .string:
      guard !value.hasEscapes else { return appendEscapedString(value, to: &key) }
      // Without escapes, JSON has no characters that a key escapes.
      key.append(Tag.string)
      unsafe key.append(value.bytes.span.extracting(1..<value.text.end &- 1))
      key.append(Tag.end)
    case .array: appendArray(value.text, to: &key)
    case .object: appendTree(value.tree, to: &key)
    }
  }

  /// Appends the key of an array, without recursion into the arrays in it.
  @inline(never)
  private static func appendArray(_ text: JSONText, to key: inout some KeyOutput & ~Copyable) {
    var (position, depth) = (0, 0)
    repeat {
      switch text.next(&position) {
      case UInt8(ascii: "["):
        key.append(Tag.array)
        depth += 1
        position += 1
      case UInt8(ascii: "]"):
        key.append(Tag.end)
        depth -= 1
        position += 1
      case UInt8(ascii: ","): position += 1
      default: append(SourceValue(passing: &position, of: text), to: &key)
      }
    } while depth > 0
  }

  @inline(never)
  private static func appendEscapedString(_ value: SourceValue, to key: inout some KeyOutput & ~Copyable) {
    value.withText { append($0, to: &key) }
  }

  /// Returns the key of a value.
  package static func key(of value: JSONValue) -> [UInt8] {
    var key: [UInt8] = []
    append(value, to: &key)
    return key
  }

  /// Appends the key of a value.
  package static func append(_ value: JSONValue, to key: inout [UInt8]) { appendTree(value, to: &key) }

  private static func appendTree(_ value: JSONValue, to key: inout some KeyOutput & ~Copyable) {
    switch value {
    case .null: key.append(Tag.null)
    case .bool(let value): key.append(value ? Tag.true : Tag.false)
    case .integer(let value): append(JSONNumber.integer(value), to: &key)
    case .double(let value): append(JSONNumber.double(value), to: &key)
    case .string(let text): append(text.utf8.span, to: &key)
    case .array(let elements):
      key.append(Tag.array)
      for element in elements { appendTree(element, to: &key) }
      key.append(Tag.end)
    case .object(let members):
      key.append(Tag.object)
      for (name, value) in members.sorted {
        key.append(Tag.member)
        append(name.utf8.span, to: &key)
        appendTree(value, to: &key)
      }
      key.append(Tag.end)
    }
  }

  // MARK: Numbers

  /// Appends the nearest double and, where doubles don't hold all integers, the difference of the number from it, which
  /// is at most 512.
  ///
  /// The double's bits, in an order that is the numbers', are in groups of seven, from the highest. A byte has a group
  /// above a bit that says whether another group follows; groups of zeros at the end are left out.
  @inline(__always)
  private static func append(_ number: JSONNumber, to key: inout some KeyOutput & ~Copyable) {
    var double = number.double
    // Negative zero equals zero.
    if double == 0 { double = 0 }
    let bits = double.bitPattern
    // Positive numbers follow negative ones, whose magnitudes are in reverse order.
    var rest = bits >> 63 == 0 ? bits | 1 << 63 : ~bits
    var bytes = InlineArray<13, UInt8>(repeating: Tag.number)
    var count = 1
    repeat {
      let group = UInt8(truncatingIfNeeded: rest >> 57)
      rest &<<= 7
      bytes[count] = group << 1 | (rest == 0 ? 0 : 1)
      count &+= 1
    } while rest != 0
    if double.magnitude >= 0x1p53 {
      var difference = 0
      if case .integer(let integer) = number { difference = Int(Int128(integer) - Int128(double)) }
      let biased = UInt16(difference + 1 << 15)
      bytes[count] = UInt8(biased >> 8)
      bytes[count &+ 1] = UInt8(truncatingIfNeeded: biased)
      count &+= 2
    }
    key.append(bytes.span.extracting(first: count))
  }

  // MARK: Strings

  /// Appends text and a zero. A zero in the text becomes 1, 1, and a one becomes 1, 2.
  private static func append(_ text: Span<UInt8>, to key: inout some KeyOutput & ~Copyable) {
    key.append(Tag.string)
    appendEscaped(text, to: &key)
    key.append(Tag.end)
  }

  private static func appendEscaped(_ text: Span<UInt8>, to key: inout some KeyOutput & ~Copyable) {
    var copied = 0
    for index in text.indices where text[index] <= 1 {
      key.append(text.extracting(copied..<index))
      key.append(1)
      key.append(text[index] &+ 1)
      copied = index + 1
    }
    key.append(text.extracting(copied...))
  }

  /// Returns the text that a key is of; nil if the key is of something else.
  static func text(of key: [UInt8]) -> [UInt8]? {
    guard key.count >= 2, key[0] == Tag.string, key.last == Tag.end else { return nil }
    var text: [UInt8] = []
    var position = 1
    while position < key.count - 1 {
      if key[position] == 1 {
        position += 1
        guard key[position] == 1 || key[position] == 2 else { return nil }
        text.append(key[position] - 1)
      } else {
        guard key[position] != Tag.end else { return nil }
        text.append(key[position])
      }
      position += 1
    }
    return position == key.count - 1 ? text : nil
  }

  /// Returns the size of the key that bytes begin with, in bytes; nil if they begin with none.
  /// - Parameter mask: 0xFF if the bytes are the complement of a key.
  static func count(ofFirstIn bytes: Span<UInt8>, mask: UInt8 = 0) -> Int? {
    var (position, depth) = (0, 0)
    repeat {
      guard position < bytes.count else { return nil }
      position += 1
      switch bytes[position - 1] ^ mask {
      // Before each member of an object is a byte that stands for a missing value elsewhere.
      case Tag.missing, Tag.null, Tag.false, Tag.true: break
      case Tag.number: position += numberCount(bytes.extracting(position...), mask)
      case Tag.string:
        while position < bytes.count, bytes[position] ^ mask != Tag.end { position += 1 }
        position += 1
      case Tag.array, Tag.object: depth += 1
      case Tag.end: depth -= 1
      default: return nil
      }
    } while depth > 0
    return depth == 0 && position <= bytes.count ? position : nil
  }

  /// Returns the size of the bytes behind a number's tag.
  private static func numberCount(_ bytes: Span<UInt8>, _ mask: UInt8) -> Int {
    var groupCount = 1
    while groupCount <= bytes.count, (bytes[groupCount - 1] ^ mask) & 1 == 1 { groupCount += 1 }
    // The sign and the exponent of the double are in the first two groups.
    var start = 0
    for group in 0..<2 {
      start = start << 7 | (group < min(groupCount, bytes.count) ? Int(bytes[group] ^ mask) >> 1 : 0)
    }
    let exponent = (start >> 13 == 1 ? start : ~start) >> 2 & 0x7FF
    return groupCount + (exponent >= 1_023 + 53 ? 2 : 0)
  }

  // MARK: Ranges

  /// Returns the bytes that the keys of all strings with a prefix begin with, and those of no other values.
  package static func prefix(ofStringsBeginningWith prefix: String) -> [UInt8] {
    var key = [Tag.string]
    appendEscaped(prefix.utf8.span, to: &key)
    return key
  }

  /// Returns the keys between which those of all values of a type are: from `lower` up to but not including `upper`.
  package static func bounds(of type: JSONType) -> (lower: [UInt8], upper: [UInt8]) {
    switch type {
    case .null: ([Tag.null], [Tag.false])
    case .boolean: ([Tag.false], [Tag.number])
    case .number: ([Tag.number], [Tag.string])
    case .string: ([Tag.string], [Tag.array])
    case .array: ([Tag.array], [Tag.object])
    case .object: ([Tag.object], [Tag.object + 1])
    }
  }

  /// Replaces the bytes from a position on by their complements, which have the reverse order.
  package static func complement(_ key: inout [UInt8], from start: Int = 0) {
    for index in start..<key.count { key[index] = ~key[index] }
  }
}

/// What keys are appended to.
protocol KeyOutput: ~Copyable {
  mutating func append(_ byte: UInt8)
  mutating func append(_ bytes: Span<UInt8>)
}

extension [UInt8]: KeyOutput {
  @inline(__always)
  mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
  }
}
