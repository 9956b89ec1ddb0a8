import Platform

/// Slows down attempts to guess tokens. After a failed attempt, the same user or host has to wait before the next one, each
/// time twice as long as before. Clients with a right token never wait, and a success ends no pause.
///
/// Owned by an `AccessControl`, which locks it.
struct AuthenticationThrottle {
  private struct Failures {
    var count = 0
    /// The end of the pause, in milliseconds.
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

  /// Records a failed attempt.
  /// - Returns: The rest of the pause that the attempt came into, in milliseconds; 0 if there was none. A new pause begins
  ///   then.
  mutating func didFail(_ origin: Peer.Origin, now: UInt64) -> UInt64 {
    if failures.count >= Self.maxCount { failures = failures.filter { $0.value.end > now } }
    var latest = failures[origin] ?? Failures(end: now)
    if latest.end + Self.memory < now { latest.count = 0 }
    // An attempt during a pause doesn't lengthen it, so that a typo has to wait for 10 seconds at most.
    guard latest.end <= now else { return latest.end - now }
    latest.end = now + min(Self.maxPause, Self.firstPause << UInt64(min(latest.count, 20)))
    latest.count += 1
    failures[origin] = latest
    return 0
  }
}

/// The reason that a client learns when its token or link is not accepted.
enum AuthenticationError: Error, Equatable {
  /// The same for every wrong token.
  case invalidToken
  /// Other wrong tokens came from the same user or host, which has to wait.
  case tooManyAttempts(milliseconds: UInt64)

  /// How long the client has to wait, in seconds; nil if it need not wait.
  var retryAfter: UInt64? {
    guard case .tooManyAttempts(let milliseconds) = self else { return nil }
    return (milliseconds + 999) / 1_000
  }

  var message: String {
    retryAfter.map { "too many wrong tokens; wait \($0) s before you try another one" } ?? "the token is not accepted"
  }
}
