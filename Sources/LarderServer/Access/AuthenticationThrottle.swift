import Platform

/// Slows down attempts to guess tokens. After a failed attempt, the same user or host has to wait, each time twice as
/// long as before; attempts in the meantime fail.
///
/// Owned by an `AccessControl`, which locks it.
struct AuthenticationThrottle {
  private struct Failures {
    var count = 0
    /// When the next attempt may succeed, in milliseconds.
    var end: UInt64
  }

  private var failures: [Peer.Origin: Failures] = [:]

  /// The pause after the first failed attempt, in milliseconds.
  static let firstPause: UInt64 = 100
  static let maxPause: UInt64 = 10_000
  /// How long failed attempts are remembered after the end of their pause, in milliseconds.
  private static let memory: UInt64 = 60_000
  /// The number of users and hosts that are remembered. Beyond it, those whose pauses have ended are forgotten.
  private static let maxCount = 10_000

  /// Returns whether an attempt may succeed now.
  func permits(_ origin: Peer.Origin, now: UInt64) -> Bool { failures[origin].map { $0.end <= now } ?? true }

  /// Records a failed attempt.
  mutating func didFail(_ origin: Peer.Origin, now: UInt64) {
    if failures.count >= Self.maxCount { failures = failures.filter { $0.value.end > now } }
    var latest = failures[origin] ?? Failures(end: now)
    if latest.end + Self.memory < now { latest.count = 0 }
    // An attempt during a pause doesn't lengthen it, so that a stranger can't shut others of the host out forever.
    guard latest.end <= now else { return }
    latest.end = now + min(Self.maxPause, Self.firstPause << UInt64(min(latest.count, 20)))
    latest.count += 1
    failures[origin] = latest
  }

  /// Forgets failed attempts after one that has succeeded.
  mutating func didSucceed(_ origin: Peer.Origin) { failures[origin] = nil }
}
