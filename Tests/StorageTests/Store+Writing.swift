import Dispatch

@testable import Storage

extension CommitWriter {
  /// Waits until the space for commits has changed, for at most ten seconds.
  /// - Returns: Whether it has changed.
  func waitForSpace(since count: UInt64) -> Bool {
    let changed = DispatchSemaphore(value: 0)
    waitForSpace(since: count) { changed.signal() }
    return changed.wait(timeout: .now() + 10) == .success
  }
}

extension Store {
  /// Puts an entry into a durable store and wakes its commit writer. Waits while the disk is busy with other work.
  func putWhenThereIsSpace(_ key: [UInt8], _ value: [UInt8]) throws {
    var waits = 0
    while true {
      let spaceChangeCount = commitWriter!.spaceChangeCount
      do throws(StorageError) {
        try access { map throws(StorageError) in
          unsafe try map.put(key.span.bytes, value.span.bytes, revision: map.revisions.last + 1)
        }
        break
      } catch {
        guard error == .diskTooSlow, commitWriter!.waitForSpace(since: spaceChangeCount) || waits < 6 else {
          throw error
        }
        waits += 1
      }
    }
    commitWriter!.wake()
  }
}
