import Larder
import Platform

/// When an entry of a line expires: `expiresAtMilliseconds`, a time in milliseconds since 1970, or else
/// `expiresInMilliseconds`, which counts from when the line is read. Without the first one, an entry that is dumped and
/// loaded again would live longer.
struct LineExpiry {
  static let timeName = "expiresAtMilliseconds"
  static let durationName = "expiresInMilliseconds"

  private var time: UInt64?
  private var duration: Duration?

  private static let maxTime: UInt64 = 1 << 53

  /// Returns the time at which an entry expires, 2^53 at most.
  static func time(_ duration: Duration) -> UInt64 {
    let now = wallMilliseconds()
    return now + min(max(1, duration.wholeMilliseconds), maxTime - now)
  }

  mutating func readTime(_ content: Span<UInt8>) throws(LineError) {
    guard time == nil else { throw LineError("the member '\(Self.timeName)' occurs twice") }
    guard let number = UInt64(content.toString()), number <= Self.maxTime else {
      throw LineError("'\(Self.timeName)' is not a whole number from 0 to 2^53")
    }
    time = number
  }

  mutating func readDuration(_ content: Span<UInt8>) throws(LineError) {
    guard duration == nil else { throw LineError("the member '\(Self.durationName)' occurs twice") }
    duration = try LineValue.expiry(content)
  }

  /// How long the entry has left; nil if it doesn't expire. One that has expired replaces what the store has, and goes.
  var remaining: Duration? {
    guard let time else { return duration }
    let now = wallMilliseconds()
    return .milliseconds(Int64(time > now ? time - now : 1))
  }
}
