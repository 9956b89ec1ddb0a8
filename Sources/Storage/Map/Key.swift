import Glibc

/// The bytes of a key in place: in a request or in a record. Valid for as long as those are.
///
/// Keys are opaque here. They are ordered by their bytes, and a prefix of a key comes before the key.
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

  /// Creates a key of the span's bytes. The caller uses the key only during the span's lifetime: for a parameter, until
  /// it returns.
  @inline(__always)
  init(_ span: RawSpan) {
    let bytes = unsafe span.withUnsafeBytes { bytes in (bytes.baseAddress, bytes.count) }
    self = unsafe Key(start: bytes.0 ?? UnsafeRawPointer(bitPattern: 8).unsafelyUnwrapped, count: bytes.1)
  }

  var bytes: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(start: start, count: count) }

  @inline(__always)
  func word64(at offset: Int) -> UInt64 { unsafe start.loadUnaligned(fromByteOffset: offset, as: UInt64.self) }

  @inline(__always)
  func word32(at offset: Int) -> UInt32 { unsafe start.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }

  @inline(__always)
  func byte(at offset: Int) -> UInt8 { unsafe start.load(fromByteOffset: offset, as: UInt8.self) }
}

extension Key {
  /// Returns whether the keys are equal. Compares words of 8 bytes, of which the last may overlap the one before.
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

  /// The position in the order of keys where a search stops.
  enum Bound {
    /// Before the first key that isn't less than the bytes.
    case lower
    /// Before the first key greater than the bytes.
    case upper
    /// Before the first key that is greater than the bytes and doesn't begin with them.
    case prefixEnd
  }

  /// Returns whether this key comes before the bound that `bytes` set.
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

extension Key {
  /// Returns a negative number if this key comes before the other one, a positive number if it comes after it, and 0 if
  /// they are equal.
  @inline(__always)
  func order(_ other: Key) -> Int {
    let common = min(count, other.count)
    var offset = 0
    if common >= 8 {
      let (own, others) = (word64(at: 0).bigEndian, other.word64(at: 0).bigEndian)
      if own != others { return own < others ? -1 : 1 }
      offset = 8
    }
    let difference = unsafe memcmp(start + offset, other.start + offset, common &- offset)
    return difference != 0 ? Int(difference) : count &- other.count
  }
}

/// The hash function of a store: 32 bits of a key.
///
/// Each step multiplies two words of 64 bits in full and folds the product in half, so that every bit of the result
/// depends on every bit of the input. The words are masked with random secrets of the store: a client that chooses the
/// keys can't choose which of them collide.
struct KeyHash {
  private let secrets: (UInt64, UInt64, UInt64, UInt64)

  init() {
    var random = SystemRandomNumberGenerator()
    // A mask with few bits set would hide little of a key.
    func secret() -> UInt64 {
      while true {
        let candidate = random.next()
        if (24...40).contains(candidate.nonzeroBitCount) { return candidate | 1 }
      }
    }
    secrets = (secret(), secret(), secret(), secret())
  }

  /// A number of these secrets that tells nothing about them.
  var tag: UInt32 {
    UInt32(truncatingIfNeeded: Self.fold(Self.fold(secrets.0, secrets.1) ^ secrets.2, secrets.3 ^ secrets.1) >> 32)
  }

  @inline(__always)
  private static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
  }

  @inline(__always)
  func callAsFunction(_ key: Key) -> UInt32 {
    let count = key.count
    var state = secrets.0 ^ UInt64(truncatingIfNeeded: count)
    let first: UInt64
    let last: UInt64
    if count > 16 {
      var offset = 0
      while offset < count &- 16 {
        state = Self.fold(key.word64(at: offset) ^ secrets.1, key.word64(at: offset &+ 8) ^ state)
        offset &+= 16
      }
      (first, last) = (key.word64(at: count &- 16), key.word64(at: count &- 8))
    } else if count >= 8 {
      (first, last) = (key.word64(at: 0), key.word64(at: count &- 8))
    } else if count >= 4 {
      (first, last) = (UInt64(key.word32(at: 0)), UInt64(key.word32(at: count &- 4)))
    } else if count > 0 {
      let bytes = (UInt64(key.byte(at: 0)), UInt64(key.byte(at: count >> 1)), UInt64(key.byte(at: count &- 1)))
      (first, last) = (bytes.0 << 16 | bytes.1 << 8 | bytes.2, 0)
    } else {
      (first, last) = (0, 0)
    }
    let mixed = Self.fold(first ^ secrets.1, last ^ state)
    return UInt32(truncatingIfNeeded: Self.fold(mixed ^ secrets.2, secrets.3 ^ UInt64(truncatingIfNeeded: count)) >> 32)
  }
}
