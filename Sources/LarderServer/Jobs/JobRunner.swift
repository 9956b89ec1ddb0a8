import Dispatch
import Glibc
import Platform

/// Runs all jobs of a server on one thread, in turns of about a millisecond. So they take at most one core from the
/// workers, and a short job waits for no long one. The turns go to principals, then connections, then jobs, so that the
/// number of a client's jobs doesn't slow down those of others. While there are no jobs, there is no thread.
final class JobRunner: Sendable {
  private struct Jobs {
    var waiting = TurnQueue<DocumentJob>()
    /// What the thread must call.
    var probes: [@Sendable () -> Void] = []
    var hasThread = false
  }

  private let queue = DispatchQueue(label: "larder.finds")
  private let jobs = Lock(Jobs())
  private let shares = FairShares()

  /// The number of jobs from their request to their result.
  var openCount: Int { shares.amount }

  /// Makes room for a job, which takes the place of another client's job if `limit` jobs are open and that client has
  /// more of them.
  /// - Returns: nil if there is no room.
  func open(_ job: DocumentJob, limit: Int) -> Share? {
    shares.take(1, for: job.sharer, limit: limit) { [weak job] in job?.giveUpPlace() }
  }

  /// Runs a job until it has ended. From any thread.
  func run(_ job: DocumentJob) { wake { $0.waiting.append(job, for: job.sharer) } }

  /// Makes the thread call `respond` after the turn that it is in. From any thread.
  func probe(_ respond: @escaping @Sendable () -> Void) { wake { $0.probes.append(respond) } }

  private func wake(_ change: (inout Jobs) -> Void) {
    let needsThread = jobs.withLock { jobs in
      change(&jobs)
      let hadThread = jobs.hasThread
      jobs.hasThread = true
      return !hadThread
    }
    if needsThread { queue.async { self.takeTurns() } }
  }

  private func takeTurns() {
    var batch = DocumentBatch()
    while true {
      let (job, probes, isDone) = next()
      for respond in probes { respond() }
      if isDone { return }
      guard let job else { continue }
      switch job.takeTurn(&batch) {
      case .needsTurn: jobs.withLock { $0.waiting.append(job, for: job.sharer) }
      case .needsSpace: job.whenThereIsSpace { self.run(job) }
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

  private func next() -> (job: DocumentJob?, probes: [@Sendable () -> Void], isDone: Bool) {
    jobs.withLock { jobs in
      let probes = jobs.probes
      jobs.probes = []
      if jobs.waiting.isEmpty { jobs.hasThread = !probes.isEmpty }
      return (jobs.waiting.popFirst(), probes, !jobs.hasThread)
    }
  }
}
