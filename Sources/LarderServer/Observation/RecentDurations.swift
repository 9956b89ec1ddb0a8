import Basics
import Platform

/// How long requests took lately: what the workers' histograms were in the last seconds, one after the other. Used under a lock.
struct RecentDurations {
  /// How far back it looks.
  static let seconds = 10
  private var history: [[UInt64]] = []

  /// Notes what the histograms are now. Once a second.
  mutating func note(_ workers: [WorkerMetrics]) {
    if history.count == Self.seconds { history.removeFirst() }
    history.append(Self.counts(workers))
  }

  private static func counts(_ workers: [WorkerMetrics]) -> [UInt64] {
    (0..<DurationHistogram.classCount).map { index in workers.reduce(0) { $0 + $1.durationCount(index) } }
  }

  /// What so many thousandths of the requests took less than, in nanoseconds, to the next power of two; 0 when there were none.
  func quantiles(_ thousandths: [UInt64], _ workers: [WorkerMetrics]) -> [UInt64] {
    let now = Self.counts(workers)
    let then = history.first ?? Array(repeating: 0, count: now.count)
    let counts = zip(now, then).map { $0 - $1 }
    let sum = counts.reduce(0, +)
    return thousandths.map { part in
      guard sum > 0 else { return 0 }
      var left = (sum * part + 999) / 1_000
      for (index, count) in counts.enumerated() {
        if count >= left { return DurationHistogram.bound(index) ?? .max }
        left -= count
      }
      return .max
    }
  }
}
