import Glibc

/// The bytes of a key where they lie: in a request or in a record. Valid as long as those are.
///
/// Keys are opaque here; their order is that of their bytes, a shorter key before the longer ones it begins.
@safe
struct Key {
  static let lengths = 1...4_096

  let start: UnsafeRawPointer
  let count: Int

  @inline(__always)
  init(start: UnsafeRawPointer, count: Int) {
    unsafe self.start = start
    self.count = count
  }

  /// The span's bytes. The caller uses the key only while the span lives, which for a parameter is until it returns.
  @inline(__always)
  init(_ span: RawSpan) {
    let bytes = unsafe span.withUnsafeBytes { bytes in (bytes.baseAddress, bytes.count) }
    self = unsafe Key(start: bytes.0 ?? UnsafeRawPointer(bitPattern: 8).unsafelyUnwrapped, count: bytes.1)
  }

  @inline(__always)
  func word64(at offset: Int) -> UInt64 { unsafe start.loadUnaligned(fromByteOffset: offset, as: UInt64.self) }

  @inline(__always)
  func word32(at offset: Int) -> UInt32 { unsafe start.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }

  @inline(__always)
  func byte(at offset: Int) -> UInt8 { unsafe start.load(fromByteOffset: offset, as: UInt8.self) }
}

extension Key {
  /// Equality by words of 8 bytes; the last one may overlap the one before.
  @inline(__always)
  func equals(_ other: Key) -> Bool {
    guard count == other.count else { return false }
    guard count >= 8 else { return unsafe memcmp(start, other.start, count) == 0 }
    var offset = 0
    while offset <= count &- 8 {
      if word64(at: offset) != other.word64(at: offset) { return false }
      offset &+= 8
    }
    return word64(at: count &- 8) == other.word64(at: count &- 8)
  }

  /// Where in the order of keys a search stops.
  enum Bound {
    /// Before the first key that isn't less than the bytes.
    case lower
    /// Before the first key greater than the bytes.
    case upper
    /// Before the first key that is greater than the bytes and doesn't begin with them.
    case prefixEnd
  }

  /// Whether this key lies before the bound that `bytes` set.
  @inline(__always)
  func precedes(_ bytes: Key, _ bound: Bound) -> Bool {
    let common = min(count, bytes.count)
    var offset = 0
    if common >= 8 {
      let (own, other) = (word64(at: 0).bigEndian, bytes.word64(at: 0).bigEndian)
      if own != other { return own < other }
      offset = 8
    }
    let difference = unsafe memcmp(start + offset, bytes.start + offset, common &- offset)
    if difference != 0 { return difference < 0 }
    if count < bytes.count { return true }
    return count == bytes.count ? bound != .lower : bound == .prefixEnd
  }
}
