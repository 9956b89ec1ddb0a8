@testable import Storage

extension Store {
  /// Puts an entry into a durable store and wakes its commit writer. Waits while the disk is busy with other work.
  func putWhenThereIsSpace(_ key: [UInt8], _ value: [UInt8]) throws {
    var waits = 0
    while true {
      do throws(StorageError) {
        try access { map throws(StorageError) in
          unsafe try map.put(key.span.bytes, value.span.bytes, revision: map.revision + 1)
        }
        break
      } catch {
        guard error == .diskTooSlow, commitWriter!.waitForSpace() || waits < 60 else { throw error }
        waits += 1
      }
    }
    commitWriter!.wake()
  }
}
