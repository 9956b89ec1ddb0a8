/// What a key may be: `Protocol/wire.md` §4.
public enum Key {
  @inlinable public static var largest: Int { 4_096 }

  /// Whether the bytes are a key: 1 to 4,096 of them, and UTF-8. O(n), eight ASCII bytes at a time.
  @inlinable @inline(__always)
  public static func isValid(_ key: RawSpan) -> Bool {
    let count = key.byteCount
    guard count > 0, count <= largest else { return false }
    var place = 0
    var high: UInt64 = 0
    while place &+ 8 <= count {
      unsafe high |= key.unsafeLoadUnaligned(fromUncheckedByteOffset: place, as: UInt64.self)
      place &+= 8
    }
    while place < count {
      unsafe high |= UInt64(key.unsafeLoad(fromUncheckedByteOffset: place, as: UInt8.self))
      place &+= 1
    }
    return high & 0x8080_8080_8080_8080 == 0 || isUTF8(key)
  }

  @usableFromInline
  static func isUTF8(_ bytes: RawSpan) -> Bool {
    unsafe (try? UTF8Span(validating: bytes._unsafeView(as: UInt8.self))) != nil
  }
}

/// The form of a list's value: `Protocol/wire.md` §4.
public enum ListValue {
  /// Whether the bytes are elements, each behind its 4-byte size, and nothing else. O(elements).
  public static func isValid(_ value: RawSpan) -> Bool {
    var place = 0
    while place < value.byteCount {
      guard let size = value.integer(at: place, as: UInt32.self) else { return false }
      place += 4 + Int(size)
    }
    return place == value.byteCount
  }

  public static func encode(_ elements: [[UInt8]]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(elements.reduce(0) { $0 + 4 + $1.count })
    for element in elements {
      let size = UInt32(element.count)
      bytes += [UInt8(truncatingIfNeeded: size), UInt8(truncatingIfNeeded: size >> 8)]
      bytes += [UInt8(truncatingIfNeeded: size >> 16), UInt8(truncatingIfNeeded: size >> 24)]
      bytes += element
    }
    return bytes
  }

  /// The elements, or nil when the bytes are not of a list's form.
  public static func decode(_ value: RawSpan) -> [[UInt8]]? {
    guard isValid(value) else { return nil }
    var elements: [[UInt8]] = []
    var place = 0
    while let size = value.integer(at: place, as: UInt32.self) {
      elements.append(value.extracting(place + 4..<place + 4 + Int(size)).toArray())
      place += 4 + Int(size)
    }
    return elements
  }
}
