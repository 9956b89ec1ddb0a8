import Dispatch
import Platform
import Synchronization

/// Runs the steps of a `DirectorySettler` on a thread of its own, so that no commit waits for an entry's file. It has a
/// thread only while there is work.
///
/// Safe because only the queue uses the settler and the timer's number, and everything else is atomic.
final class SettlingThread: @unchecked Sendable {
  /// The pause before the next attempt on a full disk.
  private static let retryMilliseconds: UInt64 = 500

  private let settler: DirectorySettler
  private let exchange: JournalExchange
  private let path: String
  /// Syncs journals, which must not wait for a step.
  private let syncQueue = DispatchQueue(label: "larder.directory.sync")
  private let queue = DispatchQueue(label: "larder.directory.settling", qos: .utility)
  private let isStopping = Atomic<Bool>(false)
  private let isScheduled = Atomic<Bool>(false)
  /// Whether the next step follows so soon that nothing has to wake the thread for commits.
  private let isResting = Atomic<Bool>(false)
  /// The number of the latest timer. Earlier ones have no effect.
  private var timer = 0

  init(_ settler: DirectorySettler, _ exchange: JournalExchange, path: String) {
    (self.settler, self.exchange, self.path) = (settler, exchange, path)
  }

  /// Makes the thread look for new commits soon. Call this from any thread.
  func wake() {
    if !isResting.load(ordering: .acquiring) { wakeNow() }
  }

  /// Makes the thread look for a request. Call this from any thread.
  func wakeNow() {
    guard !isScheduled.exchange(true, ordering: .acquiringAndReleasing) else { return }
    queue.async { [self] in
      isScheduled.store(false, ordering: .sequentiallyConsistent)
      run()
    }
  }

  /// Returns when no step is running any more and none will be.
  func stop() {
    isStopping.store(true, ordering: .sequentiallyConsistent)
    queue.sync {}
  }

  /// Makes all frames before that position durable, on a thread of its own.
  func sync(_ files: [any File], to position: UInt64) {
    syncQueue.async { [self] in
      guard exchange.failure == nil, exchange.synced < position else { return }
      do throws(SystemError) {
        for file in files { try file.sync() }
        exchange.didSync(to: position)
      } catch {
        exchange.fail(.failed("\(path): \(error)"))
      }
    }
  }

  func waitForSyncs() { syncQueue.sync {} }

  private func run() {
    timer += 1
    isResting.store(false, ordering: .releasing)
    while !isStopping.load(ordering: .relaxed), exchange.failure == nil {
      var wait: UInt64 = 0
      do throws(SystemError) {
        if case .wait(let milliseconds) = try settler.step(at: wallMilliseconds()) { wait = milliseconds }
      } catch {
        if error.isNoSpace {
          wait = Self.retryMilliseconds
        } else {
          return exchange.fail(.failed("\(path): \(error)"))
        }
      }
      if wait > 0 { return schedule(after: wait) }
    }
  }

  private func schedule(after milliseconds: UInt64) {
    let number = timer
    isResting.store(milliseconds <= DirectorySettler.Pace.background.quiet, ordering: .releasing)
    queue.asyncAfter(deadline: .now() + .milliseconds(Int(milliseconds))) { [weak self] in
      if let self, timer == number { run() }
    }
  }
}
