import Histogram

/// The percentiles of a histogram, in microseconds.
struct LatencyReport: Codable, Equatable, Sendable {
  private var mean: Double
  var p50: Double
  var p90: Double
  var p99: Double
  var p999: Double
  var p9999: Double
  var max: Double
  /// Points of the percentile curve: a percentage of requests, and their maximum latency.
  private var curve: [Point]

  private struct Point: Codable, Equatable, Sendable {
    let percentile: Double
    let microseconds: Double
  }

  init(_ histogram: Histogram<UInt64>) {
    func microseconds(_ percentile: Double) -> Double {
      rounded(Double(Swift.min(histogram.valueAtPercentile(percentile), histogram.max)) / 1_000)
    }
    mean = rounded(histogram.totalCount == 0 ? 0 : histogram.mean / 1_000)
    p50 = microseconds(50)
    p90 = microseconds(90)
    p99 = microseconds(99)
    p999 = microseconds(99.9)
    p9999 = microseconds(99.99)
    max = rounded(Double(histogram.totalCount == 0 ? 0 : histogram.max) / 1_000)
    curve = []
    // Beyond this percentile, a point would represent less than one request.
    let last = 100 - 100 / Double(Swift.max(1, histogram.totalCount))
    for exponent in 0..<40 {
      let percentile = 100 - 100 / Self.power(exponent)
      guard percentile <= last else { break }
      curve.append(Point(percentile: percentile, microseconds: microseconds(percentile)))
    }
  }

  /// The percentile curve on an axis on which each nine takes the same space.
  var plotPoints: [[Double]] { curve.map { [rounded(100 / (100 - $0.percentile)), $0.microseconds] } }

  /// The percentiles in the columns of a table.
  static let columns = ["p50", "p90", "p99", "p99.9", "p99.99", "max"]
  var cells: [String] { percentiles.map(grouped) }

  var text: String {
    zip(Self.columns, percentiles).map { "\($0) \(decimal($1, 1))" }.joined(separator: "   ")
  }

  private var percentiles: [Double] { [p50, p90, p99, p999, p9999, max] }

  /// Returns 10 to the power of exponent / 6, for six points per nine.
  private static func power(_ exponent: Int) -> Double {
    (0..<exponent).reduce(1.0) { product, _ in product * 1.467799267622069 }
  }
}
