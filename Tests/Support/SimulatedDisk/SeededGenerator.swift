import Glibc

/// A repeatable stream of random numbers: SplitMix64, of Steele, Lea and Flood, 2014.
///
/// A failing test is run again with the seed it printed: LARDER_SEED=n.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
    return word ^ word >> 31
  }

  /// The seed of `LARDER_SEED`, or a random one; printed either way.
  package static func announced(_ test: String = #function) -> SeededGenerator {
    SeededGenerator(seed: seeds(1, test).lowerBound)
  }

  /// As many seeds as `LARDER_SEEDS` says, or a few; from `LARDER_SEED` or a random one on, which is printed.
  package static func seeds(_ few: Int, _ test: String = #function) -> Range<UInt64> {
    let first = number("LARDER_SEED") ?? UInt64.random(in: 1...999_999_999)
    print("\(test): LARDER_SEED=\(first)")
    return first..<first + (number("LARDER_SEEDS") ?? UInt64(few))
  }

  /// Whether more was asked for than a few.
  package static var isThorough: Bool { number("LARDER_SEEDS") != nil }

  private static func number(_ variable: String) -> UInt64? {
    unsafe getenv(variable).flatMap { unsafe UInt64(String(cString: $0)) }
  }
}
