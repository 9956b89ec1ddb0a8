import Dispatch
import Glibc
import Platform
import Storage

/// Runs all jobs of a server in turns of about a millisecond, one at a time. So they take at most one core from the
/// workers, and a short job waits for no long one. The turns go to principals, then connections, then jobs, so that the
/// number of a client's jobs doesn't slow down those of others.
///
/// A job whose turn ends in the middle of a document keeps its thread, which sleeps until the next turn; others go on
/// with another thread. While there are no jobs, there is no thread.
final class JobRunner: Sendable {
  private enum Turn: Sendable {
    case job(DocumentJob)
    /// That of a job which is in the middle of a document, on a thread that waits for the semaphore.
    case pausedThread(DispatchSemaphore)
  }

  private struct Jobs {
    var waiting = TurnQueue<Turn>()
    /// Whether a thread takes turns. It is the only one that isn't paused.
    var hasThread = false
  }

  private let jobs = Lock(Jobs())
  private let shares = FairShares()
  private let largeCommits: LargeCommits

  /// - Parameter largeCommits: What makes the changes of jobs that change many entries.
  init(_ largeCommits: LargeCommits) { self.largeCommits = largeCommits }

  /// The number of jobs from their request to their result.
  var openCount: Int { shares.amount }

  /// Makes room for a job, which takes the place of another client's job if `limit` jobs are open and that client has
  /// more of them.
  /// - Returns: nil if there is no room.
  func open(_ job: DocumentJob, limit: Int) -> Share? {
    shares.take(1, for: job.sharer, limit: limit) { [weak job] in job?.giveUpPlace() }
  }

  /// Runs a job until it has ended. From any thread.
  func run(_ job: DocumentJob) {
    let needsThread = jobs.withLock { jobs in
      jobs.waiting.append(.job(job), for: job.sharer)
      let hadThread = jobs.hasThread
      jobs.hasThread = true
      return !hadThread
    }
    if needsThread { startThread() }
  }

  /// Gives the other jobs their turns in the middle of a job's own, and returns when it has its next one. Call it in a
  /// turn, with nothing locked.
  func pause(_ sharer: Sharer) {
    let next = DispatchSemaphore(value: 0)
    let other: Turn? = jobs.withLock { jobs in
      guard let other = jobs.waiting.popFirst() else { return nil }
      jobs.waiting.append(.pausedThread(next), for: sharer)
      return other
    }
    guard let other else {
      // A worker that waits for this core comes first.
      sched_yield()
      return
    }
    switch other {
    case .job: startThread(with: other)
    case .pausedThread(let thread): thread.signal()
    }
    next.wait()
  }

  /// Starts a thread that takes turns. A queue of its own has its own thread, even while others are paused.
  /// - Parameter first: The first turn; nil for the next one that waits.
  private func startThread(with first: Turn? = nil) {
    DispatchQueue(label: "larder.finds").async { self.takeTurns(first) }
  }

  private func takeTurns(_ first: Turn?) {
    var batch = DocumentBatch()
    var next = first
    while let turn = next ?? nextTurn() {
      next = nil
      guard case .job(let job) = turn else {
        if case .pausedThread(let thread) = turn { thread.signal() }
        // That thread takes the turns from now on.
        return
      }
      switch job.takeTurn(&batch) {
      case .needsTurn: jobs.withLock { $0.waiting.append(.job(job), for: job.sharer) }
      case .needsSpace: job.whenThereIsSpace { self.run(job) }
      case .needsCommit(let task): largeCommits.run(TaskCommit(task, of: job) { self.run(job) })
      case .needsValues(let values):
        // They are in memory afterward, so that the runner need not wait for a disk, which may stall.
        job.store.diskReads.run {
          for value in values where !job.isCanceled { value.readAhead() }
          self.run(job)
        }
      case .ended: break
      }
      // A worker that waits for this core comes first.
      sched_yield()
    }
  }

  /// Returns the next turn; nil if there are no jobs, so that the thread ends.
  private func nextTurn() -> Turn? {
    jobs.withLock { jobs in
      let turn = jobs.waiting.popFirst()
      jobs.hasThread = turn != nil
      return turn
    }
  }
}
