import Glibc

/// Ranks from 0 to `count` − 1, of which rank r is drawn in proportion to 1 / (r + 1)^theta.
///
/// Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (SIGMOD 1994), as YCSB does it, with its theta.
struct Zipf {
  static let theta = 0.99

  let count: UInt64
  private let zeta: Double
  private let eta: Double
  private let alpha = 1 / (1 - Zipf.theta)

  init(count: UInt64) {
    precondition(count > 0)
    self.count = count
    zeta = Self.zeta(count)
    eta = (1 - pow(2 / Double(count), 1 - Self.theta)) / (1 - Self.zeta(2) / zeta)
  }

  /// The sum of 1 / i^theta for i from 1 to `count`; from a million on the sum's integral, which is as good.
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
