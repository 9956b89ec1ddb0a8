import Dispatch
import Glibc
import Platform
import Synchronization

/// Runs all finds of a server on one thread, in turns of about a millisecond. So finds take at most one core from the
/// workers, and a short find waits for no long one. While there are no finds, there is no thread.
final class FindRunner: Sendable {
  private struct Jobs {
    /// Those that wait for their turn, in rotation.
    var waiting: [FindJob] = []
    var hasThread = false
  }

  private let queue = DispatchQueue(label: "larder.finds")
  private let jobs = Lock(Jobs())
  private let openCount = Atomic<Int>(0)

  /// Opens a find.
  /// - Returns: nil if `limit` finds are open.
  func open(limit: Int) -> FindSlot? {
    if openCount.add(1, ordering: .relaxed).newValue <= limit { return FindSlot(self) }
    closeSlot()
    return nil
  }

  fileprivate func closeSlot() { openCount.subtract(1, ordering: .relaxed) }

  /// Runs a job until it has ended. From any thread.
  func run(_ job: FindJob) {
    let needsThread = jobs.withLock { jobs in
      jobs.waiting.append(job)
      let hadThread = jobs.hasThread
      jobs.hasThread = true
      return !hadThread
    }
    if needsThread { queue.async { self.takeTurns() } }
  }

  private func takeTurns() {
    var batch = DocumentBatch()
    while let job = nextJob() {
      if job.takeTurn(&batch) { jobs.withLock { $0.waiting.append(job) } }
      // A worker that waits for this core comes first.
      sched_yield()
    }
  }

  private func nextJob() -> FindJob? {
    jobs.withLock { jobs in
      if jobs.waiting.isEmpty { jobs.hasThread = false }
      return jobs.waiting.isEmpty ? nil : jobs.waiting.removeFirst()
    }
  }
}

/// The place of one find among those that a server has open at a time: from its request to the end of its reply. Used
/// by any thread.
final class FindSlot: Sendable {
  private let runner: FindRunner
  private let isReleased = Atomic(false)

  fileprivate init(_ runner: FindRunner) { self.runner = runner }

  deinit { release() }

  /// Makes room for another find. Only the first call has an effect.
  func release() {
    if !isReleased.exchange(true, ordering: .relaxed) { runner.closeSlot() }
  }
}
