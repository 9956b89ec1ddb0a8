import Dispatch
import Platform

/// Reports what clients can cause as often as they like, but not more of it than a log can bear: so much in an interval of
/// one source, so that it can't hide another's, and so much in all. What is not reported is counted.
///
/// Used by any thread; what changes is behind a lock.
final class ThrottledLog<Source: Hashable & Sendable, Item: Sendable>: Sendable {
  static var intervalMilliseconds: UInt64 { 60_000 }
  /// The number of sources whose suppressed items are counted one by one.
  static var maxSources: Int { 1_024 }

  private let interval = Lock(Interval())
  private let maxPerSource: Int
  private let maxPerInterval: Int
  private let report: @Sendable (Item) -> Void
  private let reportCounts: @Sendable (Int, [Source: Int]) -> Void

  private struct Interval {
    var end: UInt64 = 0
    var reportedCount = 0
    var reportedCounts: [Source: Int] = [:]
    var suppressedCount = 0
    var suppressedCounts: [Source: Int] = [:]
  }

  private enum Decision {
    case report, suppress
    /// Don't report the item, which is the first in the interval.
    case suppressFirst
  }

  /// - Parameter reportCounts: Reports the number of items that were suppressed, and those of the sources with most of
  ///   them.
  init(
    maxPerSource: Int, maxPerInterval: Int, _ report: @escaping @Sendable (Item) -> Void,
    suppressed reportCounts: @escaping @Sendable (Int, [Source: Int]) -> Void
  ) {
    (self.maxPerSource, self.maxPerInterval) = (maxPerSource, maxPerInterval)
    (self.report, self.reportCounts) = (report, reportCounts)
  }

  func add(_ item: Item, from source: Source, now: UInt64 = monotonicMilliseconds()) {
    if let (count, counts) = interval.withLock({ restart(&$0, at: now) }) { reportCounts(count, counts) }
    let decision = interval.withLock { decide(source, &$0) }
    if decision == .report { report(item) }
    guard decision == .suppressFirst else { return }
    // There may be no later item that reports how many were suppressed.
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Int(Self.intervalMilliseconds))) { [weak self] in
      self?.reportSuppressed()
    }
  }

  /// Reports how many items have been suppressed since the last report.
  func reportSuppressed() {
    let (count, counts) = interval.withLock { Self.takeSuppressed(&$0) }
    if count > 0 { reportCounts(count, counts) }
  }

  /// Begins the next interval if this one is over.
  /// - Returns: How many items were suppressed in the last one, if there were any.
  private func restart(_ interval: inout Interval, at now: UInt64) -> (Int, [Source: Int])? {
    guard now >= interval.end else { return nil }
    let suppressed = Self.takeSuppressed(&interval)
    interval = Interval(end: now + Self.intervalMilliseconds)
    return suppressed.0 > 0 ? suppressed : nil
  }

  private func decide(_ source: Source, _ interval: inout Interval) -> Decision {
    guard interval.reportedCount < maxPerInterval, interval.reportedCounts[source, default: 0] < maxPerSource else {
      interval.suppressedCount += 1
      if interval.suppressedCounts.count < Self.maxSources || interval.suppressedCounts[source] != nil {
        interval.suppressedCounts[source, default: 0] += 1
      }
      return interval.suppressedCount == 1 ? .suppressFirst : .suppress
    }
    interval.reportedCount += 1
    interval.reportedCounts[source, default: 0] += 1
    return .report
  }

  private static func takeSuppressed(_ interval: inout Interval) -> (Int, [Source: Int]) {
    defer { (interval.suppressedCount, interval.suppressedCounts) = (0, [:]) }
    return (interval.suppressedCount, interval.suppressedCounts)
  }
}
