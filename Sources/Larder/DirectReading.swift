/// Whether calls read their own replies: a plain value. Owned by the connection's lock.
///
/// A reply that the loop reads wakes two threads, the loop's and the task's. Where one task calls in sequence, that is most of the call.
/// So once calls have been alone for a while, each waits for its reply itself, for a bounded time, and the loop looks away. It looks
/// again as soon as a second call is under way, a reply takes long, or no call comes.
struct DirectReading {
  /// How long a caller waits for its reply before it leaves that to the loop. This holds a thread of Swift's pool, so it is short.
  static let patienceMicroseconds = 200
  /// How often a caller looks for its reply before it sleeps: about 15 µs in all.
  static let looks = 32
  /// After how long without calls the loop looks again, in milliseconds.
  static let idleMilliseconds: UInt64 = 20
  /// How many calls in a row must be alone.
  private static let calls = 16
  private static let maxCalls = 1 << 16

  /// Whether the loop looks away.
  private(set) var isOn = false
  /// Whether some caller waits on the socket.
  private(set) var isBusy = false
  private var isUsed = false
  private var lone = 0
  private var needed = DirectReading.calls

  enum Step: Equatable {
    case nothing
    /// The caller reads.
    case read
    /// The caller reads, and the loop is to look away.
    case readAlone
    /// The loop is to look again.
    case handBack
  }

  /// A call was put in.
  mutating func called(isAlone: Bool) -> Step {
    guard isAlone else {
      lone = 0
      return isOn && !isBusy ? handBack() : .nothing
    }
    if isOn {
      if isBusy { return .nothing }
      isBusy = true
      isUsed = true
      return .read
    }
    lone += 1
    guard lone >= needed else { return .nothing }
    isOn = true
    isBusy = true
    isUsed = true
    return .readAlone
  }

  /// A caller has read.
  /// - Parameters:
  ///   - isInTime: whether there was something to read.
  ///   - isDone: whether no request is unfinished.
  mutating func read(isInTime: Bool, isDone: Bool) -> Step {
    isBusy = false
    // Replies that take long are not worth waiting for on the spot. It is tried again ever more seldom.
    needed = isInTime ? max(Self.calls, needed / 2) : min(Self.maxCalls, needed * 4)
    guard isOn else { return .nothing }
    return isInTime && isDone ? .nothing : handBack()
  }

  /// The loop looks whether calls still come.
  mutating func tick() -> Step {
    guard isOn, !isBusy else { return .nothing }
    defer { isUsed = false }
    return isUsed ? .nothing : handBack()
  }

  private mutating func handBack() -> Step {
    isOn = false
    lone = 0
    return .handBack
  }
}
