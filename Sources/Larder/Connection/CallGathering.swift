/// Decides whether the requests of several calls wait for each other, so that one write sends them.
///
/// Replies that arrive together resume callers that usually make their next calls at once. The task that reads the
/// replies lets them do so before it writes: the server then wakes up once for all of these requests, and its replies
/// arrive together again.
///
/// A plain value; the lock of the connection's state protects it.
struct CallGathering {
  /// The numbers of concurrent calls that wait for each other. With fewer, waiting costs more than it saves; with more,
  /// `ServerConnection.coalesce` gathers them.
  static let callCounts = 4..<16
  /// The maximum number of turns that the reading task waits.
  static let maxTurns = 3

  /// The number of replies in the latest batch.
  private var lastReplies = 0
  /// The number of callers that were resumed, less the calls made since.
  private var expectedCalls = 0
  private var turns = 0

  /// Records that replies have arrived.
  mutating func received(replies: Int) {
    lastReplies = replies
    expectedCalls += replies
  }

  mutating func requestSubmitted() { expectedCalls = max(0, expectedCalls - 1) }

  /// Whether even the first of several requests waits for the others.
  /// - Parameter inFlight: The number of calls that wait for a reply.
  func holdsFirstRequest(inFlight: Int) -> Bool {
    lastReplies >= Self.callCounts.lowerBound && inFlight + expectedCalls < Self.callCounts.upperBound
  }

  /// Begins a turn of the reading task.
  /// - Parameter inFlight: The number of calls that wait for a reply.
  /// - Returns: Whether the task lets other tasks run before it does anything.
  mutating func mustWait(inFlight: Int) -> Bool {
    if expectedCalls > 0, turns < Self.maxTurns, Self.callCounts.contains(inFlight + expectedCalls) {
      turns += 1
      return true
    }
    (expectedCalls, turns) = (0, 0)
    return false
  }
}
