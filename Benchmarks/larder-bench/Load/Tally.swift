import Histogram

/// What a thread has counted.
struct Tally: Sendable {
  /// Nanoseconds, with three digits, up to ten minutes.
  private(set) var latencies = Histogram<UInt64>(
    highestTrackableValue: Tally.longest, numberOfSignificantValueDigits: .three)
  private static let longest: UInt64 = 600_000_000_000

  /// Requests that were answered, however.
  var answered = 0
  var entries = 0
  var misses = 0
  var refusals = 0
  var protocolErrors = 0
  var lostConnections = 0
  /// Requests that had no answer when the run ended.
  var unanswered = 0
  /// Requests whose planned time came and that were never sent.
  var unsent = 0

  /// Requests that were sent, or planned, before this time have no part in the latencies.
  var latenciesCountFrom: UInt64 = 0

  // Equal latencies in a row are recorded at once: replies that come together to requests that were sent together.
  private var latency: UInt64 = 0
  private var equal: UInt64 = 0

  @inline(__always)
  mutating func count(_ reply: Reply) {
    entries &+= Int(reply.entries)
    misses &+= Int(reply.misses)
    switch reply.fault {
    case nil: break
    case .refused: refusals &+= 1
    case .unexpected: protocolErrors &+= 1
    }
  }

  /// A request was answered.
  @inline(__always)
  mutating func record(since: UInt64, now: UInt64) {
    answered &+= 1
    guard since >= latenciesCountFrom else { return }
    let passed = now > since ? now &- since : 0
    if passed == latency {
      equal &+= 1
    } else {
      flush()
      latency = passed
      equal = 1
    }
  }

  mutating func flush() {
    guard equal > 0 else { return }
    latencies.record(min(latency, Self.longest), count: equal)
    equal = 0
  }

  mutating func add(_ other: Tally) {
    var other = other
    other.flush()
    flush()
    latencies.add(other.latencies)
    answered += other.answered
    entries += other.entries
    misses += other.misses
    refusals += other.refusals
    protocolErrors += other.protocolErrors
    lostConnections += other.lostConnections
    unanswered += other.unanswered
    unsent += other.unsent
  }

  /// Whether anything happened that must not happen in a benchmark; a miss may.
  var hasFailures: Bool { refusals + protocolErrors + lostConnections + unanswered > 0 }
}

extension Tally {
  /// What went wrong, in words.
  var failures: String {
    [
      (misses, "misses"), (refusals, "refused requests"), (protocolErrors, "replies that were not understood"),
      (lostConnections, "lost connections"), (unanswered, "unanswered requests"),
    ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
  }
}
