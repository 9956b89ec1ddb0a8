import Platform

/// Runs work that blocks on a few threads of its own, so that the tasks of the process go on whatever a disk does.
package enum BlockingWork {
  /// The number of bodies that run at a time. Disks serve several requests at once; more would only wait there.
  private static let maxCount = 8
  private static let threads = BlockingThreads(maxCount: maxCount)
  private static let turns = Turns(count: maxCount)

  /// Runs a body on a thread that may block. The body belongs to the calling task, and can check its cancellation. It
  /// must not wait for other bodies.
  /// - Throws: `CancellationError` if the task is cancelled while it waits for a thread; what the body throws.
  package static func run<R>(_ body: () throws -> R) async throws -> R {
    try await turns.take(1)
    defer { turns.giveBack(1) }
    return try await withTaskExecutorPreference(threads) { try body() }
  }
}
