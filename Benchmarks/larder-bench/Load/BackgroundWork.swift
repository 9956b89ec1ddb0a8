import Foundation
import Synchronization

/// Threads that repeat work until they are stopped.
final class BackgroundWork: Sendable {
  private let isStopping = Atomic(false)
  private let count = Atomic(0)
  private let error = Mutex<(any Error)?>(nil)
  private let threads = DispatchGroup()

  /// - Parameter body: Calls a function again and again, as long as it returns true. Each call counts as one
  ///   repetition.
  init(threads count: Int, _ body: @escaping @Sendable (_ next: () -> Bool) throws -> Void) {
    for _ in 0..<count {
      threads.enter()
      Thread.detachNewThread { [self] in
        defer { threads.leave() }
        do { try body(next) } catch { self.error.withLock { $0 = $0 ?? error } }
      }
    }
  }

  private func next() -> Bool {
    if isStopping.load(ordering: .relaxed) { return false }
    count.add(1, ordering: .relaxed)
    return true
  }

  /// The number of repetitions that have begun.
  var begun: Int { count.load(ordering: .relaxed) }

  /// Ends the work, and returns the number of repetitions. Throws the first error of a thread.
  @discardableResult
  func stop() throws -> Int {
    isStopping.store(true, ordering: .relaxed)
    threads.wait()
    if let error = error.withLock({ $0 }) { throw error }
    return begun
  }
}
