import Dispatch
import Testing

/// Runs the tests of a suite on one thread that belongs to none of the pools which other tests run on.
struct OwnThread: SuiteTrait, TestTrait, TestScoping {
  private static let executor = QueueExecutor()

  var isRecursive: Bool { true }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(Self.executor) { try await function() }
  }
}

extension Trait where Self == OwnThread {
  static var ownThread: OwnThread { OwnThread() }
}

private final class QueueExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "larder.tests")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
