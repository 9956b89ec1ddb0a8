import Glibc

/// A distribution of keys over requests.
enum Distribution: String, CaseIterable, Codable, Sendable {
  /// All keys are equally likely.
  case uniform
  /// A few keys, scattered over the key space, get most requests.
  case zipf
  /// The latest inserted keys get most requests (YCSB D).
  case latest
}

/// A generator of key numbers.
struct KeyChooser {
  private let distribution: Distribution
  private let keys: UInt64
  private let zipf: Zipf?
  var random: Random
  /// This thread inserts keys after the loaded ones, at a stride of `threads`.
  private let thread: UInt64
  private let threads: UInt64
  private var inserted: UInt64 = 0
  /// The number of latest inserts whose replies may be outstanding.
  private let unansweredInserts: UInt64

  init(
    _ distribution: Distribution, keys: Int, seed: UInt64, thread: Int = 0, threads: Int = 1, unansweredInserts: Int = 0
  ) {
    self.distribution = distribution
    self.keys = UInt64(keys)
    zipf = distribution == .uniform ? nil : Zipf(count: UInt64(keys))
    random = Random(seed: seed &+ UInt64(thread) &* 0xD1B5_4A32_D192_ED03)
    self.thread = UInt64(thread)
    self.threads = UInt64(threads)
    self.unansweredInserts = UInt64(unansweredInserts)
  }

  /// Returns an existing key.
  @inline(__always)
  mutating func next() -> UInt64 {
    guard let zipf else { return random.below(keys) }
    let rank = zipf.draw(&random)
    if distribution == .zipf { return Self.scatter(rank) % keys }
    let answered = inserted > unansweredInserts ? inserted &- unansweredInserts : 0
    return rank < answered ? ownKey(answered &- 1 &- rank) : keys &- 1 &- min(keys &- 1, rank &- answered)
  }

  /// Returns a key that has not been written yet.
  @inline(__always)
  mutating func insert() -> UInt64 {
    defer { inserted &+= 1 }
    return ownKey(inserted)
  }

  @inline(__always)
  private func ownKey(_ number: UInt64) -> UInt64 { keys &+ number &* threads &+ thread }

  /// Hashes a rank with FNV-1a, which is how YCSB scatters its hot keys.
  @inline(__always)
  private static func scatter(_ rank: UInt64) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for shift in stride(from: UInt64(0), to: 64, by: 8) {
      hash = (hash ^ (rank >> shift & 0xFF)) &* 0x0000_0100_0000_01B3
    }
    return hash
  }
}

/// A generator of ranks from 0 to `count` − 1, which draws rank r with a probability proportional to 1 / (r + 1)^theta.
///
/// The algorithm of Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (SIGMOD 1994), with YCSB's
/// theta.
struct Zipf {
  static let theta = 0.99

  private let count: UInt64
  private let zeta: Double
  private let eta: Double
  private let alpha = 1 / (1 - Zipf.theta)

  init(count: UInt64) {
    precondition(count > 0)
    self.count = count
    zeta = Self.zeta(count)
    eta = (1 - pow(2 / Double(count), 1 - Self.theta)) / (1 - Self.zeta(2) / zeta)
  }

  /// Returns the sum of 1 / i^theta for i from 1 to `count`; beyond a million terms, an integral approximates it.
  static func zeta(_ count: UInt64) -> Double {
    let exact = min(count, 1_000_000)
    var sum = (1...exact).reduce(0.0) { $0 + pow(Double($1), -theta) }
    if count > exact {
      let (from, to) = (Double(exact) + 0.5, Double(count) + 0.5)
      sum += (pow(to, 1 - theta) - pow(from, 1 - theta)) / (1 - theta)
    }
    return sum
  }

  @inline(__always)
  func draw(_ random: inout Random) -> UInt64 {
    let unit = random.unit()
    let scaled = unit * zeta
    if scaled < 1 || count == 1 { return 0 }
    if scaled < 1 + pow(0.5, Self.theta) { return 1 }
    return min(count - 1, UInt64(Double(count) * pow(eta * unit - eta + 1, alpha)))
  }
}

/// SplitMix64, a small and fast generator that yields the same numbers for the same seed on every machine.
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

  /// Returns a number from 0 to `bound` − 1. The bias is below bound / 2⁶⁴.
  @inline(__always)
  mutating func below(_ bound: UInt64) -> UInt64 {
    next().multipliedFullWidth(by: bound).high
  }

  /// Returns a number from 0 up to, but not including, 1.
  @inline(__always)
  mutating func unit() -> Double {
    Double(next() >> 11) * 0x1p-53
  }
}
