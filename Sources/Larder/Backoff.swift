import Basics

/// How long to wait before the next attempt to connect: the double of the time before, up to a cap, less a random part of up to half,
/// so that many clients of a server that comes back don't come all at once.
public struct Backoff: Hashable, Sendable {
  /// The wait after the first failure, before jitter.
  public var base: Duration
  /// The longest wait, before jitter.
  public var cap: Duration

  public init(base: Duration = .milliseconds(20), cap: Duration = .seconds(2)) {
    self.base = base
    self.cap = cap
  }

  /// The wait in milliseconds after so many failures in a row (at least 1).
  func milliseconds(afterFailures failures: Int) -> UInt64 {
    let base = max(1, base.wholeMilliseconds)
    let cap = max(base, cap.wholeMilliseconds)
    let doubled =
      failures > 32 ? cap : min(cap, base.multipliedReportingOverflow(by: 1 << UInt64(failures - 1)).partialValue)
    let longest = max(base, doubled)
    return longest - UInt64.random(in: 0...longest / 2)
  }
}
