/// Which keys requests are about.
enum Distribution: String, CaseIterable, Codable, Sendable {
  /// All alike.
  case uniform
  /// A few keys get most requests; they lie all over the key space.
  case zipf
  /// The keys that were inserted last get most requests (YCSB D).
  case latest
}

/// Draws numbers of keys.
struct KeyChooser {
  private let distribution: Distribution
  private let keys: UInt64
  private let zipf: Zipf?
  var random: Random
  /// Keys of this thread's own lie behind the loaded ones, a stride apart.
  private let thread: UInt64
  private let threads: UInt64
  private var inserted: UInt64 = 0
  /// So many of the newest inserts may not have been answered yet.
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

  /// A key that is there.
  @inline(__always)
  mutating func next() -> UInt64 {
    guard let zipf else { return random.below(keys) }
    let rank = zipf.draw(&random)
    if distribution == .zipf { return Self.scatter(rank) % keys }
    let answered = inserted > unansweredInserts ? inserted &- unansweredInserts : 0
    return rank < answered ? ownKey(answered &- 1 &- rank) : keys &- 1 &- min(keys &- 1, rank &- answered)
  }

  /// A key that no one has written yet.
  @inline(__always)
  mutating func insert() -> UInt64 {
    defer { inserted &+= 1 }
    return ownKey(inserted)
  }

  @inline(__always)
  private func ownKey(_ number: UInt64) -> UInt64 { keys &+ number &* threads &+ thread }

  /// FNV-1a over the rank's bytes, as YCSB scatters its hot keys.
  @inline(__always)
  private static func scatter(_ rank: UInt64) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for shift in stride(from: UInt64(0), to: 64, by: 8) {
      hash = (hash ^ (rank >> shift & 0xFF)) &* 0x0000_0100_0000_01B3
    }
    return hash
  }
}
