import Glibc

/// Threads for work that blocks, so that it doesn't block the threads that all tasks share.
///
/// A task runs there with `withTaskExecutorPreference`. A thread is started when a job finds no idle one, up to a
/// maximum number, and stays; further jobs wait in the order of their arrival. The threads refer to the object, so it
/// is never released once it has run a job.
@safe package final class BlockingThreads: TaskExecutor {
  private struct State {
    /// The jobs that have not started. Those before `next` have.
    var jobs: [UnownedJob] = []
    var next = 0
    var threadCount = 0
    var idleCount = 0

    mutating func takeJob() -> UnownedJob {
      defer {
        next += 1
        if next == jobs.count { (jobs, next) = ([], 0) }
      }
      return jobs[next]
    }
  }

  private let maxCount: Int
  private let state = Lock(State())
  /// Counts the jobs that have not started. Its memory never moves, as `sem_init(3)` requires.
  private let pending: UnsafeMutablePointer<sem_t>

  package init(maxCount: Int) {
    self.maxCount = maxCount
    unsafe pending = .allocate(capacity: 1)
    unsafe sem_init(pending, 0, 0)
  }

  deinit {
    unsafe sem_destroy(pending)
    unsafe pending.deallocate()
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let needsThread = state.withLock { state in
      state.jobs.append(job)
      guard state.jobs.count - state.next > state.idleCount, state.threadCount < maxCount else { return false }
      state.threadCount += 1
      return true
    }
    unsafe sem_post(pending)
    if needsThread, !startThread() {
      // The process has as many threads as it can have. Without a single thread here, the caller's must do.
      let isAlone = state.withLock { state in
        state.threadCount -= 1
        return state.threadCount == 0
      }
      if isAlone { runNextJob() }
    }
  }

  private func startThread() -> Bool {
    var thread = pthread_t()
    let owner = unsafe Unmanaged.passRetained(self)
    let code = unsafe pthread_create(
      &thread, nil,
      { argument in
        let threads = unsafe Unmanaged<BlockingThreads>.fromOpaque(argument!).takeRetainedValue()
        while true { threads.runNextJob() }
      }, owner.toOpaque())
    guard code == 0 else {
      unsafe owner.release()
      return false
    }
    pthread_detach(thread)
    return true
  }

  private func runNextJob() {
    state.withLock { $0.idleCount += 1 }
    while unsafe sem_wait(pending) != 0 {}
    let job = state.withLock { state in
      state.idleCount -= 1
      return state.takeJob()
    }
    unsafe job.runSynchronously(on: asUnownedTaskExecutor())
  }
}

// Safe because the state is accessed under its lock only, and the semaphore is made for several threads.
extension BlockingThreads: @unchecked Sendable {}
