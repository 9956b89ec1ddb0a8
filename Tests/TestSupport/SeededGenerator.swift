import Glibc

/// A repeatable stream of random numbers: SplitMix64, of Steele, Lea and Flood, 2014.
///
/// To repeat a failing test, run it with the seed that it printed: LARDER_SEED=n.
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

  /// Returns a generator with the seed in `LARDER_SEED` or a random one, and prints the seed.
  package static func announced(_ test: String = #function) -> SeededGenerator {
    SeededGenerator(seed: seeds(1, test).lowerBound)
  }

  /// Returns as many seeds as `LARDER_SEEDS` says, by default `few`, starting with `LARDER_SEED` or a random seed,
  /// which is printed.
  package static func seeds(_ few: Int, _ test: String = #function) -> Range<UInt64> {
    let first = number("LARDER_SEED") ?? UInt64.random(in: 1...999_999_999)
    print("\(test): LARDER_SEED=\(first)")
    return first..<first + (number("LARDER_SEEDS") ?? UInt64(few))
  }

  /// A Boolean value that indicates whether `LARDER_SEEDS` asks for a thorough run.
  package static var isThorough: Bool { number("LARDER_SEEDS") != nil }

  private static func number(_ variable: String) -> UInt64? {
    unsafe getenv(variable).flatMap { unsafe UInt64(String(cString: $0)) }
  }
}
