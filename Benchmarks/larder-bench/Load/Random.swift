/// SplitMix64: small, fast, and the same numbers for the same seed on every machine.
struct Random: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  @inline(__always)
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }

  /// A number from 0 to `bound` − 1. The bias is below bound / 2⁶⁴.
  @inline(__always)
  mutating func below(_ bound: UInt64) -> UInt64 {
    next().multipliedFullWidth(by: bound).high
  }

  /// A number from 0 up to, but not including, 1.
  @inline(__always)
  mutating func unit() -> Double {
    Double(next() >> 11) * 0x1p-53
  }
}
