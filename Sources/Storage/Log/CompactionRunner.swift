import Dispatch
import Glibc
import Synchronization

/// Runs the steps of compactions, one after the other.
protocol CompactionRunner: AnyObject, Sendable {
  /// Calls `step` until it returns nil, behind those that were given before. What it returns else is how many bytes it has written.
  func run(bytesPerSecond: Int, _ step: @escaping @Sendable () -> Int?)

  /// Returns when no step is running any more and none will be.
  func end()
}

/// Runs them on a thread of its own, so that no commit waits for them, and no faster than leaves the disk to commits.
final class BackgroundRunner: CompactionRunner {
  private let queue = DispatchQueue(label: "larder.log.compaction", qos: .utility)
  private let isEnding = Atomic<Bool>(false)

  func run(bytesPerSecond: Int, _ step: @escaping @Sendable () -> Int?) {
    queue.async { [self] in
      let start = DispatchTime.now().uptimeNanoseconds
      var written = 0
      while !isEnding.load(ordering: .relaxed), let byteCount = step() {
        written += byteCount
        pause(until: start + UInt64(Double(written) / Double(bytesPerSecond) * 1e9))
      }
    }
  }

  func end() {
    isEnding.store(true, ordering: .relaxed)
    queue.sync {}
  }

  /// Short pauses, so that an end is not waited for.
  private func pause(until due: UInt64) {
    while !isEnding.load(ordering: .relaxed) {
      let now = DispatchTime.now().uptimeNanoseconds
      if now >= due { return }
      usleep(UInt32(min(due - now, 20_000_000) / 1_000) + 1)
    }
  }
}
