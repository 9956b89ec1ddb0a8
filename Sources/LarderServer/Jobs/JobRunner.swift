import Dispatch
import Glibc
import Platform
import Storage

/// Runs all jobs of a server in turns of about a millisecond. The turns go to principals, then connections, then jobs, so
/// that the number of a client's jobs doesn't slow down those of others, and a short job waits for no long one.
///
/// A single thread takes turns unless several jobs wait, or a job has divided its documents. Then there are more, as long
/// as nothing else wants their cores. A job whose turn ends in the middle of a document keeps its thread, which sleeps
/// until the next turn; others go on with another thread. While there are no jobs, there is no thread.
final class JobRunner: Sendable {
  private enum Turn: Sendable {
    case job(DocumentJob)
    case part(JobPart)
    /// That of a job which is in the middle of a document, on a thread that waits for the semaphore.
    case pausedThread(DispatchSemaphore)
  }

  private struct Jobs {
    let maxThreadCount: Int
    private var waiting = TurnQueue<Turn>()
    /// The number of threads that take turns. Those that are paused don't count.
    private var threadCount = 0
    /// Until when a single thread takes turns, in nanoseconds, because others want the cores.
    private var busyUntil: UInt64 = 0

    init(maxThreadCount: Int) { self.maxThreadCount = maxThreadCount }

    mutating func append(_ turn: Turn, for sharer: Sharer) { waiting.append(turn, for: sharer) }

    /// Notes that a thread takes turns from now on.
    /// - Returns: Whether there should be one more.
    mutating func addThread() -> Bool {
      guard !waiting.isEmpty, threadCount == 0 || threadCount < maxThreadCount && monotonicNanoseconds() >= busyUntil
      else { return false }
      threadCount += 1
      return true
    }

    /// Returns the next turn; nil if there is none, so that the thread ends.
    mutating func nextTurn() -> Turn? {
      let turn = waiting.popFirst()
      if turn == nil { threadCount -= 1 }
      return turn
    }

    /// Returns another turn to take instead of one that is not over; nil if there is none.
    mutating func exchange(_ turn: @autoclosure () -> Turn, for sharer: Sharer) -> Turn? {
      guard let other = waiting.popFirst() else { return nil }
      waiting.append(turn(), for: sharer)
      return other
    }

    /// Ends the thread if there is another one, because something else wants its core.
    /// - Returns: Whether it ends.
    mutating func leaveCore() -> Bool {
      guard threadCount > 1 else { return false }
      threadCount -= 1
      busyUntil = monotonicNanoseconds() + JobRunner.busyTime
      return true
    }
  }

  /// How long a single thread takes turns after another one has lost its core, in nanoseconds.
  private static let busyTime: UInt64 = 10_000_000
  /// How many times a thread may lose its core in a turn, as it does to what the system does now and then.
  private static let maxSwitchCount = 1

  /// The maximum number of threads that take turns.
  let maxThreadCount: Int
  private let jobs: Lock<Jobs>
  private let shares = FairShares()
  private let largeCommits: LargeCommits

  /// - Parameter largeCommits: What makes the changes of jobs that change many entries.
  init(_ largeCommits: LargeCommits, maxThreadCount: Int) {
    self.largeCommits = largeCommits
    self.maxThreadCount = maxThreadCount
    jobs = Lock(Jobs(maxThreadCount: maxThreadCount))
  }

  /// The number of jobs from their request to their result.
  var openCount: Int { shares.amount }

  /// Makes room for a job, which takes the place of another client's job if `limit` jobs are open and that client has
  /// more of them.
  /// - Returns: nil if there is no room.
  func open(_ job: DocumentJob, limit: Int) -> Share? {
    shares.take(1, for: job.sharer, limit: limit) { [weak job] in job?.giveUpPlace() }
  }

  /// Runs a job until it has ended. From any thread.
  func run(_ job: DocumentJob) { run(.job(job), for: job.sharer) }

  private func run(_ turn: Turn, for sharer: Sharer) {
    let needsThread = jobs.withLock { jobs in
      jobs.append(turn, for: sharer)
      return jobs.addThread()
    }
    if needsThread { startThread() }
  }

  /// Gives the other jobs their turns in the middle of a job's own, and returns when it has its next one. Call it in a
  /// turn, with nothing locked.
  func pause(_ sharer: Sharer) {
    let next = DispatchSemaphore(value: 0)
    guard let other = jobs.withLock({ $0.exchange(.pausedThread(next), for: sharer) }) else {
      // A worker that waits for this core comes first.
      sched_yield()
      return
    }
    if case .pausedThread(let thread) = other { thread.signal() } else { startThread(with: other) }
    next.wait()
  }

  /// Starts a thread that takes turns. A queue of its own has its own thread, even while others are paused.
  /// - Parameter first: The first turn; nil for the next one that waits.
  private func startThread(with first: Turn? = nil) {
    DispatchQueue(label: "larder.finds").async { self.takeTurns(first) }
  }

  private func takeTurns(_ first: Turn?) {
    var batch = DocumentBatch()
    var core = CoreYield()
    var next = first
    while let turn = next ?? nextTurn() {
      next = nil
      let switchCount = involuntarySwitchCount()
      switch turn {
      case .job(let job): end(job.takeTurn(&batch, on: self), of: turn, job)
      case .part(let part): end(part.takeTurn(&batch), of: turn, part.job)
      case .pausedThread(let thread):
        // That thread takes the turns from now on.
        thread.signal()
        return
      }
      // A worker that waits for this core comes first.
      core.yield()
      if involuntarySwitchCount() - switchCount > Self.maxSwitchCount, jobs.withLock({ $0.leaveCore() }) { return }
    }
  }

  private func end(_ end: DocumentJob.TurnEnd, of turn: Turn, _ job: DocumentJob) {
    switch end {
    case .needsTurn: jobs.withLock { $0.append(turn, for: job.sharer) }
    case .needsSpace: job.whenThereIsSpace { self.run(job) }
    case .needsCommit(let task): largeCommits.run(TaskCommit(task, of: job) { self.run(job) })
    case .needsParts(let parts): for part in parts { run(.part(part), for: job.sharer) }
    case .needsValues(let values):
      // They are in memory afterward, so that the runner need not wait for a disk, which may stall.
      job.store.diskReads.run {
        for value in values where !job.isCanceled { value.readAhead() }
        self.run(turn, for: job.sharer)
      }
    case .ended: if case .part = turn, job.endPart() { run(job) }
    }
  }

  /// Returns the next turn, and starts another thread if there are more; nil if there are none, so that this thread ends.
  private func nextTurn() -> Turn? {
    let (turn, needsThread) = jobs.withLock { jobs in (jobs.nextTurn(), jobs.addThread()) }
    if needsThread { startThread() }
    return turn
  }
}
