/// A store's own hash of keys, in 32 bits.
///
/// Each step multiplies two words of 64 bits in full and folds the product in half, so that every bit of the result
/// depends on every bit that went in. The words are masked with secrets drawn for the store: whoever chooses the keys
/// can't choose which of them collide.
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
