// What happens to a disk that stalls:
//
// Requests that need it pause their connections; a commit holds the replies that reveal it. All other connections are
// served as before, by the same workers, and so are finds on other stores. A paused connection is not read, and times
// out only after its pause. Where it waits, and how it continues, is in `Session+Waits`. A store uses few of the
// threads that read, so that others find one free. Dropping a store, and stopping the server, complete when the disk
// does.

import Platform

/// Runs the reads of one store that have to wait for its disk, on threads that all stores share.
///
/// A store uses few of the threads at a time, so that the others are left to other stores if its disk stalls. Further
/// reads wait in the order of their arrival. Used by any thread.
package final class DiskReads: Sendable {
  /// The maximum number of threads.
  private static let maxThreadCount = 16
  /// The maximum number of threads that one store uses.
  private static let maxRunningCount = 4
  private static let threads = BlockingThreads(maxCount: maxThreadCount)

  private struct State {
    var runningCount = 0
    /// The reads that have not started, the oldest one last.
    var waiting: [@Sendable () -> Void] = []
    /// Those that have arrived since `waiting` was filled, in order.
    var arrived: [@Sendable () -> Void] = []

    mutating func takeNext() -> (@Sendable () -> Void)? {
      if waiting.isEmpty { (waiting, arrived) = (arrived.reversed(), []) }
      return waiting.popLast()
    }
  }

  private let state = Lock(State())

  /// Runs a read on another thread.
  package func run(_ read: @escaping @Sendable () -> Void) {
    let isNext = state.withLock { state in
      guard state.runningCount < Self.maxRunningCount else {
        state.arrived.append(read)
        return false
      }
      state.runningCount += 1
      return true
    }
    if isNext { start(read) }
  }

  private func start(_ read: @escaping @Sendable () -> Void) {
    Task.detached(executorPreference: Self.threads) { [self] in
      read()
      let next = state.withLock { state in
        let next = state.takeNext()
        if next == nil { state.runningCount -= 1 }
        return next
      }
      // The reads of other stores that have arrived meanwhile come first.
      if let next { start(next) }
    }
  }
}
