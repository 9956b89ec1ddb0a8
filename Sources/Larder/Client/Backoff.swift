import Basics

/// The pauses between attempts to connect. Each pause doubles the one before, up to a maximum, minus a random part of
/// up to half, so that many clients of a server that comes back don't all connect at once.
public struct Backoff: Hashable, Sendable {
  /// The pause after the first failure, before the random part is subtracted. At least 1 ms.
  public var base: Duration
  /// The maximum pause, before the random part is subtracted. At least `base`.
  public var cap: Duration

  public init(base: Duration = .milliseconds(20), cap: Duration = .seconds(2)) {
    self.base = base
    self.cap = cap
  }

  /// Returns a pause in milliseconds.
  /// - Parameter failures: The number of failures in a row, at least 1.
  func milliseconds(afterFailures failures: Int) -> UInt64 {
    let base = max(1, base.wholeMilliseconds)
    let cap = max(base, cap.wholeMilliseconds)
    let doubled =
      failures > 32 ? cap : min(cap, base.multipliedReportingOverflow(by: 1 << UInt64(failures - 1)).partialValue)
    let maxPause = max(base, doubled)
    return maxPause - UInt64.random(in: 0...maxPause / 2)
  }
}
