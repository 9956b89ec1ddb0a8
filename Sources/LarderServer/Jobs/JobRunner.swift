import Dispatch
import Glibc
import Platform
import Synchronization

/// Runs all jobs of a server on one thread, in turns of about a millisecond. So they take at most one core from the
/// workers, and a short job waits for no long one. While there are no jobs, there is no thread.
final class JobRunner: Sendable {
  private struct Jobs {
    /// Those that wait for their turn, in rotation.
    var waiting: [DocumentJob] = []
    /// What the thread must call.
    var probes: [@Sendable () -> Void] = []
    var hasThread = false
  }

  private let queue = DispatchQueue(label: "larder.finds")
  private let jobs = Lock(Jobs())
  private let openSlots = Atomic<Int>(0)

  /// The number of jobs from their request to the end of their reply.
  var openCount: Int { openSlots.load(ordering: .relaxed) }

  /// Makes room for a job.
  /// - Returns: nil if `limit` jobs are open.
  func open(limit: Int) -> JobSlot? {
    if openSlots.add(1, ordering: .relaxed).newValue <= limit { return JobSlot(self) }
    closeSlot()
    return nil
  }

  fileprivate func closeSlot() { openSlots.subtract(1, ordering: .relaxed) }

  /// Runs a job until it has ended. From any thread.
  func run(_ job: DocumentJob) { wake { $0.waiting.append(job) } }

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
      case .needsTurn: jobs.withLock { $0.waiting.append(job) }
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
      return (jobs.waiting.isEmpty ? nil : jobs.waiting.removeFirst(), probes, !jobs.hasThread)
    }
  }
}

/// The place of one job among those that a server has open at a time: from its request to the end of its reply. Used
/// by any thread.
final class JobSlot: Sendable {
  private let runner: JobRunner
  private let isReleased = Atomic(false)

  fileprivate init(_ runner: JobRunner) { self.runner = runner }

  deinit { release() }

  /// Makes room for another job. Only the first call has an effect.
  func release() {
    if !isReleased.exchange(true, ordering: .relaxed) { runner.closeSlot() }
  }
}
