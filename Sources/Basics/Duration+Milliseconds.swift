extension Duration {
  /// The duration in whole milliseconds, rounded up, so that a timeout never fires early. A negative duration is 0, and
  /// a duration beyond 2^53 ms, some 285,000 years, is 2^53 ms, so that adding it to a time can't overflow.
  package var wholeMilliseconds: UInt64 {
    let limit: UInt64 = 1 << 53
    let (seconds, attoseconds) = components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    guard seconds <= limit / 1_000 else { return limit }
    let fraction = (UInt64(attoseconds) + 999_999_999_999_999) / 1_000_000_000_000_000
    return min(limit, UInt64(seconds) * 1_000 + fraction)
  }
}
