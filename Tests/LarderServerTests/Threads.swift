import Dispatch
import Foundation
import Testing

/// A trait that runs the tests of a suite on one thread, outside the thread pools of other tests.
struct DedicatedThread: SuiteTrait, TestTrait, TestScoping {
  private static let executor = QueueExecutor()

  var isRecursive: Bool { true }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(Self.executor) { try await function() }
  }
}

extension Trait where Self == DedicatedThread {
  static var dedicatedThread: DedicatedThread { DedicatedThread() }
}

private final class QueueExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "larder.tests")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// Runs `body` on `count` new threads, and waits until all of them end.
///
/// - Returns: The results, in the order of the threads' indexes.
func inParallel<R: Sendable>(_ count: Int, _ body: @escaping @Sendable (Int) throws -> R) throws -> [R] {
  let results = Results<R>(count)
  let group = DispatchGroup()
  for index in 0..<count {
    group.enter()
    Thread.detachNewThread {
      results.set(index, Result { try body(index) })
      group.leave()
    }
  }
  try #require(group.wait(timeout: .now() + 60) == .success, "the threads did not end")
  return try results.all()
}

private final class Results<R: Sendable>: @unchecked Sendable {  // Safe because `values` is accessed only under `lock`.
  private let lock = NSLock()
  private var values: [Result<R, any Error>?]

  init(_ count: Int) { values = Array(repeating: nil, count: count) }

  func set(_ index: Int, _ value: Result<R, any Error>) { lock.withLock { values[index] = value } }

  func all() throws -> [R] { try lock.withLock { try values.map { try $0!.get() } } }
}

/// Checks `condition` repeatedly until it holds, for at most the given number of seconds: many, because the machine may be
/// busy.
func eventually(within seconds: Double = 60, _ condition: () throws -> Bool) rethrows -> Bool {
  let end = Date().addingTimeInterval(seconds)
  while Date() < end {
    if try condition() { return true }
    usleep(5_000)
  }
  return try condition()
}

/// Returns how long `body` takes, in seconds.
func seconds(_ body: () throws -> Void) rethrows -> Double {
  let start = DispatchTime.now().uptimeNanoseconds
  try body()
  return Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
}

/// A flag that one thread sets for another, and the end of that thread.
final class Flag: @unchecked Sendable {  // Safe because `value` is accessed only under `lock`.
  private let lock = NSLock()
  private var value = false
  private let ended = DispatchSemaphore(value: 0)

  var isSet: Bool { lock.withLock { value } }
  func set() { lock.withLock { value = true } }
  func end() { ended.signal() }
  func waitForEnd() -> Bool { ended.wait(timeout: .now() + 10) == .success }
}

/// Work on its own thread.
final class BackgroundThread: @unchecked Sendable {  // Safe because `done` orders all accesses to `error`.
  private let done = DispatchSemaphore(value: 0)
  /// Written before `done` is signaled, and read after that.
  private var error: (any Error)?

  init(_ body: @escaping @Sendable () throws -> Void) {
    Thread.detachNewThread { [self] in
      do { try body() } catch { self.error = error }
      done.signal()
    }
  }

  func wait() throws {
    done.wait()
    if let error { throw error }
  }
}
