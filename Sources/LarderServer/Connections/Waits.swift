// What happens to requests behind a long update:
//
// They wait in the connection's input, so that a connection's requests are executed in their order (`Waits`). Up to 256
// KiB of input is read meanwhile, and `executeAhead` in `NativeCodec+Server` finds the credit and cancel frames in it.
// The Swift client sends requests that may take long over a connection of their own (`ClientCore`), so that the calls
// of other tasks don't wait.

/// What keeps a connection from executing its next request, whatever that is. Owned by a `Connection`.
///
/// - During a pause, the connection is not read, and its streams rest. When the wait is over, the pause's token goes to
///   the worker's mailbox.
/// - Behind an awaited stream, the connection is read, because its input may have credit, and its streams go on.
/// - A deferred request is executed again in a later wakeup.
struct Waits {
  private var pause: Pause?
  /// The number of pauses so far.
  private var pauseCount: UInt32 = 0
  /// When the pause takes too long, in milliseconds; nil if it may take any time.
  private(set) var pauseDeadline: UInt64?
  /// Whether the next request waits until a stream has ended, such as that of a job that changes entries.
  private(set) var isAwaitingStream = false
  /// Whether the next request was deferred: see `RequestEnd.deferred`.
  private(set) var isDeferred = false
  /// Whether the next request waits: for the end of a pause, or of a stream.
  private(set) var mustWait = false
  /// The job that has executed the next request, whose reply has yet to be made; nil if there is none.
  private(set) var endedWrite: WriteJob?
  /// How many times the next request has waited for space.
  private var spaceWaitCount = 0

  // MARK: Pauses

  @inline(__always)
  var isPaused: Bool { pause != nil }

  /// The token of the pause that is begun next.
  func nextToken(of connection: ConnectionToken) -> PauseToken {
    PauseToken(connection: connection, number: pauseCount &+ 1)
  }

  /// Whether this pause has not ended.
  func isPaused(as token: PauseToken) -> Bool { isPaused && pauseCount == token.number }

  /// The large write that the pause waits for; nil if there is none.
  var pausedWrite: WriteJob? { if case .write(let job)? = pause { job } else { nil } }

  /// Whether the next request may wait for space once more.
  var mayWaitForSpace: Bool { spaceWaitCount < Pause.maxSpaceWaits }

  /// Begins a pause.
  /// - Parameter deadline: When it takes too long, in milliseconds.
  mutating func begin(_ pause: Pause, deadline: UInt64?) {
    precondition(!isPaused, "a paused connection executes nothing")
    pauseCount &+= 1
    self.pause = pause
    pauseDeadline = deadline
    mustWait = true
    if case .space = pause { spaceWaitCount += 1 }
  }

  /// Ends the pause.
  /// - Returns: What it has waited for; nil if there is none.
  mutating func endPause() -> Pause? {
    guard let pause = pause.take() else { return nil }
    pauseDeadline = nil
    mustWait = isAwaitingStream
    return pause
  }

  /// Gives up waiting for space.
  mutating func stopWaitingForSpace() { spaceWaitCount = Pause.maxSpaceWaits }

  /// Notes that the next request has been executed or waits for something else.
  mutating func spaceWasFound() { spaceWaitCount = 0 }

  // MARK: Jobs, streams and deferral

  /// Notes that a job has executed the next request.
  mutating func writeDidEnd(_ job: WriteJob) { endedWrite = job }

  /// Removes and returns the job that has executed the next request.
  mutating func takeEndedWrite() -> WriteJob? { endedWrite.take() }

  mutating func awaitStream() {
    isAwaitingStream = true
    mustWait = true
  }

  mutating func streamDidEnd() {
    isAwaitingStream = false
    mustWait = isPaused
  }

  mutating func deferRequest() { isDeferred = true }

  mutating func endDeferral() { isDeferred = false }
}
