import Glibc

/// A repeatable stream of random numbers. A failing test is run again with the seed it printed: LARDER_SEED=n.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  /// SplitMix64, of Steele, Lea and Flood, 2014.
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
    return word ^ word >> 31
  }

  /// The seed of `LARDER_SEED`, or a random one; printed either way.
  static func announced(_ test: String = #function) -> SeededGenerator {
    let given = unsafe getenv("LARDER_SEED").flatMap { unsafe UInt64(String(cString: $0)) }
    let seed = given ?? UInt64.random(in: 1...999_999)
    print("\(test): LARDER_SEED=\(seed)")
    return SeededGenerator(seed: seed)
  }
}
