/// The form of a key: `Protocol/wire.md` §4.
public enum Key {
  /// The maximum size of a key, in bytes.
  @inlinable public static var maxSize: Int { 4_096 }

  /// Returns whether the size, in bytes, is valid for a key.
  @inlinable @inline(__always)
  public static func isValidSize(_ byteCount: Int) -> Bool { byteCount > 0 && byteCount <= maxSize }

  /// Returns whether the bytes are a key: 1 to 4,096 bytes of UTF-8. O(n), eight ASCII bytes at a time.
  @inlinable @inline(__always)
  public static func isValid(_ key: RawSpan) -> Bool {
    let count = key.byteCount
    guard count > 0, count <= maxSize else { return false }
    var offset = 0
    // The high bits of all bytes: none is set in ASCII.
    var high: UInt64 = 0
    while offset &+ 8 <= count {
      unsafe high |= key.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self)
      offset &+= 8
    }
    while offset < count {
      unsafe high |= UInt64(key.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self))
      offset &+= 1
    }
    return high & 0x8080_8080_8080_8080 == 0 || isUTF8(key)
  }

  @usableFromInline
  static func isUTF8(_ bytes: RawSpan) -> Bool {
    unsafe (try? UTF8Span(validating: bytes._unsafeView(as: UInt8.self))) != nil
  }
}

/// Iterates over the key list of a request: `Protocol/wire.md` §4. Keys are ranges of the span that the list was made
/// from.
public struct KeyList: Sendable {
  /// The number of keys that the list announces.
  public let count: Int
  /// The number of keys that were not read.
  public var remaining: Int
  /// The offset of the next key.
  @usableFromInline var position: Int

  /// The offset of the next key.
  @inlinable public var offset: Int { position }

  @inlinable
  public init?(_ body: RawSpan) {
    guard let count = body.integer(at: 0, as: UInt32.self) else { return nil }
    self.count = Int(count)
    remaining = Int(count)
    position = 4
  }

  /// Returns whether all keys were read and nothing follows them.
  @inlinable public func isComplete(_ body: RawSpan) -> Bool { remaining == 0 && position == body.byteCount }

  /// Returns the range of the next key, or nil at the end of the list or if it is malformed; check `isComplete`.
  @inlinable
  public mutating func next(_ body: RawSpan) -> Range<Int>? {
    guard remaining > 0, let size = body.integer(at: position, as: UInt16.self) else { return nil }
    let start = position &+ 2
    let end = start &+ Int(size)
    guard end <= body.byteCount else { return nil }
    position = end
    remaining &-= 1
    return unsafe Range(uncheckedBounds: (start, end))
  }
}

extension ByteBuffer {
  /// Appends one key of a key list.
  @inlinable
  public mutating func appendListedKey(_ key: RawSpan) {
    precondition(key.byteCount <= Key.maxSize)
    append(UInt16(truncatingIfNeeded: key.byteCount))
    append(key)
  }
}

/// The form of a list value: `Protocol/wire.md` §4.
public enum ListValue {
  /// Returns whether the bytes are elements, each after its 4-byte size, and nothing else. O(elements).
  public static func isValid(_ value: RawSpan) -> Bool {
    var offset = 0
    while offset < value.byteCount {
      guard let size = value.integer(at: offset, as: UInt32.self) else { return false }
      offset += 4 + Int(size)
    }
    return offset == value.byteCount
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

  /// Returns the elements, or nil if the bytes are not a list value.
  public static func decode(_ value: RawSpan) -> [[UInt8]]? {
    guard isValid(value) else { return nil }
    var elements: [[UInt8]] = []
    var offset = 0
    while let size = value.integer(at: offset, as: UInt32.self) {
      elements.append(value.extracting(offset + 4..<offset + 4 + Int(size)).toArray())
      offset += 4 + Int(size)
    }
    return elements
  }
}
